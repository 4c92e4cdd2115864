// Case 10: each point follows the one before in row-major order.
sdg.program @odometer dims(i: I, j: J) {
  %x = sdg.merge {i = 0 and j = 0 : %0, j > 0 : %1[i, j - 1], j = 0 and i > 0 : %2[i - 1]} in (i, j) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<i64>
  %0 = sdg.constant 1 : tensor<i64>
  %1 = sdg.add %x[i, j], %0 in (i, j: 0 to J - 1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %2 = sdg.add %x[i, J - 1], %0 in (i: 0 to I - 1 where J >= 1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  sdg.output "x" %x[i, j] in (i, j) : tensor<i64>
}
