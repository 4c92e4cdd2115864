// A recurrence that only accumulates is a reduction, or a running sum along an axis, where the dim is no loop then.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-lift | filecheck %s

sdg.program @last dims(t: T) where T >= 1 {
  %x = sdg.input "x" in (t) : tensor<4x8xf32>
  %d = sdg.input "d" in (t) : tensor<4x2xf32>
  %g = sdg.contract "bk,bn->kn" %x[t], %d[t] in (t) : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %0 = sdg.add %s[t - 1], %g[t] in (t: 1 to T) : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %s = sdg.merge {t = 0 : %g[t], t > 0 : %0[t]} in (t) : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  sdg.output "s" %s[T - 1] : tensor<8x2xf32>
}

// CHECK-LABEL: sdg.program @last
// CHECK:         %g = sdg.contract "bk,bn->kn" %x[t], %d[t] in (t)
// CHECK-NEXT:    %s = sdg.sum %g[0:T] axes [0] : (tensor<8x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT:    sdg.output "s" %s : tensor<8x2xf32>

// -----

// downwards, before the row of the point, from a value of its own
sdg.program @state dims(i: I, t: T) where T >= 1 {
  %x = sdg.input "x" in (i, t) : tensor<4xf32>
  %w = sdg.input "w" : tensor<4x4xf32>
  %a = sdg.input "a" in (i) : tensor<4xf32>
  %g = sdg.contract "k,kn->n" %x[i, t], %w in (i, t) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %s = sdg.merge {t = T - 1 : %a[i], t < T - 1 : %h[i, t + 1]} in (i, t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %h = sdg.maximum %g[i, t], %s[i, t] in (i, t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "before" %s[i, 0] in (i) : tensor<4xf32>
  sdg.output "after" %h[i, 0] in (i) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @state
// CHECK:         [[rest:%[a-z0-9_]+]] = sdg.max %g[i, 1:T] axes [0] in (i)
// CHECK-NEXT:    [[before:%[a-z0-9_]+]] = sdg.maximum %a[i], [[rest]][i] in (i)
// CHECK-NEXT:    [[all:%[a-z0-9_]+]] = sdg.max %g[i, 0:T] axes [0] in (i)
// CHECK-NEXT:    [[after:%[a-z0-9_]+]] = sdg.maximum %a[i], [[all]][i] in (i)
// CHECK-NEXT:    sdg.output "before" [[before]][i]
// CHECK-NEXT:    sdg.output "after" [[after]][i]

// -----

// read at each point: a running sum, whose axis is sliced
sdg.program @each dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %w = sdg.input "w" : tensor<4x4xf32>
  %0 = sdg.add %s[t + 1], %x[t] in (t: 0 to T - 1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.merge {t = T - 1 : %x[t], t < T - 1 : %0[t]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = sdg.contract "k,kn->n" %s[t], %w in (t) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @each
// CHECK:         %s = sdg.cumsum %x[0:T] axis 0 reverse : (tensor<4xf32>) -> tensor<?x4xf32, #sdg.size<T>>
// CHECK-NEXT:    [[row:%[0-9]+]] = sdg.slice %s take [t, 0:4] in (t)
// CHECK-NEXT:    %y = sdg.contract "k,kn->n" [[row]][t], %w in (t)
