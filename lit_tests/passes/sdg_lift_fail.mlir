// What pays nothing, and what no sum says without dividing, stays a loop.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-lift | filecheck %s

// no contraction gains by it
sdg.program @a_loop_anyway dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %0 = sdg.add %s[t - 1], %x[t] in (t: 1 to T) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.merge {t = 0 : %x[t], t > 0 : %0[t]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "s" %s[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @a_loop_anyway
// CHECK:         sdg.merge

// -----

// a linear recurrence stays a loop: a closed form would divide by powers of the factor
sdg.program @discounted dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %w = sdg.input "w" : tensor<4x4xf32>
  %gamma = sdg.constant 0.9 : tensor<f32>
  %r = sdg.contract "k,kn->n" %x[t], %w in (t) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %0 = sdg.mul %g[t + 1], %gamma in (t: 0 to T - 1) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = sdg.add %r[t], %0[t] in (t: 0 to T - 1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g = sdg.merge {t = T - 1 : %r[t], t < T - 1 : %1[t]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "g" %g[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @discounted
// CHECK-NOT:     sdg.cumsum
// CHECK:         sdg.merge
