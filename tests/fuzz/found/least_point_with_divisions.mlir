// the least point of a set with divisions, which isl fails to find
builtin.module {
  sdg.program @random dims(i: I, t: T) where I >= 2 {
    %0 = sdg.input "x0" in (i) : tensor<2x2xf16>
    %1 = sdg.input "x1" in (i, t) : tensor<2x2xf16>
    %2 = sdg.input "x2" in (i, t) : tensor<1xf16>
    %3 = sdg.input "x3" in (t) : tensor<1xi1>
    %4 = sdg.contract "abcd->d" %1[1:I:3, t:T] in (t) : (tensor<2x2xf16>) -> tensor<2xf16>
    %5 = sdg.tanh %4[t] in (t) : (tensor<2xf16>) -> tensor<2xf16>
    %6 = sdg.sum %7[i, 0:t] axes [0] in (i: 1 to min((T + 1) floordiv 2, I), t: 0 to min(2 * i + 1, T - 1)) : (tensor<2xf16>) -> tensor<2xf16>
    %8 = sdg.constant -0.5 : tensor<f16>
    %9 = sdg.mul %6[i, t], %8 in (i: 1 to min((T + 1) floordiv 2, I), t: 0 to min(2 * i + 1, T - 1)) : (tensor<2xf16>, tensor<f16>) -> tensor<2xf16>
    %10 = sdg.sub %9[i, t], %5[t] in (i: 1 to min((T + 1) floordiv 2, I), t: 0 to min(2 * i + 1, T - 1)) : (tensor<2xf16>, tensor<2xf16>) -> tensor<2xf16>
    %7 = sdg.tanh %10[i, t] in (i: 1 to min((T + 1) floordiv 2, I), t: 0 to min(2 * i + 1, T - 1)) : (tensor<2xf16>) -> tensor<2xf16>
    %11 = sdg.merge {t floordiv 2 >= 0 and t floordiv 2 < I : %7[t floordiv 2, max(0, t - 1)], true : %5[t]} in (t: 2 to T) : (tensor<2xf16>, tensor<2xf16>) -> tensor<2xf16>
    %12 = sdg.erf %11[t] in (t: 2 to T) : (tensor<2xf16>) -> tensor<2xf16>
    %13 = sdg.merge {t + 1 < T : %14[i, t + 1], true : %1[i, t]} in (i, t: min(T - 1, 1) to T) : (tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>
    %15 = sdg.constant 0.25 : tensor<f16>
    %16 = sdg.mul %13[i, t], %15 in (i, t: min(T - 1, 1) to T) : (tensor<2x2xf16>, tensor<f16>) -> tensor<2x2xf16>
    %17 = sdg.sub %16[i, t], %1[i, t] in (i, t: min(T - 1, 1) to T) : (tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>
    %14 = sdg.tanh %17[i, t] in (i, t: min(T - 1, 1) to T) : (tensor<2x2xf16>) -> tensor<2x2xf16>
    %18 = sdg.softmax %14[max(0, i - 2):i + 1, min(T - 1, t + 1)] axis 0 in (i, t) : (tensor<2x2xf16>) -> tensor<?x2x2xf16, #sdg.size<min(i + 1, 3)>>
    %19 = sdg.sum %18[i, t] axes [0] in (i, t) : (tensor<?x2x2xf16, #sdg.size<min(i + 1, 3)>>) -> tensor<2x2xf16>
    sdg.output "half0" %19[i, t] in (i, t) : tensor<2x2xf16>
    sdg.output "half1" %12[t + 2] in (t: 0 to T - 2) : tensor<2xf16>
  }
}

