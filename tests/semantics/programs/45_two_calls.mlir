// Case 45: a call may start where another ended.
sdg.program @two_calls dims(i: I) {
  %x = sdg.input "x" in (i) : tensor<3xf64>
  %w_first = sdg.parameter "w" : tensor<3xf64>
  %w = sdg.merge {i = 0 : %w_first, i > 0 : %w_next[i - 1]} in (i) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %0 = sdg.constant 0.5 : tensor<f64>
  %1 = sdg.mul %0, %w[i] in (i) : (tensor<f64>, tensor<3xf64>) -> tensor<3xf64>
  %2 = sdg.add %1[i], %x[i] in (i) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %3 = sdg.random uniform id 0 in (i) : tensor<3xf64>
  %4 = sdg.add %2[i], %3[i] in (i) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %5 = sdg.index i in (i) : tensor<i64>
  %6 = sdg.cast %5[i] in (i) : (tensor<i64>) -> tensor<f32>
  %7 = sdg.constant 0.25 : tensor<f32>
  %8 = sdg.mul %6[i], %7 in (i) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %9 = sdg.cast %8[i] in (i) : (tensor<f32>) -> tensor<f64>
  %w_next = sdg.add %4[i], %9[i] in (i) : (tensor<3xf64>, tensor<f64>) -> tensor<3xf64>
  sdg.output "before" %w[i] in (i) : tensor<3xf64>
  %10 = sdg.random bits id 1 in (i) : tensor<2xi64>
  sdg.output "drawn" %10[i] in (i) : tensor<2xi64>
  %w_last = sdg.merge {I = 0 : %w_first, I > 0 : %w_next[I - 1]} : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  sdg.output "w" %w_last : tensor<3xf64>
}
