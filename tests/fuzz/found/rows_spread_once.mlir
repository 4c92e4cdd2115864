// the gradient of a gradient through a window that begins at every second step: its rows are spread out once
builtin.module {
  sdg.program @random dims(b: B, t: T) {
    %0 = sdg.constant 1.0 : tensor<f64>
    %1 = sdg.constant 1.0 : tensor<f64>
    %2 = sdg.input "x0" in (b, t) : tensor<2x1xf64>
    %3 = sdg.parameter "w1" : tensor<1x1xf64>
    %4 = sdg.constant 1.0 : tensor<2x1xf64>
    %5 = sdg.merge {true : %4} in (b, t) : (tensor<2x1xf64>) -> tensor<2x1xf64>
    %6 = sdg.constant -1.0 : tensor<2x1xf64>
    %7 = sdg.merge {2 * b >= 0 and 2 * b < B : %2[2 * b, t], true : %6} in (b, t) : (tensor<2x1xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>
    %8 = sdg.merge {b >= 2 and t + 1 < T : %9[b - 2, t + 1], true : %4} in (b, t) : (tensor<2x1xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>
    %10 = sdg.constant 0.25 : tensor<f64>
    %11 = sdg.mul %8[b, t], %10 in (b, t) : (tensor<2x1xf64>, tensor<f64>) -> tensor<2x1xf64>
    %12 = sdg.sub %11[b, t], %7[b, t] in (b, t) : (tensor<2x1xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>
    %9 = sdg.sin %12[b, t] in (b, t) : (tensor<2x1xf64>) -> tensor<2x1xf64>
    %13 = sdg.constant 0.0 : tensor<2x1xf64>
    %14 = sdg.merge {t = 0 and b >= 1 : %15[b - 1, T - 1], true : %13} in (b, t) : (tensor<2x1xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>
    %16 = sdg.merge {b - 2 >= 0 : %17[b - 2, T - 1], true : %13} in (b, t) : (tensor<2x1xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>
    %17 = sdg.maximum %14[b, t], %9[b, t] in (b, t) : (tensor<2x1xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>
    %15 = sdg.maximum %16[b, t], %5[b, t] in (b, t) : (tensor<2x1xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>
    %18 = sdg.sigmoid %17[b, 2 * (t floordiv 2):t + 1] in (b, t) : (tensor<2x1xf64>) -> tensor<?x2x1xf64, #sdg.size<t mod 2 + 1>>
    %19 = sdg.sum %18[b, t] axes [0, 1, 2] in (b, t) : (tensor<?x2x1xf64, #sdg.size<t mod 2 + 1>>) -> tensor<f64>
    %20 = sdg.add %19[b, t], %0 in (b, t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %21 = sdg.grad %20 wrt %2 allow_unused in (b, t) : (tensor<f64>, tensor<2x1xf64>) -> tensor<2x1xf64>
    %22 = sdg.sum %21[b, t] axes [0, 1] in (b, t) : (tensor<2x1xf64>) -> tensor<f64>
    %23 = sdg.add %1, %22[b, t] in (b, t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %24 = sdg.grad %23 wrt %2 allow_unused in (b, t) : (tensor<f64>, tensor<2x1xf64>) -> tensor<2x1xf64>
    sdg.output "double3" %24[b, t] in (b, t) : tensor<2x1xf64>
  }
}
