// Case 11: a recurrence that needs a descending loop.
sdg.program @backwards dims(t: T) {
  %r = sdg.input "r" in (t) : tensor<f32>
  %g = sdg.merge {t = T - 1 : %r[t], true : %0[t]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = sdg.constant 0.5 : tensor<f32>
  %2 = sdg.mul %1, %g[t + 1] in (t: 0 to T - 1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %0 = sdg.add %r[t], %2[t] in (t: 0 to T - 1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "g" %g[t] in (t) : tensor<f32>
}
