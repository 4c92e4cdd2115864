// Case 7: reads out of range are errors that show the offending points.
sdg.program @before dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<f32>
  // expected-error@+1 {{%a[t - 1] reads at t = -1, outside of the domain (t) of what it reads, at t = 0 (T = 1)}}
  %y = sdg.exp %a[t - 1] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
}

// -----

sdg.program @after dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<f32>
  // expected-error@+1 {{%a[t + 3] reads at t = 3, outside of the domain (t) of what it reads, at t = 0 (T = 1)}}
  %y = sdg.exp %a[t + 3] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
}

// -----

sdg.program @twice dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<f32>
  // expected-error@+1 {{%a[2 * t] reads at t = 2, outside of the domain (t) of what it reads, at t = 1 (T = 2)}}
  %y = sdg.exp %a[2 * t] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
}
