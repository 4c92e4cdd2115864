// Case 36: generalised advantages, truncated and terminated.
sdg.program @advantages dims(t: T) {
  %r = sdg.input "r" in (t) : tensor<f64>
  %v = sdg.input "v" in (t) : tensor<f64>
  %n = sdg.input "n" in (t) : tensor<f64>
  %terminated = sdg.input "terminated" in (t) : tensor<i1>
  %truncated = sdg.input "truncated" in (t) : tensor<i1>
  %0 = sdg.constant 0.0 : tensor<f64>
  %1 = sdg.select %terminated[t], %0, %n[t] in (t) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
  %2 = sdg.constant 0.9 : tensor<f64>
  %3 = sdg.mul %2, %1[t] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %4 = sdg.add %r[t], %3[t] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %delta = sdg.sub %4[t], %v[t] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %5 = sdg.or %terminated[t], %truncated[t] in (t: 0 to T - 1) : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %a = sdg.merge {t = T - 1 : %delta[t], true : %6[t]} in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %7 = sdg.select %5[t], %0, %a[t + 1] in (t: 0 to T - 1) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
  %8 = sdg.constant 0.7200000000000001 : tensor<f64>
  %9 = sdg.mul %8, %7[t] in (t: 0 to T - 1) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %6 = sdg.add %delta[t], %9[t] in (t: 0 to T - 1) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "a" %a[t] in (t) : tensor<f64>
}
