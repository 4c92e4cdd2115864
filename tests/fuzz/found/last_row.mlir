// a value over no dim lies in the last row only where there is one
builtin.module {
  sdg.program @random dims(b: B, i: B, t: 1) {
    %0 = sdg.constant 1.0 : tensor<f32>
    %1 = sdg.input "x0" in (b, i, t) : tensor<5xf32>
    %2 = sdg.merge {true : %1[0, 0, 0]} in (b, i, t) : (tensor<5xf32>) -> tensor<5xf32>
    %3 = sdg.contract "ab,cdb->bc" %2[b:b + 1, i, t], %2[0:B, B - 1, t:1] in (b, i, t) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5x?xf32, #sdg.size<B>>
    %4 = sdg.tanh %3[b, i, t] in (b, i, t) : (tensor<5x?xf32, #sdg.size<B>>) -> tensor<5x?xf32, #sdg.size<B>>
    %5 = sdg.sum %4[b, i, t] axes [0, 1] in (b, i, t) : (tensor<5x?xf32, #sdg.size<B>>) -> tensor<f32>
    %6 = sdg.add %5[b, i, t], %0 in (b, i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %7 = sdg.grad %6 wrt %1 allow_unused in (b, i, t) : (tensor<f32>, tensor<5xf32>) -> tensor<5xf32>
    sdg.output "single2" %7[b, i, 0] in (b, i) : tensor<5xf32>
  }
}
