// Case 35: a discounted sum; statistics of one sample.
sdg.program @statistics {
  %x = sdg.input "x" : tensor<3xf64>
  %one = sdg.input "one" : tensor<1xf64>
  %0 = sdg.arange [0:3] : tensor<3xi64>
  %1 = sdg.cast %0 : (tensor<3xi64>) -> tensor<3xf64>
  %2 = sdg.constant 0.5 : tensor<f64>
  %3 = sdg.pow %2, %1 : (tensor<f64>, tensor<3xf64>) -> tensor<3xf64>
  %4 = sdg.mul %x, %3 : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %5 = sdg.sum %4 axes [0] : (tensor<3xf64>) -> tensor<f64>
  sdg.output "discounted" %5 : tensor<f64>
  %6 = sdg.mean %one axes [0] : (tensor<1xf64>) -> tensor<f64>
  %7 = sdg.sub %one, %6 : (tensor<1xf64>, tensor<f64>) -> tensor<1xf64>
  %8 = sdg.mul %7, %7 : (tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>
  %9 = sdg.mean %8 axes [0] : (tensor<1xf64>) -> tensor<f64>
  %10 = sdg.sqrt %9 : (tensor<f64>) -> tensor<f64>
  %11 = sdg.constant 1.0e-08 : tensor<f64>
  %12 = sdg.add %10, %11 : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %13 = sdg.div %7, %12 : (tensor<1xf64>, tensor<f64>) -> tensor<1xf64>
  sdg.output "normal" %13 : tensor<1xf64>
  %14 = sdg.mean %one axes [0] : (tensor<1xf64>) -> tensor<f64>
  %15 = sdg.reshape %14 : (tensor<f64>) -> tensor<1xf64>
  %16 = sdg.sub %one, %15 : (tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>
  %17 = sdg.mul %16, %16 : (tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>
  %18 = sdg.mean %17 axes [0] : (tensor<1xf64>) -> tensor<f64>
  %19 = sdg.sqrt %18 : (tensor<f64>) -> tensor<f64>
  sdg.output "std" %19 : tensor<f64>
}
