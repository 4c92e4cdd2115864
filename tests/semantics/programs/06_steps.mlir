// Case 6: slices with a step that does not divide T.
sdg.program @steps dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<i64>
  %0 = sdg.cumsum %a[0:T:3] axis 0 : (tensor<i64>) -> tensor<?xi64, #sdg.size<(T + 2) floordiv 3>>
  sdg.output "y" %0 : tensor<?xi64, #sdg.size<(T + 2) floordiv 3>>
  %1 = sdg.sum %a[t:T:3] axes [0] in (t) : (tensor<i64>) -> tensor<i64>
  sdg.output "later" %1[t] in (t) : tensor<i64>
}
