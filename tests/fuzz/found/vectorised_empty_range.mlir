// vectorised along i, a read of no point of a range reads a point
builtin.module {
  sdg.program @random dims(b: B, i: B, t: 1) {
    %0 = sdg.constant 1.0 : tensor<f32>
    %1 = sdg.input "x0" in (b, i, t) : tensor<2xf32>
    %2 = sdg.merge {true : %1[b, 0, 0]} in (b, i, t) : (tensor<2xf32>) -> tensor<2xf32>
    %3 = sdg.contract "ab,cdb->bc" %2[0:1, 0, 0], %2[0:B, 0, 0:1] in (b, i, t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2x?xf32, #sdg.size<B>>
    %4 = sdg.tanh %3[0, i, 0] in (b, i, t) : (tensor<2x?xf32, #sdg.size<B>>) -> tensor<2x?xf32, #sdg.size<B>>
    %5 = sdg.sum %4[b, i, 0] axes [0, 1] in (b, i, t) : (tensor<2x?xf32, #sdg.size<B>>) -> tensor<f32>
    %6 = sdg.add %5[b, i, 0], %0 in (b, i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %7 = sdg.grad %6 wrt %1 allow_unused in (b, i, t) : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
    sdg.output "single2" %7[0, 0, 0] in (b, i) : tensor<2xf32>
  }
}
