// Case 22: sums over ranges that shrink and grow.
sdg.program @suffix_and_prefix_sums dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<f32>
  %0 = sdg.constant 1.0 : tensor<f32>
  %b = sdg.mul %a[t], %0 in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = sdg.sum %b[t:T] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "suffix" %1[t] in (t) : tensor<f32>
  %2 = sdg.sum %b[0:t + 1] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "prefix" %2[t] in (t) : tensor<f32>
}
