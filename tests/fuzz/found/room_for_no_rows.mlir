// in tiles, of no rows: there is no room for a row, and none is read
builtin.module {
  sdg.program @random dims(b: B, t: B) where B >= 1 {
    %0 = sdg.input "x0" in (b, t) : tensor<2xf32>
    %1 = sdg.input "x1" in (b, t) : tensor<2x2xi1>
    %2 = sdg.index b mod 3 in (b) : tensor<i64>
    %3 = sdg.merge {2 * b + 1 >= 0 and 2 * b + 1 < B : %2[2 * b + 1], true : %2[b]} in (b) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %4 = sdg.sub %3[b], %2[0:B] in (b) : (tensor<i64>, tensor<i64>) -> tensor<?xi64, #sdg.size<B>>
    %5 = sdg.merge {b >= 1 and t >= 1 : %6[b - 1, t - 1], t + 2 < B : %6[b, t + 2], true : %2[b]} in (b, t) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %7 = sdg.merge {true : %8[b, t]} in (b, t) : (tensor<i64>) -> tensor<i64>
    %8 = sdg.sub %5[b, t], %2[b] in (b, t) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %6 = sdg.xor %7[b, t], %2[b] in (b, t) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %9 = sdg.contract "ab,cd,eb->bdc" %4[1:B:3], %8[0:B - b, 0:min(B, b + 1)], %8[B:B, 0:B] in (b) : (tensor<?xi64, #sdg.size<B>>, tensor<i64>, tensor<i64>) -> tensor<?x?x?xi64, #sdg.size<B, min(B, b + 1), max(0, B - b)>>
    %10 = sdg.ne %9[b], %8[b, t] in (b, t) : (tensor<?x?x?xi64, #sdg.size<B, min(B, b + 1), max(0, B - b)>>, tensor<i64>) -> tensor<?x?x?xi1, #sdg.size<B, min(B, b + 1), max(0, B - b)>>
    %11 = sdg.min %10[b, t] axes [1, 2] in (b, t) : (tensor<?x?x?xi1, #sdg.size<B, min(B, b + 1), max(0, B - b)>>) -> tensor<?xi1, #sdg.size<B>>
    sdg.output "exact0" %11[b, t] in (b, t) : tensor<?xi1, #sdg.size<B>>
  }
}
