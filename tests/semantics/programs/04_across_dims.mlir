// Case 4: reads across a dim, and across two.
sdg.program @across_dims dims(i: I, t: T) {
  %c = sdg.input "c" in (i, t) : tensor<i64>
  %0 = sdg.sum %c[i, 0:T] axes [0] in (i) : (tensor<i64>) -> tensor<i64>
  sdg.output "row" %0[i] in (i) : tensor<i64>
  %1 = sdg.sum %c[0:I, 0:T] axes [0, 1] : (tensor<i64>) -> tensor<i64>
  sdg.output "all" %1 : tensor<i64>
  %2 = sdg.sum %c[0:i + 1, t:T] axes [0, 1] in (i, t) : (tensor<i64>) -> tensor<i64>
  sdg.output "corner" %2[i, t] in (i, t) : tensor<i64>
}
