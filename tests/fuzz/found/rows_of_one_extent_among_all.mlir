// rows of several extents, of which those of one extent are read by all readers, each of which is asked
builtin.module {
  sdg.program @random dims(i: 2, b: 2, t: 3) {
    %in2 = sdg.input "y" in (i, b, t) : tensor<3xf32>
    %x = sdg.pad %in2[i, b, t] low [i] high [1] value 1.0 in (i, b, t) : (tensor<3xf32>) -> tensor<?xf32, #sdg.size<i + 4>>
    %1 = sdg.tanh %x[1, min(b, t):b + 1, t:min(3, t + 3)] in (b, t) : (tensor<?xf32, #sdg.size<i + 4>>) -> tensor<?x?x5xf32, #sdg.size<b + 1 - min(b, t), min(3, t + 3) - t>>
    %2 = sdg.sum %1[b, t] axes [0, 1, 2] in (b, t) : (tensor<?x?x5xf32, #sdg.size<b + 1 - min(b, t), min(3, t + 3) - t>>) -> tensor<f32>
    %3 = sdg.sum %x[i, b, t] axes [0] in (i, b, t) : (tensor<?xf32, #sdg.size<i + 4>>) -> tensor<f32>
    %4 = sdg.mul %2[b, t], %3[i, b, t] in (i, b, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %5 = sdg.grad %4 wrt %in2 in (i, b, t) : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
    sdg.output "single0" %5[i, b, t] in (i, b, t) : tensor<3xf32>
  }
}
