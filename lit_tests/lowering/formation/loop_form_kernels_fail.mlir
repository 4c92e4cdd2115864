// Leaves that are not one kernel stay apart.
// RUN: tempo-opt %s --check-each -p loop-form-kernels --split-input-file | filecheck %s

// A contraction is not computed again for each element that reads it: the mean reads it from memory.

// CHECK-LABEL: loop.program @mean_of_contraction
// CHECK:         loop.compute {{.*}} outs(%p[t])
// CHECK:         loop.compute {{.*}} outs(%m[t])
loop.program @mean_of_contraction dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 2x4xf32>
  %w = loop.parameter "w" : !loop.buffer<4x4xf32>
  %m = loop.output "m" : !loop.buffer<(t: full) f32>
  %p = loop.alloc : !loop.buffer<(t: full) 2x4xf32>
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%a = %x[t], %b = %w) outs(%p[t]) {
      %r = sdg.contract "bk,kn->bn" %a, %b : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
      loop.yield %r : tensor<2x4xf32>
    }
    loop.compute at (t = t) ins(%a = %p[t]) outs(%m[t]) {
      %r = sdg.mean %a axes [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
      loop.yield %r : tensor<f32>
    }
  }
}

// -----

// The host call has to run between the two, and a row of another step is no value of this kernel.

// CHECK-LABEL: loop.program @kept_apart
// CHECK:         loop.compute {{.*}} outs(%a[t])
// CHECK:         loop.host @env::@step
// CHECK:         loop.compute {{.*}} outs(%c[t])
// CHECK:         loop.compute {{.*}} outs(%d[t])
loop.program @kept_apart dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 4xf32>
  %a = loop.alloc : !loop.buffer<(t: full) 4xf32>
  %b = loop.alloc : !loop.buffer<(t: full) 4xf32>
  %c = loop.output "c" : !loop.buffer<(t: full) 4xf32>
  %d = loop.output "d" : !loop.buffer<(t: full) 4xf32>
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%0 = %x[t]) outs(%a[t]) {
      %r = sdg.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
      loop.yield %r : tensor<4xf32>
    }
    loop.host @env::@step at (t = t) ins(%a[t]) outs(%b[t])
    loop.compute at (t = t) ins(%0 = %a[t], %1 = %b[t]) outs(%c[t]) {
      %r = sdg.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      loop.yield %r : tensor<4xf32>
    }
    loop.compute at (t = t) ins(%0 = %c[0]) outs(%d[t]) {
      %r = sdg.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
      loop.yield %r : tensor<4xf32>
    }
  }
}

// -----

// A kernel stands at one point, and a draw depends on its own.

// CHECK-LABEL: loop.program @two_points
// CHECK:         loop.compute at (t = 1) outs(%a[1])
// CHECK:         loop.kernel at (t = 2) {{.*}} outs(%y)
loop.program @two_points dims(t: T) where T >= 3 {
  %y = loop.output "y" : !loop.buffer<4xf32>
  %a = loop.alloc : !loop.buffer<(t: full to 2) 4xf32>
  %b = loop.alloc : !loop.buffer<(t: full to 3) 4xf32>
  loop.compute at (t = 1) outs(%a[1]) {
    %r = sdg.random uniform id 1 : tensor<4xf32>
    loop.yield %r : tensor<4xf32>
  }
  loop.compute at (t = 2) outs(%b[2]) {
    %r = sdg.random uniform id 2 : tensor<4xf32>
    loop.yield %r : tensor<4xf32>
  }
  loop.compute ins(%0 = %a[1], %1 = %b[2]) outs(%y) {
    %r = sdg.sub %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    loop.yield %r : tensor<4xf32>
  }
}
