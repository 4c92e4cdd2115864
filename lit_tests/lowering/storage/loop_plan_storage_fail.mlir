// No room is saved where a row is still read, and nothing is planned once kernels are launched.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-schedule,loop-form-kernels,loop-plan-storage | filecheck %s
// RUN: tempo-opt %s --split-input-file --remarks -p sdg-schedule,loop-form-kernels,loop-plan-storage 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: not tempo-opt %s --split-input-file -p sdg-schedule,loop-lower-kernels,loop-plan-storage 2>&1 | filecheck %s --check-prefix=LATE

// LATE: error: kernels are launched already: put loop-plan-storage before loop-lower-kernels
// REMARK: remark: it needs an array of its own: the parameter is read after the output is written

// every row is read at the end, in reverse: no ring, no free inside of the loop
sdg.program @reversed dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %h = sdg.merge {t = 0 : %x[0], t > 0 : %g[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g = sdg.sin %h[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %y = sdg.exp %g[T - 1 - t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: loop.program @reversed
// CHECK-NOT:     ring
// CHECK:         !loop.buffer<(t: full{{.*}}) 4xf32>
// CHECK-NOT:     ring

// -----

// the state before is an output of its own after the update: the caller's array is not overwritten
sdg.program @state_read_late dims(t: T) where T >= 1 {
  %w0 = sdg.parameter "w" : tensor<4xf32>
  %w = sdg.merge {t = 0 : %w0, t > 0 : %w1[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %w1 = sdg.exp %w[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %last = sdg.sub %w1[T - 1], %w0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "w" %w1[T - 1] : tensor<4xf32>
  sdg.output "moved" %last : tensor<4xf32>
}

// CHECK-LABEL: loop.program @state_read_late
// CHECK-NOT:     donates

// -----

// the parameter is read once, after the output is written
sdg.program @read_once_late dims(t: T) {
  %w = sdg.parameter "w" : tensor<4x4xf32>
  %x = sdg.input "x" in (t) : tensor<4x4xf32>
  %sum = sdg.sum %x[0:T] axes [0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = sdg.contract "ij,jk->ik" %sum, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  sdg.output "w" %sum : tensor<4x4xf32>
  sdg.output "y" %y : tensor<4x4xf32>
}

// CHECK-LABEL: loop.program @read_once_late
// CHECK-NOT:     donates

// -----

// the last row of the step before is read in this one, so the first row of this one is not written before its loop
sdg.program @read_in_the_next_step dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : tensor<3xf32>
  %w = sdg.input "w" : tensor<3x3xf32>
  %zero = sdg.constant 0.0 : tensor<3xf32>
  %y = sdg.merge {i > 0 and t = 0 : %h[i - 1, T - 1], i = 0 or t > 0 : %x[i, t]} in (i, t)
      : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %p = sdg.contract "i,ij->j" %y[i, t], %w in (i, t) : (tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[i, t - 1]} in (i, t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.add %s[i, t], %p[i, t] in (i, t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "p" %p[i, t] in (i, t) : tensor<3xf32>
}

// CHECK-LABEL: loop.program @read_in_the_next_step
// CHECK:         %h = loop.alloc : !loop.buffer<3xf32>
// CHECK-NEXT:    loop.for i = 0 to I {
// CHECK-NEXT:      loop.for t = 0 to T {
// CHECK:             loop.compute at (i = i, t = t) ins(%a = %h) outs(%y)
// CHECK:             loop.if t = 0 {
// CHECK-NEXT:          loop.compute at (i = i, t = t) outs(%h)
// CHECK-NEXT:            sdg.constant 0.0
