// RUN: tempo-opt %s --check-each -p loop-form-kernels --split-input-file | filecheck %s

// A chain of elementwise ops behind a contraction is one kernel; what only it uses has no buffer. Values needed later are
// written too, if they have the shape of the rest.

// CHECK-LABEL: loop.program @rnn
// CHECK-NOT:     loop.alloc {{.*}}8xf32
// CHECK:         loop.kernel at (t = t) ins(%s_1 = %s[t], %w_1 = %w, %x_1 = %x[t]) outs(%h[t], %d[t]) {
// CHECK-NEXT:      %p = sdg.contract "bk,kn->bn" %s_1, %w_1
// CHECK-NEXT:      %q = sdg.add %x_1, %p
// CHECK-NEXT:      %h_1 = sdg.tanh %q
// CHECK-NEXT:      %d_1 = sdg.neg %h_1
// CHECK-NEXT:      loop.yield %h_1, %d_1
loop.program @rnn dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 2x4xf32>
  %s = loop.input "s" : !loop.buffer<(t: full) 2x4xf32>
  %w = loop.parameter "w" : !loop.buffer<4x4xf32>
  %h = loop.output "h" : !loop.buffer<(t: full) 2x4xf32>
  %d = loop.output "d" : !loop.buffer<(t: full) 2x4xf32>
  %p = loop.alloc : !loop.buffer<(t: full) 2x4xf32>
  %q = loop.alloc : !loop.buffer<(t: full) 2x4xf32>
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%a = %s[t], %b = %w) outs(%p[t]) {
      %r = sdg.contract "bk,kn->bn" %a, %b : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
      loop.yield %r : tensor<2x4xf32>
    }
    loop.compute at (t = t) ins(%a = %x[t], %b = %p[t]) outs(%q[t]) {
      %r = sdg.add %a, %b : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      loop.yield %r : tensor<2x4xf32>
    }
    loop.compute at (t = t) ins(%a = %q[t]) outs(%h[t]) {
      %r = sdg.tanh %a : (tensor<2x4xf32>) -> tensor<2x4xf32>
      loop.yield %r : tensor<2x4xf32>
    }
    loop.compute at (t = t) ins(%a = %h[t]) outs(%d[t]) {
      %r = sdg.neg %a : (tensor<2x4xf32>) -> tensor<2x4xf32>
      loop.yield %r : tensor<2x4xf32>
    }
  }
}

// -----

// Guards that test the same are one, and what moves elements only is computed where it is read.

// CHECK-LABEL: loop.program @guards
// CHECK:         loop.if t > 0 {
// CHECK-NEXT:      loop.kernel at (t = t) ins(%x_1 = %x[t]) outs(%y[t]) {
// CHECK-NEXT:        %m = sdg.transpose %x_1 permutation [1, 0]
// CHECK-NEXT:        %y_1 = sdg.exp %m
// CHECK:           loop.kernel at (t = t) ins(%x_1 = %x[t]) outs(%z[t]) {
// CHECK-NOT:     loop.if
loop.program @guards dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 2x4xf32>
  %m = loop.alloc : !loop.buffer<(t: full) 4x2xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 4x2xf32>
  %z = loop.output "z" : !loop.buffer<(t: full) 2xf32>
  loop.for t = 0 to T {
    loop.if t > 0 {
      loop.compute at (t = t) ins(%0 = %x[t]) outs(%m[t]) {
        %r = sdg.transpose %0 permutation [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
        loop.yield %r : tensor<4x2xf32>
      }
      loop.compute at (t = t) ins(%0 = %m[t]) outs(%y[t]) {
        %r = sdg.exp %0 : (tensor<4x2xf32>) -> tensor<4x2xf32>
        loop.yield %r : tensor<4x2xf32>
      }
    }
    loop.if t > 0 {
      loop.compute at (t = t) ins(%0 = %m[t]) outs(%z[t]) {
        %r = sdg.sum %0 axes [0] : (tensor<4x2xf32>) -> tensor<2xf32>
        loop.yield %r : tensor<2xf32>
      }
    }
  }
}
