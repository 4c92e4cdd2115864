// Kernels that are not computed by rows together stay apart.
// RUN: tempo-opt %s --check-each=interp -p loop-fuse-rows --split-input-file | filecheck %s
// RUN: not tempo-opt %s -p loop-fuse-rows,loop-plan-storage,loop-lower-kernels{target=sm_90} --split-input-file 2>&1 | filecheck %s --check-prefix=GPU

// The sum over the rows is there when the last row is: what reads it runs later. Nor is one product alone worth it.

// CHECK-LABEL: loop.program @sum_between
// CHECK:         loop.compute {{.*}} outs(%h[0:T])
// CHECK:         loop.compute {{.*}} outs(%s)
// CHECK:         loop.compute {{.*}} outs(%y[0:T])
loop.program @sum_between dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 4xf32>
  %w = loop.parameter "w" : !loop.buffer<4x4xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 4xf32>
  %h = loop.alloc : !loop.buffer<(t: full) 4xf32>
  %s = loop.alloc : !loop.buffer<4xf32>
  loop.compute ins(%0 = %x[0:T], %1 = %w) outs(%h[0:T]) {
    %p = sdg.contract "bk,kn->bn" %0, %1 : (tensor<?x4xf32, #sdg.size<T>>, tensor<4x4xf32>) -> tensor<?x4xf32, #sdg.size<T>>
    loop.yield %p : tensor<?x4xf32, #sdg.size<T>>
  }
  loop.compute ins(%0 = %h[0:T]) outs(%s) {
    %p = sdg.sum %0 axes [0] : (tensor<?x4xf32, #sdg.size<T>>) -> tensor<4xf32>
    loop.yield %p : tensor<4xf32>
  }
  loop.compute ins(%0 = %x[0:T], %1 = %s) outs(%y[0:T]) {
    %p = sdg.add %0, %1 : (tensor<?x4xf32, #sdg.size<T>>, tensor<4xf32>) -> tensor<?x4xf32, #sdg.size<T>>
    loop.yield %p : tensor<?x4xf32, #sdg.size<T>>
  }
}

// -----

// A host call has to run between the two.

// CHECK-LABEL: loop.program @kept_apart
// CHECK:         loop.compute {{.*}} outs(%h)
// CHECK:         loop.host @env::@step
// CHECK:         loop.compute {{.*}} outs(%y)
loop.program @kept_apart dims(t: T) {
  %x = loop.input "x" : !loop.buffer<2048x4xf32>
  %w = loop.parameter "w" : !loop.buffer<4x4xf32>
  %y = loop.output "y" : !loop.buffer<2048x4xf32>
  %h = loop.alloc : !loop.buffer<2048x4xf32>
  %b = loop.alloc : !loop.buffer<4x4xf32>
  loop.compute ins(%0 = %x, %1 = %w) outs(%h) {
    %p = sdg.contract "bk,kn->bn" %0, %1 : (tensor<2048x4xf32>, tensor<4x4xf32>) -> tensor<2048x4xf32>
    loop.yield %p : tensor<2048x4xf32>
  }
  loop.host @env::@step ins(%h) outs(%b)
  loop.compute ins(%0 = %h, %1 = %b) outs(%y) {
    %p = sdg.contract "bk,kn->bn" %0, %1 : (tensor<2048x4xf32>, tensor<4x4xf32>) -> tensor<2048x4xf32>
    loop.yield %p : tensor<2048x4xf32>
  }
}

// -----

// GPUs take no such kernels: their programs have other blocks.

// CHECK-LABEL: loop.program @fused
// CHECK:         loop.kernel {{.*}} outs(%y)
// GPU: it is computed block by block of rows: it runs on cpu only, not on 'sm_90'
loop.program @fused dims() {
  %x = loop.input "x" : !loop.buffer<2048x4xf32>
  %w = loop.parameter "w" : !loop.buffer<4x4xf32>
  %y = loop.output "y" : !loop.buffer<2048x4xf32>
  %h = loop.alloc : !loop.buffer<2048x4xf32>
  loop.compute ins(%0 = %x, %1 = %w) outs(%h) {
    %p = sdg.contract "bk,kn->bn" %0, %1 : (tensor<2048x4xf32>, tensor<4x4xf32>) -> tensor<2048x4xf32>
    loop.yield %p : tensor<2048x4xf32>
  }
  loop.compute ins(%0 = %h, %1 = %w) outs(%y) {
    %p = sdg.contract "bk,kn->bn" %0, %1 : (tensor<2048x4xf32>, tensor<4x4xf32>) -> tensor<2048x4xf32>
    loop.yield %p : tensor<2048x4xf32>
  }
}

// -----

// Rows of two axes that an op tells apart, as one that sees a row in another shape does, are no rows of one axis.

// CHECK-LABEL: loop.program @told_apart
// CHECK:         loop.kernel
// CHECK:         loop.kernel
loop.program @told_apart dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 3x4xf32>
  %w = loop.parameter "w" : !loop.buffer<4x8xf32>
  %v = loop.parameter "v" : !loop.buffer<8x2xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 3x2xf32>
  %h = loop.alloc : !loop.buffer<(t: full) 3x8xf32>
  loop.kernel ins(%0 = %x[0:T], %1 = %w) outs(%h[0:T]) {
    %p = sdg.contract "tbk,kn->tbn" %0, %1 : (tensor<?x3x4xf32, #sdg.size<T>>, tensor<4x8xf32>) -> tensor<?x3x8xf32, #sdg.size<T>>
    %r = sdg.tanh %p : (tensor<?x3x8xf32, #sdg.size<T>>) -> tensor<?x3x8xf32, #sdg.size<T>>
    loop.yield %r : tensor<?x3x8xf32, #sdg.size<T>>
  }
  loop.kernel ins(%0 = %h[0:T], %1 = %v) outs(%y[0:T]) {
    %a = sdg.reshape %0 : (tensor<?x3x8xf32, #sdg.size<T>>) -> tensor<?x3x1x8xf32, #sdg.size<T>>
    %b = sdg.exp %a : (tensor<?x3x1x8xf32, #sdg.size<T>>) -> tensor<?x3x1x8xf32, #sdg.size<T>>
    %c = sdg.reshape %b : (tensor<?x3x1x8xf32, #sdg.size<T>>) -> tensor<?x3x8xf32, #sdg.size<T>>
    %p = sdg.contract "tbk,kn->tbn" %c, %1 : (tensor<?x3x8xf32, #sdg.size<T>>, tensor<8x2xf32>) -> tensor<?x3x2xf32, #sdg.size<T>>
    loop.yield %p : tensor<?x3x2xf32, #sdg.size<T>>
  }
}
