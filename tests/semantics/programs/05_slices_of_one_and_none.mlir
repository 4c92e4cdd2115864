// Case 5: a slice of one keeps its axis, an empty one sums to 0.
sdg.program @slices_of_one_and_none dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<f32>
  %0 = sdg.constant 2.0 : tensor<f32>
  %1 = sdg.mul %a[0:T], %0 : (tensor<f32>, tensor<f32>) -> tensor<?xf32, #sdg.size<T>>
  sdg.output "all" %1 : tensor<?xf32, #sdg.size<T>>
  %2 = sdg.mul %a[t:t + 1], %0 in (t) : (tensor<f32>, tensor<f32>) -> tensor<1xf32>
  sdg.output "one" %2[t] in (t) : tensor<1xf32>
  %3 = sdg.sum %a[t:t] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "none" %3[t] in (t) : tensor<f32>
}
