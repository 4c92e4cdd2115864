// Case 12: a gap, a cycle, and a case that is never reached.
sdg.program @gap dims(t: T) where T >= 5 {
  %a = sdg.input "a" in (t) : tensor<f32>
  // expected-error@+1 {{no case}}
  %x = sdg.merge {t = 0 : %a[t], t = 3 : %a[t]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "x" %x[t] in (t) : tensor<f32>
}

// -----

sdg.program @cycle dims(t: T) where T >= 3 {
  %a = sdg.input "a" in (t) : tensor<f32>
  // expected-error@+1 {{needs itself}}
  %x = sdg.merge {t = 0 : %a[t], t = T - 1 : %a[t], true : %y[t]} in (t) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %y = sdg.add %x[t - 1], %x[t + 1] in (t: 1 to T - 1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "x" %x[t] in (t) : tensor<f32>
}

// -----

sdg.program @never_reached dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<f32>
  // expected-error@+1 {{case #1}}
  %x = sdg.merge {t < 3 : %a[t], t < 2 : %a[t], true : %a[t]} in (t) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "x" %x[t] in (t) : tensor<f32>
}
