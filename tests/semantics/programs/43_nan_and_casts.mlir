// Case 43: NaN in reductions, casts that saturate, division that floors.
sdg.program @nan_and_casts {
  %x = sdg.input "x" : tensor<4xf32>
  %n = sdg.input "n" : tensor<2xi64>
  %m = sdg.input "m" : tensor<2xi64>
  %0 = sdg.max %x axes [0] : (tensor<4xf32>) -> tensor<f32>
  sdg.output "max" %0 : tensor<f32>
  %1 = sdg.argmax %x axis 0 : (tensor<4xf32>) -> tensor<i64>
  sdg.output "argmax" %1 : tensor<i64>
  %2 = sdg.softmax %x axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "softmax" %2 : tensor<4xf32>
  %3 = sdg.cast %x : (tensor<4xf32>) -> tensor<4xi64>
  sdg.output "i64" %3 : tensor<4xi64>
  %4 = sdg.cast %x : (tensor<4xf32>) -> tensor<4xi8>
  sdg.output "i8" %4 : tensor<4xi8>
  %5 = sdg.floordiv %n, %m : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  sdg.output "quotient" %5 : tensor<2xi64>
  %6 = sdg.mod %n, %m : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  sdg.output "rest" %6 : tensor<2xi64>
}
