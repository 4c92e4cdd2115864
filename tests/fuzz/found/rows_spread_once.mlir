// the gradient of a gradient by rows of a range, whose readers are sought among all points: they are spread out once
builtin.module {
  sdg.program @random dims(b: B, t: 3) {
    %0 = sdg.input "x0" in (b, t) : tensor<f32>
    %1 = sdg.constant 1.0 : tensor<f32>
    %2 = sdg.merge {2 * b < B : %0[b, t], true : %1} in (b, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %3 = sdg.merge {b >= 1 and t + 1 < 3 : %4[b - 1, t + 1], true : %1} in (b, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %4 = sdg.sub %3[b, t], %2[b, t] in (b, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %5 = sdg.sigmoid %4[b, 0:t + 1] in (b, t) : (tensor<f32>) -> tensor<?xf32, #sdg.size<t + 1>>
    %6 = sdg.sum %5[b, t] axes [0] in (b, t) : (tensor<?xf32, #sdg.size<t + 1>>) -> tensor<f32>
    %7 = sdg.grad %6 wrt %0 in (b, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %8 = sdg.grad %7 wrt %0 in (b, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    sdg.output "single0" %8[b, t] in (b, t) : tensor<f32>
  }
}
