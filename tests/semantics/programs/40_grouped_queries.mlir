// Case 40: six query heads read two heads of keys and values.
sdg.program @grouped_queries dims(t: T) {
  %q = sdg.input "q" in (t) : tensor<2x3x8xf64>
  %k = sdg.input "k" in (t) : tensor<2x8xf64>
  %v = sdg.input "v" in (t) : tensor<2x8xf64>
  %0 = sdg.contract "hgd,nhd->hgn" %q[t], %k[0:t + 1] in (t) : (tensor<2x3x8xf64>, tensor<2x8xf64>) -> tensor<2x3x?xf64, #sdg.size<t + 1>>
  %p = sdg.softmax %0[t] axis 2 in (t) : (tensor<2x3x?xf64, #sdg.size<t + 1>>) -> tensor<2x3x?xf64, #sdg.size<t + 1>>
  %1 = sdg.contract "hgn,nhd->hgd" %p[t], %v[0:t + 1] in (t) : (tensor<2x3x?xf64, #sdg.size<t + 1>>, tensor<2x8xf64>) -> tensor<2x3x8xf64>
  sdg.output "o" %1[t] in (t) : tensor<2x3x8xf64>
}
