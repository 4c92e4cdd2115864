// RUN: tempo-opt %s --check-each=interp -p loop-fuse-rows --split-input-file | filecheck %s
// RUN: tempo-opt %s --split-input-file -p loop-fuse-rows,loop-plan-storage,loop-lower-kernels | filecheck %s --check-prefix=TILE

// A layer, a loss beside it, and gradients over T rows: one kernel, which writes the sums over the rows and what
// somebody else reads, and nothing else. Its programs have blocks of 64 rows in turn; the last ones are the first program's.

// CHECK-LABEL: loop.program @learn
// CHECK-NOT:     loop.alloc
// CHECK:         loop.kernel ins(%{{.*}} = %x, %{{.*}} = %w, %{{.*}} = %v, %{{.*}} = %want) outs(%y, %gv, %gw) {
// CHECK-NEXT:      %[[P:.*]] = sdg.contract "bk,kn->bn" %{{.*}}, %{{.*}} :
// CHECK-NEXT:      %[[H:.*]] = sdg.tanh %[[P]]
// CHECK-NEXT:      %[[Y:.*]] = sdg.contract "bk,kn->bn" %[[H]], %{{.*}} :
// CHECK-NEXT:      %[[D:.*]] = sdg.sub %[[Y]]
// CHECK-NEXT:      %[[GV:.*]] = sdg.contract "bk,bn->kn" %[[H]], %[[D]]
// CHECK-NEXT:      %[[E:.*]] = sdg.contract "bn,kn->bk" %[[D]]
// CHECK-NEXT:      %[[GW:.*]] = sdg.contract "bk,bn->kn" %{{.*}}, %[[E]]
// CHECK-NEXT:      loop.yield %[[Y]], %[[GV]], %[[GW]]
// CHECK-NOT:     loop.kernel

// TILE-LABEL: loop.program @learn
// TILE-DAG:     %[[A:.*]] = loop.alloc : !loop.buffer<8x8x2xf32>
// TILE-DAG:     %[[B:.*]] = loop.alloc : !loop.buffer<8x4x8xf32>
// TILE:         loop.launch @contract_tanh_sub_parts(%x, %w, %v, %want, %y, %[[A]], %[[B]])[T floordiv 64, T, T mod 64]
// TILE-NEXT:    loop.launch @[[SUM:.*]](%[[A]], %gv)
// TILE-NEXT:    loop.launch @{{.*}}(%[[B]], %gw)
// TILE:       tile.kernel @contract_tanh_sub_parts{{.*}} grid [8] {
// TILE:         %[[G:.*]]:2 = tile.for %{{.*}} = %{{.*}} to %{{.*}} step 1
// TILE:           tile.dot {{.*}} tile<64x4xf32>, !tile.tile<4x8xf32>
// TILE:         %{{.*}}:2 = tile.for {{.*}}%[[G]]#0
loop.program @learn dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 4xf32>
  %want = loop.input "want" : !loop.buffer<(t: full) 2xf32>
  %w = loop.parameter "w" : !loop.buffer<4x8xf32>
  %v = loop.parameter "v" : !loop.buffer<8x2xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 2xf32>
  %gv = loop.output "gv" : !loop.buffer<8x2xf32>
  %gw = loop.output "gw" : !loop.buffer<4x8xf32>
  %h = loop.alloc : !loop.buffer<(t: full) 8xf32>
  %d = loop.alloc : !loop.buffer<(t: full) 2xf32>
  %e = loop.alloc : !loop.buffer<(t: full) 8xf32>
  loop.kernel ins(%0 = %x[0:T], %1 = %w) outs(%h[0:T]) {
    %p = sdg.contract "bk,kn->bn" %0, %1 : (tensor<?x4xf32, #sdg.size<T>>, tensor<4x8xf32>) -> tensor<?x8xf32, #sdg.size<T>>
    %r = sdg.tanh %p : (tensor<?x8xf32, #sdg.size<T>>) -> tensor<?x8xf32, #sdg.size<T>>
    loop.yield %r : tensor<?x8xf32, #sdg.size<T>>
  }
  loop.compute ins(%0 = %h[0:T], %1 = %v) outs(%y[0:T]) {
    %p = sdg.contract "bk,kn->bn" %0, %1 : (tensor<?x8xf32, #sdg.size<T>>, tensor<8x2xf32>) -> tensor<?x2xf32, #sdg.size<T>>
    loop.yield %p : tensor<?x2xf32, #sdg.size<T>>
  }
  loop.compute ins(%0 = %y[0:T], %1 = %want[0:T]) outs(%d[0:T]) {
    %p = sdg.sub %0, %1 : (tensor<?x2xf32, #sdg.size<T>>, tensor<?x2xf32, #sdg.size<T>>) -> tensor<?x2xf32, #sdg.size<T>>
    loop.yield %p : tensor<?x2xf32, #sdg.size<T>>
  }
  loop.compute ins(%0 = %h[0:T], %1 = %d[0:T]) outs(%gv) {
    %p = sdg.contract "bk,bn->kn" %0, %1 : (tensor<?x8xf32, #sdg.size<T>>, tensor<?x2xf32, #sdg.size<T>>) -> tensor<8x2xf32>
    loop.yield %p : tensor<8x2xf32>
  }
  loop.compute ins(%0 = %d[0:T], %1 = %v) outs(%e[0:T]) {
    %p = sdg.contract "bn,kn->bk" %0, %1 : (tensor<?x2xf32, #sdg.size<T>>, tensor<8x2xf32>) -> tensor<?x8xf32, #sdg.size<T>>
    loop.yield %p : tensor<?x8xf32, #sdg.size<T>>
  }
  loop.compute ins(%0 = %x[0:T], %1 = %e[0:T]) outs(%gw) {
    %p = sdg.contract "bk,bn->kn" %0, %1 : (tensor<?x4xf32, #sdg.size<T>>, tensor<?x8xf32, #sdg.size<T>>) -> tensor<4x8xf32>
    loop.yield %p : tensor<4x8xf32>
  }
}
