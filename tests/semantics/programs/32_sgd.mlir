// Case 32: gradient descent on p * p, and a parameter that stays.
sdg.program @sgd dims(i: I) {
  %p_first = sdg.parameter "p" : tensor<f64>
  %p = sdg.merge {i = 0 : %p_first, i > 0 : %p_next[i - 1]} in (i) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %q = sdg.parameter "q" : tensor<2xf64>
  %0 = sdg.mul %p[i], %p[i] in (i) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %1 = sdg.grad %0 wrt %p in (i) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %2 = sdg.constant 0.25 : tensor<f64>
  %3 = sdg.mul %2, %1[i] in (i) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %p_next = sdg.sub %p[i], %3[i] in (i) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "before" %p[i] in (i) : tensor<f64>
  %4 = sdg.index i in (i) : tensor<i64>
  %5 = sdg.cast %4[i] in (i) : (tensor<i64>) -> tensor<f64>
  %6 = sdg.mul %q, %5[i] in (i) : (tensor<2xf64>, tensor<f64>) -> tensor<2xf64>
  sdg.output "q2" %6[i] in (i) : tensor<2xf64>
  %p_last = sdg.merge {I = 0 : %p_first, I > 0 : %p_next[I - 1]} : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "p" %p_last : tensor<f64>
}
