// Case 30: gradients sum over the dims of the uses; sort, ties and tables.
sdg.program @gradients_accumulate dims(i: I, t: T, b: B) {
  %x = sdg.input "x" in (i, t, b) : tensor<3xf64>
  %w = sdg.input "w" in (i) : tensor<f64>
  %0 = sdg.mul %x[i, t, b], %w[i] in (i, t, b) : (tensor<3xf64>, tensor<f64>) -> tensor<3xf64>
  %1 = sdg.sum %0[i, t, b] axes [0] in (i, t, b) : (tensor<3xf64>) -> tensor<f64>
  %2 = sdg.grad %1 wrt %w in (i) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "summed" %2[i] in (i) : tensor<f64>
  %y = sdg.input "y" : tensor<3xf64>
  %weights = sdg.input "weights" : tensor<3xf64>
  %3 = sdg.sort %y axis 0 : (tensor<3xf64>) -> tensor<3xf64>
  %4 = sdg.mul %3, %weights : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %5 = sdg.sum %4 axes [0] : (tensor<3xf64>) -> tensor<f64>
  %6 = sdg.grad %5 wrt %y : (tensor<f64>, tensor<3xf64>) -> tensor<3xf64>
  sdg.output "sorted" %6 : tensor<3xf64>
  %7 = sdg.maximum %y, %y : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %8 = sdg.sum %7 axes [0] : (tensor<3xf64>) -> tensor<f64>
  %9 = sdg.grad %8 wrt %y : (tensor<f64>, tensor<3xf64>) -> tensor<3xf64>
  sdg.output "same" %9 : tensor<3xf64>
  %10 = sdg.maximum %y, %weights : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %11 = sdg.sum %10 axes [0] : (tensor<3xf64>) -> tensor<f64>
  %12 = sdg.grad %11 wrt %y : (tensor<f64>, tensor<3xf64>) -> tensor<3xf64>
  sdg.output "ties" %12 : tensor<3xf64>
  %ids = sdg.input "ids" : tensor<5xi64>
  %13 = sdg.gather %y, %ids axis 0 : (tensor<3xf64>, tensor<5xi64>) -> tensor<5xf64>
  %14 = sdg.sum %13 axes [0] : (tensor<5xf64>) -> tensor<f64>
  %15 = sdg.grad %14 wrt %y : (tensor<f64>, tensor<3xf64>) -> tensor<3xf64>
  sdg.output "taken" %15 : tensor<3xf64>
}
