// RUN: tempo-opt %s --check-each=interp -p loop-split-rows | filecheck %s

// Eight programs have the blocks of rows in turn: each sums its own, and what they make is added up.

// CHECK-LABEL: loop.program @sums
// CHECK:         %[[PARTS:.*]] = loop.alloc : !loop.buffer<8x4x8xf32>
// CHECK:         loop.kernel ins(%{{.*}} = %x[0:T], %{{.*}} = %w) outs(%y[0:T], %[[PARTS]]) {
// CHECK:           %[[G:.*]] = sdg.contract "bk,bn->kn"
// CHECK-NEXT:      %[[P:.*]] = loop.parts %[[G]] into 8 : tensor<4x8xf32>
// CHECK-NEXT:      loop.yield %{{.*}}, %[[P]] :
// CHECK:         loop.compute ins(%[[A:.*]] = %[[PARTS]]) outs(%g) {
// CHECK-NEXT:      sdg.sum %[[A]] axes [0]
loop.program @sums dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 4xf32>
  %w = loop.parameter "w" : !loop.buffer<4x8xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 8xf32>
  %g = loop.output "g" : !loop.buffer<4x8xf32>
  loop.kernel ins(%0 = %x[0:T], %1 = %w) outs(%y[0:T], %g) {
    %p = sdg.contract "bk,kn->bn" %0, %1 : (tensor<?x4xf32, #sdg.size<T>>, tensor<4x8xf32>) -> tensor<?x8xf32, #sdg.size<T>>
    %s = sdg.contract "bk,bn->kn" %0, %p : (tensor<?x4xf32, #sdg.size<T>>, tensor<?x8xf32, #sdg.size<T>>) -> tensor<4x8xf32>
    loop.yield %p, %s : tensor<?x8xf32, #sdg.size<T>>, tensor<4x8xf32>
  }
}
