// Case 2: modular, halved and reversed points, and the last one.
sdg.program @points dims(t: T) where 2 <= T {
  %a = sdg.input "a" in (t) : tensor<f32>
  sdg.output "modular" %a[t mod 2] in (t) : tensor<f32>
  sdg.output "halved" %a[t floordiv 2] in (t) : tensor<f32>
  sdg.output "reversed" %a[T - t - 1] in (t) : tensor<f32>
  sdg.output "last" %a[T - 1] : tensor<f32>
}
