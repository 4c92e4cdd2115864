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

// -----

sdg.program @back_and_forth dims(i: I, t: T) where I <= T {
  %x = sdg.input "x" in (i, t) : tensor<f32>
  %sim = sdg.host_state @sim : !sdg.token
  // expected-error@+1 {{the calls of @sim::@back, which carry gradients back, have no order: it is called in (i: 1 to I, t: 0 to i)}}
  %y, %e = sdg.host @sim::@step(%x[i, t]) after %e0[i, t] gradient @back in (i, t where t < i) : (tensor<f32>, !sdg.token) -> (tensor<f32>, !sdg.token)
  %e0 = sdg.merge {i = 1 and t = 0 : %sim, t = 0 : %e[i - 1, i - 2], true : %e[i, t - 1]} in (i, t where t < i) : (!sdg.token, !sdg.token, !sdg.token) -> !sdg.token
  %dx = sdg.grad %y wrt %x in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "dx" %dx[i, t] in (i, t) : tensor<f32>
}

// -----

sdg.program @nothing_to_carry_back {
  %x = sdg.input "x" : tensor<i64>
  %sim = sdg.host_state @sim : !sdg.token
  // expected-error@+1 {{the call of @step has no float argument, so it needs no gradient}}
  %y, %e = sdg.host @sim::@step(%x) after %sim gradient @back : (tensor<i64>, !sdg.token) -> (tensor<f32>, !sdg.token)
}

// -----

sdg.program @no_stand_in {
  %x = sdg.input "x" : tensor<f32>
  // expected-error@+1 {{operand #1 of sdg.custom_gradient is made by sdg.cotangent}}
  %y = sdg.custom_gradient %x, %x, %x, %x : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "y" %y : tensor<f32>
}

// -----

// The same op with a stand-in before it does not excuse this one.
sdg.program @one_stand_in {
  %x = sdg.input "x" : tensor<f32>
  %dy = sdg.cotangent : tensor<f32>
  %y = sdg.custom_gradient %x, %dy, %x, %dy : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  // expected-error@+1 {{operand #1 of sdg.custom_gradient is made by sdg.cotangent}}
  %z = sdg.custom_gradient %x, %x, %x, %x : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "y" %y : tensor<f32>
  sdg.output "z" %z : tensor<f32>
}

// -----

sdg.program @no_pair {
  %x = sdg.input "x" : tensor<f32>
  %dy = sdg.cotangent : tensor<f32>
  // expected-error@+1 {{sdg.custom_gradient takes a value, its cotangent and pairs, got 3 operands}}
  %y = sdg.custom_gradient %x, %dy, %x : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "y" %y : tensor<f32>
}

// -----

sdg.program @leaks {
  %x = sdg.input "x" : tensor<f32>
  %dy = sdg.cotangent : tensor<f32>
  %y = sdg.custom_gradient %x, %dy, %x, %dy : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "y" %y : tensor<f32>
  // expected-error@+1 {{this uses the gradient that a custom gradient gets: its function may only return tensors}}
  sdg.output "dy" %dy : tensor<f32>
}

// -----

sdg.program @calls_at_several_points dims(b: B) where B >= 1 {
  %x = sdg.input "x" in (b) : tensor<f32>
  %sim = sdg.host_state @sim : !sdg.token
  // expected-error@+1 {{one call makes those at all points of b, of which the method takes one: run sdg-autodiff before sdg-vectorize}}
  %y, %e = sdg.host @sim::@step(%x[0:B]) after %sim gradient @back vectorized @step_all along (b) over (b) : (tensor<f32>, !sdg.token) -> (tensor<?xf32, #sdg.size<B>>, !sdg.token)
  %loss = sdg.sum %y axes [0] : (tensor<?xf32, #sdg.size<B>>) -> tensor<f32>
  %dx = sdg.grad %loss wrt %x in (b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "dx" %dx[b] in (b) : tensor<f32>
}
