// Case 7: reads that a case or a minimum keeps inside are exact.
sdg.program @guarded_reads dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<f32>
  %x = sdg.merge {t >= 2 : %a[t - 2], t < T - 3 : %a[t + 3], true : %0} in (t) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %0 = sdg.constant -1.0 : tensor<f32>
  sdg.output "x" %x[t] in (t) : tensor<f32>
  sdg.output "y" %a[min(T - 1, t + 3)] in (t) : tensor<f32>
}
