// a case that is never reached where the others are: its copy uses no buffer any more
builtin.module {
  sdg.program @random dims(t: 4) {
    %3 = sdg.random bits id 88 in (t: 3 to 4) : tensor<2xi64>
    %4 = sdg.merge {true : %3[t]} in (t: 3 to 4) : (tensor<2xi64>) -> tensor<2xi64>
    %5 = sdg.merge {t >= 1 : %4[t], true : %3[t]} in (t: 3 to 4) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
    sdg.output "exact0" %5[t] in (t where t >= 3) : tensor<2xi64>
  }
}
