// Case 1: sums over windows behind, ahead and on both sides.
sdg.program @windows dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<f32>
  %0 = sdg.sum %a[0:t + 1] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "past" %0[t] in (t) : tensor<f32>
  %1 = sdg.sum %a[t:T] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "future" %1[t] in (t) : tensor<f32>
  %2 = sdg.sum %a[max(0, t - 2):t + 1] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "window" %2[t] in (t) : tensor<f32>
  %3 = sdg.sum %a[t:min(T, t + 3)] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "ahead" %3[t] in (t) : tensor<f32>
  %4 = sdg.sum %a[max(0, t - 2):min(T, t + 3)] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "around" %4[t] in (t) : tensor<f32>
}
