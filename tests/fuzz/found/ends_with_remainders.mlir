// an end of a range of readers that isl gives by divisions of its own, which it had not worked out
builtin.module {
  sdg.program @random dims(b: B, t: T) {
    %0 = sdg.constant 1.0 : tensor<f32>
    %1 = sdg.input "x1" in (b, t) : tensor<2x2xf32>
    %2 = sdg.contract "ab,ba->b" %1[b, t mod 2], %1[b, t] in (b, t) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2xf32>
    %3 = sdg.parameter "single_state7" : tensor<2xf32>
    %4 = sdg.merge {b = 0 and t = 0 : %3, t > 0 : %5[b, t - 1], b > 0 and t = 0 : %5[b - 1, T - 1]} in (b, t) : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %5 = sdg.tanh %2[b, t] in (b, t) : (tensor<2xf32>) -> tensor<2xf32>
    %6 = sdg.sum %4[b, t] axes [0] in (b, t) : (tensor<2xf32>) -> tensor<f32>
    %7 = sdg.add %0, %6[b, t] in (b, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %8 = sdg.grad %7 wrt %1 allow_unused in (b, t) : (tensor<f32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    sdg.output "single4" %8[b, t] in (b, t) : tensor<2x2xf32>
  }
}
