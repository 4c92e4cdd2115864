// rows of several extents, read at one point and at all: the gradient of the one has its extents, beside the others
builtin.module {
  sdg.program @random dims(i: 4) {
    %3 = sdg.parameter "square" : tensor<3x3xf32>
    %5 = sdg.pad %3 low [i, 0] high [1, 1] value 1.0 in (i) : (tensor<3x3xf32>) -> tensor<?x4xf32, #sdg.size<i + 4>>
    %11 = sdg.softmax %5[i] axis 0 in (i) : (tensor<?x4xf32, #sdg.size<i + 4>>) -> tensor<?x4xf32, #sdg.size<i + 4>>
    %12 = sdg.tanh %11[3] : (tensor<?x4xf32, #sdg.size<i + 4>>) -> tensor<7x4xf32>
    %14 = sdg.sum %12 axes [0, 1] : (tensor<7x4xf32>) -> tensor<f32>
    %15 = sdg.sum %11[i] axes [0, 1] in (i) : (tensor<?x4xf32, #sdg.size<i + 4>>) -> tensor<f32>
    %16 = sdg.add %14, %15[i] in (i) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %18 = sdg.grad %16 wrt %3 allow_unused : (tensor<f32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    sdg.output "single4" %18 : tensor<3x3xf32>
  }
}
