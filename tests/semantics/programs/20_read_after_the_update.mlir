// Case 20: the first value of a state that may be donated is an output.
sdg.program @read_after_the_update dims(i: I) where I >= 1 attributes {preconditions = [#sdg.precondition<#sdg.cond<(I >= 1)>, "sdg.output reads %w[0]">]} {
  %x = sdg.input "x" in (i) : tensor<4xf32>
  %w_first = sdg.parameter "w" : tensor<4xf32>
  %w = sdg.merge {i = 0 : %w_first, i > 0 : %w_next[i - 1]} in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0 = sdg.constant 0.5 : tensor<f32>
  %1 = sdg.mul %w[i], %0 in (i) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %w_next = sdg.add %1[i], %x[i] in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = sdg.add %x[i], %w[i] in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "y" %2[i] in (i) : tensor<4xf32>
  sdg.output "first" %w[0] : tensor<4xf32>
  %w_last = sdg.merge {I > 0 : %w_next[I - 1]} : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "w" %w_last : tensor<4xf32>
}
