// What no loops compute is refused, with the shortest cycle by op and line; so is a machine that is not known.
// RUN: not tempo-opt %s -p 'sdg-schedule{target=abacus}' --split-input-file 2>&1 | filecheck %s --check-prefix=TARGET
// RUN: tempo-opt %s -p sdg-schedule --split-input-file --verify-diagnostics

sdg.program @gradient {
  %w = sdg.parameter "w" : tensor<f32>
  %loss = sdg.exp %w : (tensor<f32>) -> tensor<f32>
  // expected-error@+1 {{is not expanded: run sdg-autodiff before sdg-schedule}}
  %g = sdg.grad %loss wrt %w : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "g" %g : tensor<f32>
}

// -----

sdg.program @turning dims(t: T + T) where T >= 1 {
  %x = sdg.input "x" in (t) : tensor<f32>
  // expected-error@+2 {{no loops found that order sdg.merge %s}}
  // expected-note@+1 {{define the value as several, each with one direction of time}}
  %s = sdg.merge {0 < t < T : %h[t - 1], T <= t < T + T - 1 : %h[t + 1], t = 0 : %x[t], t > 0 : %x[t]} in (t)
      : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %h = sdg.tanh %s[t] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "h" %h[t] in (t) : tensor<f32>
}

// -----

// each needs the other at the same step
sdg.program @circle dims(t: T) {
  // expected-error@+1 {{%x needs itself: %x (}}
  %x = sdg.exp %y[t] in (t) : (tensor<f32>) -> tensor<f32>
  %y = sdg.neg %x[t] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "x" %x[t] in (t) : tensor<f32>
}

// TARGET: error: unknown target 'abacus' of sdg-schedule; use one of cpu
