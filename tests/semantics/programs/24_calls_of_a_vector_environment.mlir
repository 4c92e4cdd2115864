// Case 24: an environment of many, called once for each or once for all of them, in the same order.
sdg.program @calls_of_a_vector_environment dims(t: T, b: B) {
  %env = sdg.host_state @env : !sdg.token
  %n = sdg.index b in (b where T >= 1) : tensor<i64>
  %e0 = sdg.merge {b = 0 : %env, b > 0 : %e1[b - 1]} in (b where T >= 1) : (!sdg.token, !sdg.token) -> !sdg.token
  %first, %e1 = sdg.host @env::@reset(%n[b]) after %e0[b] vectorized @reset_all along (b) in (b where T >= 1) : (tensor<i64>, !sdg.token) -> (tensor<2xf32>, !sdg.token)
  %obs = sdg.merge {t = 0 : %first[b], t > 0 : %after[t - 1, b]} in (t, b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %et = sdg.merge {t = 0 : %e1[B - 1], t > 0 : %e2[t - 1, B - 1]} in (t where B >= 1) : (!sdg.token, !sdg.token) -> !sdg.token
  %eb = sdg.merge {b = 0 : %et[t], b > 0 : %e2[t, b - 1]} in (t, b) : (!sdg.token, !sdg.token) -> !sdg.token
  %half = sdg.constant 0.5 : tensor<f32>
  %act = sdg.mul %obs[t, b], %half in (t, b) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %after, %count, %e2 = sdg.host @env::@step(%act[t, b]) after %eb[t, b] vectorized @step_all along (b) in (t, b) : (tensor<2xf32>, !sdg.token) -> (tensor<2xf32>, tensor<i64>, !sdg.token)
  sdg.output "obs" %obs[t, b] in (t, b) : tensor<2xf32>
  sdg.output "count" %count[t, b] in (t, b) : tensor<i64>
}
