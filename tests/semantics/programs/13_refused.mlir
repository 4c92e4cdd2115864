// Case 13: two tensors that need each other at one step.
sdg.program @stuck dims(t: T) {
  // expected-error@+1 {{needs itself}}
  %x = sdg.merge {true : %y[t]} in (t) : (tensor<f32>) -> tensor<f32>
  %y = sdg.merge {true : %x[t]} in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "x" %x[t] in (t) : tensor<f32>
}
