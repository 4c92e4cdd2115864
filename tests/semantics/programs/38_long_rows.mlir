// Case 38: row 319 begins beyond 2 ** 31 elements.
sdg.program @long_rows dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<7864320xf32>
  %0 = sdg.slice %x[t] take [0] in (t) : (tensor<7864320xf32>) -> tensor<f32>
  %1 = sdg.constant 2.0 : tensor<f32>
  %2 = sdg.mul %0[t], %1 in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "y" %2[t] in (t) : tensor<f32>
}
