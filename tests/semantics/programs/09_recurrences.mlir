// Case 9: recurrences of first and second order.
sdg.program @recurrences dims(t: T) {
  %x = sdg.merge {t = 0 : %0, t > 0 : %1[t - 1]} in (t) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %f = sdg.merge {t = 0 : %0, t = 1 : %2, true : %3[t]} in (t) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<i64>
  %4 = sdg.constant 2 : tensor<i64>
  %5 = sdg.mul %4, %x[t] in (t: 0 to T - 1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %2 = sdg.constant 1 : tensor<i64>
  %1 = sdg.add %5[t], %2 in (t: 0 to T - 1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %0 = sdg.constant 0 : tensor<i64>
  %3 = sdg.add %f[t - 1], %f[t - 2] in (t: 2 to T) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  sdg.output "x" %x[t] in (t) : tensor<i64>
  sdg.output "fibonacci" %f[t] in (t) : tensor<i64>
}
