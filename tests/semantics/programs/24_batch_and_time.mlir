// Case 24: the batch is an axis, time recurs; prefix sums of rows work on axis 0.
sdg.program @batch_and_time dims(b: B, t: T) {
  %x = sdg.input "x" in (b, t) : tensor<3xf32>
  %w = sdg.input "w" : tensor<3x3xf32>
  %h = sdg.merge {t = 0 : %x[b, t], t > 0 : %0[b, t - 1]} in (b, t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = sdg.contract "k,kn->n" %h[b, t], %w in (b, t: 0 to T - 1) : (tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
  %2 = sdg.add %1[b, t], %x[b, t + 1] in (b, t: 0 to T - 1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %0 = sdg.tanh %2[b, t] in (b, t: 0 to T - 1) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.output "h" %h[b, t] in (b, t) : tensor<3xf32>
  %3 = sdg.cumsum %x[b, 0:T] axis 0 in (b) : (tensor<3xf32>) -> tensor<?x3xf32, #sdg.size<T>>
  sdg.output "rows" %3[b] in (b) : tensor<?x3xf32, #sdg.size<T>>
}
