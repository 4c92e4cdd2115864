// Case 14: the host is called once, for the one point that is needed.
sdg.program @needed_points dims(t: T) where T >= 1 attributes {preconditions = [#sdg.precondition<#sdg.cond<(T >= 1)>, "sdg.output reads %x[0]">]} {
  %counter = sdg.host_state @counter : !sdg.token
  %0 = sdg.index t in (t: 0 to 1) : tensor<i64>
  %1 = sdg.merge {t = 0 : %counter} in (t: 0 to 1) : (!sdg.token) -> !sdg.token
  %x, %2 = sdg.host @counter::@value(%0[t]) after %1[t] in (t: 0 to 1) : (tensor<i64>, !sdg.token) -> (tensor<f32>, !sdg.token)
  sdg.output "first" %x[0] : tensor<f32>
}
