// Case 31: a fully masked softmax, and the side of a select that was not taken.
sdg.program @no_nan_leaks {
  %x = sdg.input "x" : tensor<3xf64>
  %w = sdg.input "w" : tensor<3xf64>
  %0 = sdg.constant 99.0 : tensor<f64>
  %1 = sdg.gt %x, %0 : (tensor<3xf64>, tensor<f64>) -> tensor<3xi1>
  %2 = sdg.constant -inf : tensor<f64>
  %3 = sdg.select %1, %x, %2 : (tensor<3xi1>, tensor<3xf64>, tensor<f64>) -> tensor<3xf64>
  %4 = sdg.softmax %3 axis 0 : (tensor<3xf64>) -> tensor<3xf64>
  %5 = sdg.mul %4, %w : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %6 = sdg.sum %5 axes [0] : (tensor<3xf64>) -> tensor<f64>
  %7 = sdg.grad %6 wrt %x : (tensor<f64>, tensor<3xf64>) -> tensor<3xf64>
  sdg.output "masked" %7 : tensor<3xf64>
  %8 = sdg.constant 0.0 : tensor<f64>
  %9 = sdg.gt %x, %8 : (tensor<3xf64>, tensor<f64>) -> tensor<3xi1>
  %10 = sdg.sqrt %x : (tensor<3xf64>) -> tensor<3xf64>
  %11 = sdg.select %9, %10, %8 : (tensor<3xi1>, tensor<3xf64>, tensor<f64>) -> tensor<3xf64>
  %12 = sdg.sum %11 axes [0] : (tensor<3xf64>) -> tensor<f64>
  %13 = sdg.grad %12 wrt %x : (tensor<f64>, tensor<3xf64>) -> tensor<3xf64>
  sdg.output "root" %13 : tensor<3xf64>
}
