// Case 16: reads across a block edge; T >= 7 is a precondition.
sdg.program @two_blocks dims(t: T) where T >= 7 attributes {preconditions = [#sdg.precondition<#sdg.cond<(T >= 7)>, "sdg.sum reads %b[3:7]">]} {
  %a = sdg.input "a" in (t) : tensor<f32>
  %0 = sdg.constant 1.5 : tensor<f32>
  %b = sdg.mul %a[t], %0 in (t: 0 to 7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = sdg.sum %b[0:4] axes [0] : (tensor<f32>) -> tensor<f32>
  sdg.output "first" %1 : tensor<f32>
  %2 = sdg.sum %b[3:7] axes [0] : (tensor<f32>) -> tensor<f32>
  sdg.output "second" %2 : tensor<f32>
}
