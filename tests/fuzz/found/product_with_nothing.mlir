// NaN beside the sum over nothing in a product
builtin.module {
  sdg.program @random dims(b: B, t: T) where P <= B and T >= 1 {
    %0 = sdg.input "x2" in (b, t) : tensor<f32>
    %1 = sdg.constant -2.5 : tensor<f32>
    %2 = sdg.merge {t + 1 >= 0 and t + 1 < B : %0[t + 1, max(0, t - 2)], true : %1} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %3 = sdg.constant 0.5 : tensor<f32>
    %4 = sdg.merge {b + 1 >= 0 and b + 1 < T : %2[b + 1], true : %3} in (b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %5 = sdg.sum %4[0:B] axes [0] in (b) : (tensor<f32>) -> tensor<f32>
    %6 = sdg.constant 1.0 : tensor<f32>
    %7 = sdg.contract "a,b,->a" %5[0:1], %5[0:b], %6 in (b) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<1xf32>
    %8 = sdg.sum %7[b] axes [0] in (b) : (tensor<1xf32>) -> tensor<f32>
    sdg.output "single0" %8[b] in (b) : tensor<f32>
  }
}
