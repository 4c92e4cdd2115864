// What stays one recurrence.
// RUN: tempo-opt %s --remarks -p sdg-split --split-input-file 2>&1 | filecheck %s

// The first steps read what later ones make.

// CHECK: not split: its first steps read what later ones make
// CHECK-LABEL: sdg.program @later
// CHECK:         %w = sdg.merge {t < P : %x[t], t = T - 1 : %x[t], t >= P : %g[t + 1]} in (t)
sdg.program @later dims(t: T, p: P) where 1 <= P <= T {
  %x = sdg.input "x" in (t) : tensor<3xf32>
  %w = sdg.merge {t < P : %x[t], t = T - 1 : %x[t], t >= P : %g[t + 1]} in (t) : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %following = sdg.merge {t = T - 1 : %x[t], t < T - 1 : %g[t + 1]} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %g = sdg.add %w[t], %following[t] in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "g" %g[t] in (t) : tensor<3xf32>
}

// -----

// A state begins with one step, a number: no prompt is worth it.

// CHECK-LABEL: sdg.program @state
// CHECK-COUNT-1: sdg.tanh
// CHECK-NOT:     sdg.tanh
sdg.program @state dims(t: T) {
  %zero = sdg.constant 0.0 : tensor<3xf32>
  %s = sdg.merge {t < 1 : %zero, t > 0 : %h[t - 1]} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.tanh %s[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.output "h" %h[t] in (t) : tensor<3xf32>
}
