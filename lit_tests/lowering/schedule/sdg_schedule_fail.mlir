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

// a cycle that closes from 60 steps on, too late for the verifier to see
sdg.program @late dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %a = sdg.exp %b[t floordiv 2] in (t) : (tensor<f32>) -> tensor<f32>
  // expected-error@+1 {{at t = 29 (T = 60)}}
  %b = sdg.merge {t + 30 < T : %a[t + 30], true : %x[t]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "b" %b[t] in (t) : tensor<f32>
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
