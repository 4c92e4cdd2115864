// Case 44: what a host raises is raised with op, point and line.
sdg.program @a_host_that_raises dims(t: T) {
  %fragile = sdg.host_state @fragile : !sdg.token
  %0 = sdg.index t in (t) : tensor<i64>
  %1 = sdg.merge {t = 0 : %fragile, t > 0 : %2[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %2 = sdg.host @fragile::@step(%0[t]) after %1[t] in (t) : (tensor<i64>, !sdg.token) -> (tensor<f32>, !sdg.token)
  %3 = sdg.constant 2.0 : tensor<f32>
  %4 = sdg.mul %y[t], %3 in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "y" %4[t] in (t) : tensor<f32>
}
