// A sum over all steps, of rows that a loop makes, is kept as it runs.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-accumulate | filecheck %s
// RUN: tempo-opt %s --split-input-file -p 'sdg-accumulate,sdg-vectorize,sdg-simplify,sdg-reduce-domain,sdg-schedule,loop-form-kernels,loop-plan-storage' | filecheck %s --check-prefix=MEMORY

// the gradient of weights that all steps share: learning from returns over 3 steps runs 2 steps after acting
sdg.program @gradient dims(t: T) {
  %w = sdg.parameter "w" : tensor<32x4xf32>
  %a = sdg.input "a" in (t) : tensor<16x32xf32>
  %x = sdg.merge {t = 0 : %a[t], t > 0 : %x1[t - 1]} in (t) : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  %x1 = sdg.tanh %x[t] in (t) : (tensor<16x32xf32>) -> tensor<16x32xf32>
  %y = sdg.contract "bk,kn->bn" %x[t], %w in (t) : (tensor<16x32xf32>, tensor<32x4xf32>) -> tensor<16x4xf32>
  %d = sdg.sum %y[t:min(t + 3, T)] axes [0] in (t) : (tensor<16x4xf32>) -> tensor<16x4xf32>
  %g = sdg.contract "bk,bn->kn" %x[t], %d[t] in (t) : (tensor<16x32xf32>, tensor<16x4xf32>) -> tensor<32x4xf32>
  %s = sdg.sum %g[0:T] axes [0] : (tensor<32x4xf32>) -> tensor<32x4xf32>
  sdg.output "s" %s : tensor<32x4xf32>
}

// CHECK-LABEL: sdg.program @gradient
// CHECK:         %g = sdg.contract "bk,bn->kn" %x[t], %d[t] in (t)
// CHECK-NEXT:    %0 = sdg.constant 0.0 : tensor<32x4xf32>
// CHECK-NEXT:    %s = sdg.merge {t = 0 : %0, t > 0 : %s_1[t - 1]} in (t)
// CHECK-NEXT:    %s_1 = sdg.add %s[t], %g[t] in (t)
// CHECK-NEXT:    %s_2 = sdg.merge {T = 0 : %0, T > 0 : %s_1[T - 1]} :
// CHECK-NEXT:    sdg.output "s" %s_2

// one loop, few rows, one sum in place
// MEMORY-LABEL: loop.program @gradient
// MEMORY:         loop.alloc : !loop.buffer<(t: ring 4) 16x32xf32>
// MEMORY-NEXT:    loop.alloc : !loop.buffer<(t: ring 3) 16x4xf32>
// MEMORY:         loop.for t = 0 to T + 2 {
// MEMORY-NOT:     loop.for
// MEMORY:         loop.kernel at (t = t - 2) ins({{.*}}%s_1 = %s) outs(%s)

// -----

// a product over a range, a mean, extremes, for each i; no case for T = 0 where there is a step
sdg.program @kinds dims(i: I, t: T) where T >= 1 {
  %a = sdg.input "a" in (i, t) : tensor<16x8xf32>
  %x = sdg.merge {t = 0 : %a[i, t], t > 0 : %x1[i, t - 1]} in (i, t) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %x1 = sdg.tanh %x[i, t] in (i, t) : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %p = sdg.contract "tbk,tbn->kn" %x[i, 0:T], %a[i, 0:T] in (i) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %m = sdg.mean %x[i, 0:T] axes [0, 1] in (i) : (tensor<16x8xf32>) -> tensor<8xf32>
  %h = sdg.max %x[i, 0:T] axes [0, 1, 2] in (i) : (tensor<16x8xf32>) -> tensor<f32>
  sdg.output "p" %p[i] in (i) : tensor<8x8xf32>
  sdg.output "m" %m[i] in (i) : tensor<8xf32>
  sdg.output "h" %h[i] in (i) : tensor<f32>
}

// CHECK-LABEL: sdg.program @kinds
// CHECK:         [[row:%[0-9]+]] = sdg.contract "bk,bn->kn" %x[i, t], %a[i, t] in (i, t)
// CHECK-NEXT:    %p = sdg.merge {t = 0 : {{%[0-9]+}}, t > 0 : %p_1[i, t - 1]} in (i, t)
// CHECK-NEXT:    %p_1 = sdg.add %p[i, t], [[row]][i, t] in (i, t)
// CHECK-NEXT:    %p_2 = sdg.broadcast %p_1[i, T - 1] in (i)
// CHECK:         sdg.sum %x[i, t] axes [0] in (i, t)
// CHECK:         sdg.div {{.*}} in (i)
// CHECK:         sdg.constant -inf
// CHECK:         sdg.maximum %h[i, t], {{.*}} in (i, t)

// -----

// back-propagation through time: what the way back makes is summed as it goes down, where there is no memory for it
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-accumulate{memory=0} | filecheck %s --check-prefix=BACK
// RUN: tempo-opt %s --split-input-file -p 'sdg-accumulate{memory=0},sdg-vectorize,sdg-simplify,sdg-reduce-domain,sdg-schedule,loop-form-kernels,loop-plan-storage' | filecheck %s --check-prefix=ONE

// BACK-LABEL: sdg.program @back
// BACK:         %g = sdg.contract "bk,bn->kn" %h[t], %b[t] in (t)
// BACK:         %w = sdg.merge {t = T - 1 : %{{.*}}, t < T - 1 : %w_1[t + 1]} in (t)
// BACK-NEXT:    %w_1 = sdg.add %w[t], %g[t] in (t)
// BACK:         sdg.merge {T = 0 : %{{.*}}, T > 0 : %w_1[0]}

// ONE-LABEL: loop.program @back
// ONE:         loop.for t = T - 1 down to 0 {
// ONE:           outs(%w)
sdg.program @back dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<16x32xf32>
  %zero = sdg.constant 0.0 : tensor<16x32xf32>
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  %s1 = sdg.add %s[t], %x[t] in (t) : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  %h = sdg.tanh %s1[t] in (t) : (tensor<16x32xf32>) -> tensor<16x32xf32>
  %n = sdg.merge {t = T - 1 : %zero, t < T - 1 : %b[t + 1]} in (t) : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  %n1 = sdg.mul %n[t], %h[t] in (t) : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  %b = sdg.add %n1[t], %x[t] in (t) : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  %g = sdg.contract "bk,bn->kn" %h[t], %b[t] in (t) : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
  %w = sdg.sum %g[0:T] axes [0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
  sdg.output "w" %w : tensor<32x32xf32>
}
