// Rows of a forward recurrence that a backward one reads are computed anew, block by block.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-remat{block=4} | filecheck %s
// RUN: tempo-opt %s --split-input-file --check-each -p 'sdg-remat{block=4},sdg-simplify,sdg-reduce-domain,sdg-dce'
// RUN: tempo-opt %s --split-input-file -p 'sdg-remat{block=4},sdg-simplify,sdg-dce,sdg-schedule,loop-form-kernels,loop-plan-storage' | filecheck %s --check-prefix=MEMORY
// RUN: tempo-opt %s --split-input-file -p 'sdg-remat{budget=3000 steps=100}' | filecheck %s --check-prefix=BUDGET

sdg.program @through_time dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<8xf32>
  %w = sdg.parameter "w" : tensor<8x8xf32>
  %zero = sdg.constant 0.0 : tensor<8xf32>
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %p = sdg.contract "k,kn->n" %s[t], %w in (t) : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
  %a = sdg.add %p[t], %x[t] in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %h = sdg.sin %a[t] in (t) : (tensor<8xf32>) -> tensor<8xf32>
  %n = sdg.merge {t = T - 1 : %zero, t < T - 1 : %q[t + 1]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %g = sdg.add %n[t], %h[t] in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %c = sdg.cos %a[t] in (t) : (tensor<8xf32>) -> tensor<8xf32>
  %d = sdg.mul %g[t], %c[t] in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %q = sdg.contract "n,kn->k" %d[t], %w in (t) : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
  %r = sdg.contract "k,n->kn" %s[t], %d[t] in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %gw = sdg.sum %r[0:T] axes [0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  sdg.output "gw" %gw : tensor<8x8xf32>
}

// CHECK-LABEL: sdg.program @through_time dims(t: T, b: (T + 3) floordiv 4, j: 4) attributes {blocks = {t = #sdg.index<[4 * b + j]>}}
// CHECK:         %s = sdg.merge {4 * b + j = 0 : %zero, 4 * b + j > 0 and j >= 1 : %h[b, j - 1], 4 * b + j > 0 : %h_kept[b - 1]} in (b, j: 0 to min(T - 4 * b, 4))
// CHECK-NEXT:    %s_again = sdg.merge {4 * b + j = 0 : %zero, 4 * b + j > 0 and j >= 1 : %h_again[b, j - 1], 4 * b + j > 0 : %h_kept[b - 1]} in (b, j: 0 to min(T - 4 * b, 4))
// CHECK:         %a_again = sdg.add %p_again[b, j], %x[4 * b + j] in (b, j: 0 to min(T - 4 * b, 4))
// CHECK-NEXT:    %h_kept = sdg.keep %h[b, 3] in (b: 0 to T floordiv 4)
// CHECK-NEXT:    %h = sdg.sin %a[b, j]
// CHECK-NEXT:    %h_again = sdg.sin %a_again[b, j]
// CHECK-NEXT:    %n = sdg.merge {4 * b + j = T - 1 : %zero, 4 * b + j < T - 1 and j < 3 : %q[b, j + 1], 4 * b + j < T - 1 : %q[b + 1, 0]}
// CHECK-NEXT:    %g = sdg.add %n[b, j], %h_again[b, j]
// CHECK-NEXT:    %c_again = sdg.cos %a_again[b, j]
// CHECK:         %r = sdg.contract "jk,jn->jkn" %s_again[b, 0:min(T - 4 * b, 4)], %d[b, 0:min(T - 4 * b, 4)] in (b)
// CHECK-NEXT:    [[part:%[0-9]+]] = sdg.sum %r[b] axes [0] in (b)
// CHECK:         %gw = sdg.merge {b = (T + 3) floordiv 4 - 1 : {{%[0-9]+}}, b < (T + 3) floordiv 4 - 1 : %gw_1[b + 1]} in (b)
// CHECK-NEXT:    %gw_1 = sdg.add %gw[b], [[part]][b] in (b)

// one row of each block, the rows of one block
// MEMORY-LABEL: loop.program @through_time
// MEMORY:         %h_kept = loop.alloc : !loop.buffer<(b: full to T floordiv 4) 8xf32>
// MEMORY-NEXT:    %q = loop.alloc : !loop.buffer<8xf32>
// MEMORY-NEXT:    loop.for b = 0 to (T + 3) floordiv 4 {
// MEMORY-NEXT:      %h = loop.alloc : !loop.buffer<(j: ring 2 to 5) 8xf32>
// MEMORY:         loop.for b = (T + 3) floordiv 4 - 1 down to 0 {
// MEMORY-NEXT:      %h_again = loop.alloc : !loop.buffer<(j: {{.*}}) 8xf32>
// MEMORY:           loop.for j = 0 to min(T - 4 * b, 4) {
// MEMORY:           loop.for j = min(T - 4 * b - 1, 3) down to 0 {

// blocks of the length that keeps least; what is left of the budget keeps products
// BUDGET-LABEL: sdg.program @through_time dims(t: T, b: (T + 2) floordiv 3, j: 3)
// BUDGET:         %p_again =

// -----

// noise is drawn anew, the same; what a host gives is kept; an outer dim stays
sdg.program @noise dims(i: I, t: T) {
  %state = sdg.host_state @sensor : !sdg.token
  %zero = sdg.constant 0.0 : tensor<2xf32>
  %e = sdg.merge {i = 0 and t = 0 : %state, t > 0 : %after[i, t - 1], true : %after[i - 1, T - 1]} in (i, t) : (!sdg.token, !sdg.token, !sdg.token) -> !sdg.token
  %z = sdg.random normal id 7 in (i, t) : tensor<2xf32>
  %y, %after = sdg.host @sensor::@read(%z[i, t]) after %e[i, t] in (i, t) : (tensor<2xf32>, !sdg.token) -> (tensor<2xf32>, !sdg.token)
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[i, t - 1]} in (i, t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %m = sdg.mul %s[i, t], %z[i, t] in (i, t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %h = sdg.add %m[i, t], %y[i, t] in (i, t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %n = sdg.merge {t = T - 1 : %zero, t < T - 1 : %g[i, t + 1]} in (i, t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %o = sdg.mul %n[i, t], %z[i, t] in (i, t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %q = sdg.mul %h[i, t], %y[i, t] in (i, t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %g = sdg.add %o[i, t], %q[i, t] in (i, t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %first = sdg.merge {T > 0 : %g[i, 0], true : %zero} in (i) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  sdg.output "g" %first[i] in (i) : tensor<2xf32>
}

// CHECK-LABEL: sdg.program @noise dims(i: I, t: T, b: (T + 3) floordiv 4, j: 4)
// CHECK:         %z = sdg.random normal id 7 at [i, {{.*}}call.start.t{{.*}}] in (i, b, j: 0 to min(T - 4 * b, 4))
// CHECK-NEXT:    %z_again = sdg.random normal id 7 at [i, {{.*}}call.start.t{{.*}}] in (i, b, j: 0 to min(T - 4 * b, 4))
// CHECK-NEXT:    %y, {{%.*}} = sdg.host @sensor::@read(%z[i, b, j]) after
// CHECK-NOT:     sdg.host
// CHECK:         %h_again = sdg.add %m_again[i, b, j], %y[i, b, j]
// CHECK:         %o = sdg.mul %n[i, b, j], %z_again[i, b, j]
// CHECK:         %q_again = sdg.mul %h_again[i, b, j], %y[i, b, j]
