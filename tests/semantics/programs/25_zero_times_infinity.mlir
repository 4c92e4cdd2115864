// Case 25: 0 * x and x - x are not folded.
sdg.program @zero_times_infinity {
  %x = sdg.input "x" : tensor<4xf32>
  %0 = sdg.constant 0.0 : tensor<f32>
  %1 = sdg.mul %x, %0 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  sdg.output "zero" %1 : tensor<4xf32>
  %2 = sdg.sub %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "none" %2 : tensor<4xf32>
}
