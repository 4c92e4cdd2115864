// Case 17: a window of four steps: a ring that wraps, fewer rows during warm-up.
sdg.program @window_of_a_recurrence dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<3xf32>
  %h = sdg.merge {t = 0 : %a[t], t > 0 : %0[t - 1]} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = sdg.constant 0.5 : tensor<f32>
  %2 = sdg.mul %1, %h[t] in (t: 0 to T - 1) : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
  %0 = sdg.add %2[t], %a[t + 1] in (t: 0 to T - 1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %3 = sdg.sum %h[max(0, t - 3):t + 1] axes [0] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.output "sum" %3[t] in (t) : tensor<3xf32>
  sdg.output "oldest" %h[max(0, t - 3)] in (t) : tensor<3xf32>
}
