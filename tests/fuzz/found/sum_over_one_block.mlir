// a sum over the blocks of a dim of which one block is all that is needed: nothing comes before it
builtin.module {
  sdg.program @random dims(i: 3) {
    %0 = sdg.constant 1.0 : tensor<f32>
    %1 = sdg.input "x1" : tensor<1xf32>
    %2 = sdg.merge {i >= 2 : %3[0], true : %1} in (i) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %3 = sdg.tanh %2[0] in (i) : (tensor<1xf32>) -> tensor<1xf32>
    %4 = sdg.sum %3[0] axes [0] in (i) : (tensor<1xf32>) -> tensor<f32>
    %5 = sdg.add %4[0], %0 in (i) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %6 = sdg.grad %5 wrt %1 allow_unused : (tensor<f32>, tensor<1xf32>) -> tensor<1xf32>
    sdg.output "single2" %6 : tensor<1xf32>
  }
}
