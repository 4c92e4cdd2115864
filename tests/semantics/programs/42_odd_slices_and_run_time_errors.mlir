// Case 42: empty slices; a gather out of range and a division by zero.
sdg.program @odd_slices_and_run_time_errors dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3x2xf32>
  %n = sdg.input "n" in (t) : tensor<i64>
  %table = sdg.input "table" : tensor<4xi64>
  %0 = sdg.slice %x[t] take [0:3, 0] in (t) : (tensor<3x2xf32>) -> tensor<3xf32>
  %1 = sdg.constant 1.0 : tensor<f32>
  %2 = sdg.mul %0[t], %1 in (t) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  sdg.output "column" %2[t] in (t) : tensor<3xf32>
  %3 = sdg.sum %x[T:0] axes [0] : (tensor<3x2xf32>) -> tensor<3x2xf32>
  sdg.output "down" %3 : tensor<3x2xf32>
  %4 = sdg.gather %table, %n[t] axis 0 in (t) : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
  sdg.output "row" %4[t] in (t) : tensor<i64>
  %5 = sdg.constant 12 : tensor<i64>
  %6 = sdg.floordiv %5, %n[t] in (t) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  sdg.output "quotient" %6[t] in (t) : tensor<i64>
}
