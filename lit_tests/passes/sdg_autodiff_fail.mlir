// What cannot be differentiated is refused, each with the place and the way out.
// RUN: tempo-opt %s --split-input-file --verify-diagnostics -p sdg-autodiff

sdg.program @unreached dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %y = sdg.stop_gradient %x[t] in (t) : (tensor<f32>) -> tensor<f32>
  // expected-error@+1 {{%y does not depend on %x by floating-point operations}}
  %dx = sdg.grad %y wrt %x in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "dx" %dx[t] in (t) : tensor<f32>
}

// -----

sdg.program @through_a_host dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %e0 = sdg.host_state @env : !sdg.token
  %e = sdg.merge {t = 0 : %e0, t > 0 : %e1[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  // expected-error@+1 {{would flow through the host function @env::@step, by its argument %x}}
  %y, %e1 = sdg.host @env::@step(%x[t]) after %e[t] in (t) : (tensor<f32>, !sdg.token) -> (tensor<f32>, !sdg.token)
  %z = sdg.exp %y[t] in (t) : (tensor<f32>) -> tensor<f32>
  %dx = sdg.grad %z wrt %x in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "dx" %dx[t] in (t) : tensor<f32>
}

// -----

sdg.program @each_other dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %y = sdg.mul %x[t], %d2[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // expected-error@+1 {{the gradients of %y and of %z need each other}}
  %d1 = sdg.grad %y wrt %x in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %z = sdg.mul %x[t], %d1[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %d2 = sdg.grad %z wrt %x in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "dx" %d1[t] in (t) : tensor<f32>
}
