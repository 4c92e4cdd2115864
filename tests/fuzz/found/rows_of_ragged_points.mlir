// rows of as many points as another dim says, of which a range is read: they are no axis
builtin.module {
  sdg.program @random dims(i: 1, t: 2) {
    %0 = sdg.constant 1.0 : tensor<f32>
    %1 = sdg.input "x1" : tensor<1x1xf32>
    %2 = sdg.input "x3" : tensor<1x1xf32>
    %3 = sdg.sum %4[0:i, 0] axes [0] in (i, t) : (tensor<f32>) -> tensor<f32>
    %5 = sdg.constant 0.0 : tensor<f32>
    %4 = sdg.mul %3[0, t], %5 in (i, t: 0 to min(i + 1, 2)) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %6 = sdg.contract ",ab,->a" %4[0, t], %2, %0 in (i, t: 0 to min(i + 1, 2)) : (tensor<f32>, tensor<1x1xf32>, tensor<f32>) -> tensor<1xf32>
    %7 = sdg.contract "ab,cb->b" %6[0, 0:1], %1 in (i) : (tensor<1xf32>, tensor<1x1xf32>) -> tensor<1xf32>
    sdg.output "single0" %7[0] in (i) : tensor<1xf32>
  }
}
