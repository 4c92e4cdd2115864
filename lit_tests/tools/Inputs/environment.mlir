sdg.program @environment dims(t: T) {
  %half = sdg.constant 0.5 : tensor<f32>
  %e0 = sdg.host_state @env : !sdg.token
  %e = sdg.merge {t = 0 : %e0, t > 0 : %e1[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %a = sdg.merge {t = 0 : %half, t > 0 : %y[t - 1]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %y, %done, %e1 = sdg.host @env::@step(%a[t]) after %e[t] in (t) : (tensor<f32>, !sdg.token) -> (tensor<f32>, tensor<i1>, !sdg.token)
  sdg.output "done" %done[t] in (t) : tensor<i1>
}
