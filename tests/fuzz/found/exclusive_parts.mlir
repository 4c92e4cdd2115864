// a reader in one part of a guard, the writer in the other: no iteration runs both, whichever part comes first
builtin.module {
  sdg.program @random dims(t: T) {
    %0 = sdg.input "x0" in (t) : tensor<1xbf16>
    %1 = sdg.parameter "w1" : tensor<5xi1>
    %2 = sdg.parameter "w2" : tensor<i64>
    %3 = sdg.parameter "square" : tensor<5x5xbf16>
    %4 = sdg.constant dense<[2, 0, 0, 0, 0]> : tensor<5xi64>
    %5 = sdg.scatter_add %4, %3 axis 0 : (tensor<5xi64>, tensor<5x5xbf16>) -> tensor<3x5xbf16>
    %6 = sdg.merge {t mod 2 = 1 : %7[t - 1], t mod 2 = 0 and t + 2 < T : %7[t + 2], true : %5} in (t) : (tensor<3x5xbf16>, tensor<3x5xbf16>, tensor<3x5xbf16>) -> tensor<3x5xbf16>
    %8 = sdg.merge {t mod 2 = 1 : %9[t - 1], t mod 2 = 0 and t + 2 < T : %9[t + 2], true : %5} in (t) : (tensor<3x5xbf16>, tensor<3x5xbf16>, tensor<3x5xbf16>) -> tensor<3x5xbf16>
    %10 = sdg.constant 0.25 : tensor<bf16>
    %11 = sdg.mul %6[t], %10 in (t) : (tensor<3x5xbf16>, tensor<bf16>) -> tensor<3x5xbf16>
    %12 = sdg.sub %11[t], %5 in (t) : (tensor<3x5xbf16>, tensor<3x5xbf16>) -> tensor<3x5xbf16>
    %9 = sdg.tanh %12[t] in (t) : (tensor<3x5xbf16>) -> tensor<3x5xbf16>
    %13 = sdg.constant 0.5 : tensor<bf16>
    %14 = sdg.mul %8[t], %13 in (t) : (tensor<3x5xbf16>, tensor<bf16>) -> tensor<3x5xbf16>
    %15 = sdg.sub %14[t], %5 in (t) : (tensor<3x5xbf16>, tensor<3x5xbf16>) -> tensor<3x5xbf16>
    %7 = sdg.tanh %15[t] in (t) : (tensor<3x5xbf16>) -> tensor<3x5xbf16>
    %16 = sdg.sum %7[0:T] axes [0, 1, 2] : (tensor<3x5xbf16>) -> tensor<bf16>
    %17 = sdg.sum %9[t] axes [0, 1] in (t) : (tensor<3x5xbf16>) -> tensor<bf16>
    %18 = sdg.add %16, %17[t] in (t) : (tensor<bf16>, tensor<bf16>) -> tensor<bf16>
    %19 = sdg.grad %18 wrt %3 allow_unused : (tensor<bf16>, tensor<5x5xbf16>) -> tensor<5x5xbf16>
    sdg.output "half4" %19 : tensor<5x5xbf16>
  }
}
