// Case 26: discounted returns over many steps, and returns without a discount, which are a scan.
sdg.program @discounted_returns dims(t: T) {
  %r = sdg.input "r" in (t) : tensor<f64>
  %g = sdg.merge {t = T - 1 : %r[t], true : %0[t]} in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %1 = sdg.constant 0.9 : tensor<f64>
  %2 = sdg.mul %1, %g[t + 1] in (t: 0 to T - 1) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %0 = sdg.add %r[t], %2[t] in (t: 0 to T - 1) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "g" %g[t] in (t) : tensor<f64>
  %u = sdg.merge {t = T - 1 : %r[t], true : %3[t]} in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %3 = sdg.add %r[t], %u[t + 1] in (t: 0 to T - 1) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "u" %u[t] in (t) : tensor<f64>
}
