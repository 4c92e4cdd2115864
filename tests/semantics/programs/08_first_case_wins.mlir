// Case 8: the first case that holds wins.
sdg.program @first_case_wins dims(t: T) {
  %x = sdg.merge {t < 3 : %0, t < 5 : %1, true : %2[t]} in (t) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<i64>
  %0 = sdg.constant 1 : tensor<i64>
  %1 = sdg.constant 2 : tensor<i64>
  %2 = sdg.add %x[t - 1], %0 in (t: 5 to T) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  sdg.output "x" %x[t] in (t) : tensor<i64>
}
