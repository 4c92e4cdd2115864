// Case 13: two tensors that feed each other across steps.
sdg.program @feed_each_other dims(t: T) {
  %o = sdg.merge {t = 0 : %0, t > 0 : %1[t - 1]} in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %act = sdg.merge {true : %2[t]} in (t) : (tensor<2xf32>) -> tensor<2xf32>
  %3 = sdg.constant 0.5 : tensor<f32>
  %1 = sdg.mul %act[t], %3 in (t: 0 to T - 1) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %4 = sdg.constant 1.0 : tensor<f32>
  %0 = sdg.constant 1.0 : tensor<2xf32>
  %5 = sdg.sin %o[t] in (t) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = sdg.add %5[t], %4 in (t) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  sdg.output "act" %act[t] in (t) : tensor<2xf32>
}
