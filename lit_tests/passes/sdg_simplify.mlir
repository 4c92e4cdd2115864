// Chains of ops that only move, scale or repeat elements become one op, or none; NaN and infinity are kept.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-simplify | filecheck %s

sdg.program @folded_into_the_contraction dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4x8xf32>
  %w = sdg.input "w" : tensor<4x2xf32>
  %one = sdg.constant 1.0 : tensor<f32>
  %xt = sdg.transpose %x[t] permutation [1, 0] in (t) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %p = sdg.contract "kb,bn->kn" %xt[t], %w in (t) : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %s = sdg.sum %p[t] axes [0] in (t) : (tensor<8x2xf32>) -> tensor<2xf32>
  %y = sdg.mul %s[t - 1], %one in (t: 1 to T) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  sdg.output "y" %y[t] in (t: 1 to T) : tensor<2xf32>
}

// CHECK-LABEL: sdg.program @folded_into_the_contraction dims(t: T) {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<4x8xf32>
// CHECK-NEXT:    %w = sdg.input "w" : tensor<4x2xf32>
// CHECK-NEXT:    %s = sdg.contract "bk,bn->n" %x[t], %w in (t) : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    sdg.output "y" %s[t - 1] in (t: 1 to T) : tensor<2xf32>
// CHECK-NEXT:  }

// -----

sdg.program @accesses_compose dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %a = sdg.neg %x[T - 1 - t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %b = sdg.neg %a[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %c = sdg.reshape %b[T - 1 - t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %d = sdg.merge {t = 0 : %c[0], t > 0 : %c[t]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "d" %d[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @accesses_compose dims(t: T) {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<4xf32>
// CHECK-NEXT:    sdg.output "d" %x[t] in (t) : tensor<4xf32>
// CHECK-NEXT:  }

// -----

// chains of ops that move elements become one; integers are regrouped
sdg.program @chains dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3x4xf32>
  %n = sdg.input "n" in (t) : tensor<4xi32>
  %a = sdg.transpose %x[t] permutation [1, 0] in (t) : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %s = sdg.sum %a[t] axes [0] in (t) : (tensor<4x3xf32>) -> tensor<3xf32>
  %p = sdg.pad %s[t] low [t] high [1] value 0.0 in (t) : (tensor<3xf32>) -> tensor<?xf32, #sdg.size<t + 4>>
  %q = sdg.slice %p[t] take [t:t + 2] in (t) : (tensor<?xf32, #sdg.size<t + 4>>) -> tensor<2xf32>
  %c = sdg.constant 5 : tensor<i32>
  %i = sdg.add %n[t], %c in (t) : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  %j = sdg.sub %i[t], %n[t] in (t) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %k = sdg.sub %i[t], %c in (t) : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  sdg.output "q" %q[t] in (t) : tensor<2xf32>
  sdg.output "j" %j[t] in (t) : tensor<4xi32>
  sdg.output "k" %k[t] in (t) : tensor<4xi32>
}

// CHECK-LABEL: sdg.program @chains
// CHECK:         [[sum:%[a-z0-9]+]] = sdg.sum %x[t] axes [1] in (t)
// CHECK-NEXT:    [[slice:%[a-z0-9]+]] = sdg.slice [[sum]][t] take [0:2] in (t)
// CHECK:         sdg.output "q" [[slice]][t]
// CHECK:         sdg.output "k" %n[t]

// -----

sdg.program @indices dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %y = sdg.neg %x[max(0, min(t, T))] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @indices
// CHECK:         %y = sdg.neg %x[t] in (t)

// -----

sdg.program @contraction_of_one dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4x2xf32>
  %a = sdg.contract "ab->ba" %x[t] in (t) : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %b = sdg.contract "ab->a" %x[t] in (t) : (tensor<4x2xf32>) -> tensor<4xf32>
  %third = sdg.constant 3.0 : tensor<f32>
  %c = sdg.div %x[t], %third in (t) : (tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xf32>
  sdg.output "a" %a[t] in (t) : tensor<2x4xf32>
  sdg.output "b" %b[t] in (t) : tensor<4xf32>
  sdg.output "c" %c[t] in (t) : tensor<4x2xf32>
}

// CHECK-LABEL: sdg.program @contraction_of_one
// CHECK:         %a = sdg.transpose %x[t] permutation [1, 0] in (t)
// CHECK-NEXT:    %b = sdg.sum %x[t] axes [1] in (t)
// CHECK:         %c = sdg.div %x[t], %third in (t)

// -----

// a dim of one point
sdg.program @unit_dims dims(i: I, e: 1) {
  %x = sdg.input "x" in (i) : tensor<4xf32>
  %first = sdg.parameter "w" : tensor<4xf32>
  %w = sdg.merge {i = 0 and e = 0 : %first, true : %next[i - 1, 0]} in (i, e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a = sdg.mul %w[i, e], %x[i] in (i, e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %next = sdg.sub %w[i, e], %a[i, e] in (i, e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %step = sdg.index e - call.start.e in (e) : tensor<i64>
  %kept = sdg.neg %w[i, e] in (i, e) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "a" %a[i, e] in (i, e) : tensor<4xf32>
  sdg.output "step" %step[e] in (e) : tensor<i64>
  sdg.output "kept" %kept[i, 0:1] in (i) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @unit_dims
// CHECK:         %w = sdg.merge {i = 0 : %first, true : %next[i - 1]} in (i)
// CHECK-NEXT:    %a = sdg.mul %w[i], %x[i] in (i)
// CHECK-NEXT:    %next = sdg.sub %w[i], %a[i] in (i)
// CHECK-NEXT:    %step = sdg.index e - call.start.e in (e)
// CHECK-NEXT:    %kept = sdg.neg %w[i] in (i, e)
// CHECK-NEXT:    sdg.output "a" %a[i] in (i, e)
// CHECK-NEXT:    sdg.output "step" %step[0] in (e)
