// Case 15: a dependence of distance -1 in the inner dim.
sdg.program @stencil dims(i: I, j: J) {
  %a = sdg.input "a" in (i, j) : tensor<i64>
  %x = sdg.merge {i = 0 : %a[i, j], j = J - 1 : %a[i, j], true : %0[i, j]} in (i, j) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<i64>
  %1 = sdg.constant 1 : tensor<i64>
  %0 = sdg.add %x[i - 1, j + 1], %1 in (i: 1 to I, j: 0 to J - 1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  sdg.output "x" %x[i, j] in (i, j) : tensor<i64>
  %2 = sdg.sum %x[i, 0:j + 1] axes [0] in (i, j) : (tensor<i64>) -> tensor<i64>
  sdg.output "row" %2[i, j] in (i, j) : tensor<i64>
}
