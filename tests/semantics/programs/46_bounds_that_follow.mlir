// Case 46: a bound that follows from another.
sdg.program @bounds_that_follow dims(t: T, m: T floordiv 8) {
  %x = sdg.input "x" in (t) : tensor<8xf32>
  %y = sdg.input "y" in (m) : tensor<f32>
  %0 = sdg.constant 2.0 : tensor<f32>
  %1 = sdg.mul %y[m], %0 in (m) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %2 = sdg.sum %x[0:T] axes [0, 1] : (tensor<8xf32>) -> tensor<f32>
  %3 = sdg.constant 0.0 : tensor<f32>
  %4 = sdg.mul %3, %2 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %5 = sdg.add %1[m], %4 in (m) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "block" %5[m] in (m) : tensor<f32>
  %6 = sdg.arange [0:T floordiv 8] : tensor<?xi64, #sdg.size<T floordiv 8>>
  %7 = sdg.sum %6 axes [0] : (tensor<?xi64, #sdg.size<T floordiv 8>>) -> tensor<i64>
  sdg.output "count" %7 : tensor<i64>
}
