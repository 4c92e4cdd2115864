// Case 23: max of negative numbers, softmax and contraction over a growing range.
sdg.program @growing_ranges dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<3xf32>
  %w = sdg.input "w" in (t) : tensor<f32>
  %0 = sdg.constant 100.0 : tensor<f32>
  %1 = sdg.sub %a[0:t + 1], %0 in (t) : (tensor<3xf32>, tensor<f32>) -> tensor<?x3xf32, #sdg.size<t + 1>>
  %2 = sdg.max %1[t] axes [0] in (t) : (tensor<?x3xf32, #sdg.size<t + 1>>) -> tensor<3xf32>
  sdg.output "max" %2[t] in (t) : tensor<3xf32>
  %3 = sdg.softmax %w[0:t + 1] axis 0 in (t) : (tensor<f32>) -> tensor<?xf32, #sdg.size<t + 1>>
  %4 = sdg.contract "n,nd->d" %3[t], %a[0:t + 1] in (t) : (tensor<?xf32, #sdg.size<t + 1>>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "weighted" %4[t] in (t) : tensor<3xf32>
  %5 = sdg.contract "d,nd->n" %a[t], %a[0:t + 1] in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<?xf32, #sdg.size<t + 1>>
  %6 = sdg.sum %5[t] axes [0] in (t) : (tensor<?xf32, #sdg.size<t + 1>>) -> tensor<f32>
  sdg.output "dot" %6[t] in (t) : tensor<f32>
}
