sdg.program @first_step dims(t: T) where T >= 1 {
  %e0 = sdg.host_state @env : !sdg.token
  %e = sdg.merge {t = 0 : %e0, t > 0 : %e1[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %e1 = sdg.host @env::@step() after %e[t] in (t) : (!sdg.token) -> (tensor<f32>, !sdg.token)
  sdg.output "y" %y[0] : tensor<f32>
}
