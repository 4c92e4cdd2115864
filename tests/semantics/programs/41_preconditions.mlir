// Case 41: T >= 1 is a precondition, printed and checked.
sdg.program @preconditions dims(t: T) where T >= 1 attributes {preconditions = [#sdg.precondition<#sdg.cond<(T >= 1)>, "sdg.output reads %k[T - 1]">]} {
  %k = sdg.input "k" in (t) : tensor<f32>
  sdg.output "last" %k[T - 1] : tensor<f32>
  %0 = sdg.mean %k[0:T] axes [0] : (tensor<f32>) -> tensor<f32>
  sdg.output "mean" %0 : tensor<f32>
}
