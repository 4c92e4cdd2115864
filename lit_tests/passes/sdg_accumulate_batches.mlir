// Sums over a dim that nothing recurs along are kept as they run where that is asked for, or where there is much between
// the products of all points: then each point is done from its activations to its share of the gradients.
// RUN: tempo-opt %s --split-input-file --check-each -p 'sdg-accumulate{dims=b}' | filecheck %s
// RUN: tempo-opt %s --split-input-file --remarks -p 'sdg-accumulate{dims=b,t}' 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: tempo-opt %s --split-input-file --check-each -p 'sdg-accumulate{dims=b},sdg-vectorize,sdg-simplify,sdg-cse,sdg-schedule,loop-form-kernels,loop-plan-storage' | filecheck %s --check-prefix=MEMORY
// RUN: tempo-opt %s --split-input-file -p sdg-accumulate | filecheck %s --check-prefix=DEFAULT
// RUN: tempo-opt %s --split-input-file -p 'sdg-accumulate{memory=0}' | filecheck %s --check-prefix=NONE
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-accumulate{dims=b},sdg-vectorize | filecheck %s --check-prefix=VECTORIZED

// micro-batches: activations and gradients of one at a time, in memory of one
sdg.program @micro_batches dims(t: T, b: B) {
  %w = sdg.parameter "w" : tensor<4x4xf32>
  %x = sdg.input "x" in (b) : tensor<16x4xf32>
  %p = sdg.contract "bk,kn->bn" %x[b], %w in (b) : (tensor<16x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32>
  %h = sdg.tanh %p[b] in (b) : (tensor<16x4xf32>) -> tensor<16x4xf32>
  %d = sdg.contract "bn,kn->bk" %h[b], %w in (b) : (tensor<16x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32>
  %g = sdg.contract "bk,bn->kn" %h[b], %d[b] in (b) : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
  %s = sdg.sum %g[0:B] axes [0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  sdg.output "s" %s : tensor<4x4xf32>
}

// CHECK-LABEL: sdg.program @micro_batches
// CHECK:         %g = sdg.contract "bk,bn->kn" %h[b], %d[b] in (b)
// CHECK-NEXT:    %0 = sdg.constant 0.0 : tensor<4x4xf32>
// CHECK-NEXT:    %s = sdg.merge {b = 0 : %0, b > 0 : %s_1[b - 1]} in (b)
// CHECK-NEXT:    %s_1 = sdg.add %s[b], %g[b] in (b)
// CHECK-NEXT:    %s_2 = sdg.merge {B = 0 : %0, B > 0 : %s_1[B - 1]} :
// DEFAULT-LABEL: sdg.program @micro_batches
// DEFAULT:         %s = sdg.sum %g[0:B] axes [0]
// NONE-LABEL:  sdg.program @micro_batches
// NONE:          %s_1 = sdg.add %s[b], %g[b] in (b)
// sdg-vectorize leaves b alone
// VECTORIZED-LABEL: sdg.program @micro_batches
// VECTORIZED:         %p = sdg.contract "bk,kn->bn" %x[b], %w in (b)
// VECTORIZED:         %g = sdg.contract "bk,bn->kn" %h[b], %d[b] in (b)
// MEMORY-LABEL: loop.program @micro_batches
// MEMORY:         loop.for b = 0 to B {
// MEMORY-NEXT:      %h = loop.alloc : !loop.buffer<16x4xf32>
// MEMORY-NEXT:      %d = loop.alloc : !loop.buffer<16x4xf32>
// MEMORY:           loop.kernel at (b = b) ins(%h_1 = %h, %d_1 = %d, %s_1 = %s) outs(%s)

// -----

// sequences, the batch inside of time: what is made on the way back is summed sequence by sequence, and not step by step
sdg.program @sequences dims(t: T, b: B) {
  %w = sdg.parameter "w" : tensor<4x4xf32>
  %x = sdg.input "x" in (t, b) : tensor<16x4xf32>
  %e = sdg.merge {t = 0 : %x[0, b], t > 0 : %h[t - 1, b]} in (t, b) : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
  %p = sdg.contract "bk,kn->bn" %e[t, b], %w in (t, b) : (tensor<16x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32>
  %h = sdg.tanh %p[t, b] in (t, b) : (tensor<16x4xf32>) -> tensor<16x4xf32>
  %d = sdg.merge {t = T - 1 : %h[t, b], t < T - 1 : %c[t + 1, b]} in (t, b) : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
  %c = sdg.contract "bn,kn->bk" %d[t, b], %w in (t, b) : (tensor<16x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32>
  %g = sdg.contract "tcbk,tcbn->kn" %e[0:T, 0:B], %d[0:T, 0:B] : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
  sdg.output "g" %g : tensor<4x4xf32>
}

// CHECK-LABEL: sdg.program @sequences dims(t: T, b: B) attributes {outermost = ["b"]} {
// CHECK:         [[row:%[0-9]+]] = sdg.contract "tbk,tbn->kn" %e[0:T, b], %d[0:T, b] in (b)
// CHECK:         %g_1 = sdg.add %g[b], [[row]][b] in (b)
// REMARK: remark: not accumulated over t: the sums over b have loops of their own
// MEMORY-LABEL: loop.program @sequences
// MEMORY:         loop.for b = 0 to B {
// MEMORY-NEXT:      %h = loop.alloc : !loop.buffer<(t: full to T + 1) 16x4xf32>
// MEMORY-NEXT:      %c = loop.alloc : !loop.buffer<(t: full to T + 1) 16x4xf32>
// MEMORY:           loop.for t = 0 to T {
// MEMORY:           loop.for t = T - 1 down to 0 {
// MEMORY:           loop.kernel at (b = b) ins({{.*}}%g_1 = %g) outs(%g)
