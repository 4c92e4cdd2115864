// Case 19: two states that are carried through i; donated or not.
sdg.program @carried_states dims(i: I) {
  %x = sdg.input "x" in (i) : tensor<4xf32>
  %w_first = sdg.parameter "w" : tensor<4xf32>
  %w = sdg.merge {i = 0 : %w_first, i > 0 : %w_next[i - 1]} in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v_first = sdg.parameter "v" : tensor<4xf32>
  %v = sdg.merge {i = 0 : %v_first, i > 0 : %v_next[i - 1]} in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0 = sdg.constant 0.5 : tensor<f32>
  %1 = sdg.mul %0, %v[i] in (i) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %v_next = sdg.add %1[i], %x[i] in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = sdg.slice %w[i] take [0] in (i) : (tensor<4xf32>) -> tensor<f32>
  %3 = sdg.mul %v_next[i], %2[i] in (i) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %w_next = sdg.sub %w[i], %3[i] in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "before" %w[i] in (i) : tensor<4xf32>
  %w_last = sdg.merge {I = 0 : %w_first, I > 0 : %w_next[I - 1]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "w" %w_last : tensor<4xf32>
  %v_last = sdg.merge {I = 0 : %v_first, I > 0 : %v_next[I - 1]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "v" %v_last : tensor<4xf32>
}
