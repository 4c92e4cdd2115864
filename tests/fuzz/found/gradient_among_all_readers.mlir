// every reader of a point is asked whether it reads it, by a gradient that is the same everywhere
builtin.module {
  sdg.program @random dims(b: B, t: T) {
    %0 = sdg.input "x0" in (b, t) : tensor<f32>
    %1 = sdg.sum %0[min(b, t):b + 1, t:min(T, t + 3)] axes [0, 1] in (b, t) : (tensor<f32>) -> tensor<f32>
    %2 = sdg.grad %1 wrt %0 in (b, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    sdg.output "single0" %2[b, t] in (b, t) : tensor<f32>
  }
}
