// Case 18: a ring that is written at t and read at t - 3 in the same step.
sdg.program @written_at_t_and_read_at_t_minus_w dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<2xf32>
  %h = sdg.merge {t < 3 : %a[t], true : %0[t]} in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = sdg.constant 0.5 : tensor<f32>
  %2 = sdg.mul %h[t - 3], %1 in (t: 3 to T) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %0 = sdg.add %2[t], %a[t] in (t: 3 to T) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %g = sdg.sin %h[t] in (t) : (tensor<2xf32>) -> tensor<2xf32>
  %3 = sdg.sub %g[t], %g[max(0, t - 3)] in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  sdg.output "y" %3[t] in (t) : tensor<2xf32>
}
