// a read takes none of a row that has room for more
sdg.program @random dims(i: 4, t: 4) {
  %0 = sdg.input "x0" in (i, t) : tensor<f32>
  %3 = sdg.index t in (t: 3 to 4) : tensor<i64>
  %4 = sdg.one_hot %3[t] depth 1 in (t: 3 to 4) : (tensor<i64>) -> tensor<1xi64>
  %5 = sdg.argsort %3[t + 1:4] axis 0 in (t: 3 to 4) : (tensor<i64>) -> tensor<?xi64, #sdg.size<max(0, 3 - t)>>
  %6 = sdg.constant -1 : tensor<1xi64>
  %7 = sdg.merge {i + 1 >= 0 and i + 1 < 4 : %4[i + 1], true : %6} in (i: 2 to 4) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %8 = sdg.add %7[i], %5[3] in (i: 2 to 4) : (tensor<1xi64>, tensor<?xi64, #sdg.size<max(0, 3 - t)>>) -> tensor<0xi64>
  sdg.output "exact0" %8[i + 2] in (i: 0 to 2) : tensor<0xi64>
}
