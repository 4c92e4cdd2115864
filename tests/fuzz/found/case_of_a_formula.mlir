// a case reads a formula through a range
builtin.module {
  sdg.program @random dims(i: 2) {
    %0 = sdg.index 2 * i - 3 in (i) : tensor<i64>
    %1 = sdg.constant 1 : tensor<2xi64>
    %2 = sdg.merge {i + 1 < 2 : %0[0:2], true : %1} in (i) : (tensor<i64>, tensor<2xi64>) -> tensor<2xi64>
    sdg.output "exact0" %2[0] in (i) : tensor<2xi64>
  }
}
