// RUN: tempo-opt %s --check-each=interp -p loop-fuse-rows --split-input-file | filecheck %s
// RUN: tempo-opt %s --split-input-file -p loop-fuse-rows,loop-plan-storage,loop-lower-kernels | filecheck %s --check-prefix=TILE

// A layer, a loss beside it, and gradients over T rows: one kernel, which writes the sums over the rows and what somebody
// else reads, and nothing else. Its programs have blocks of 64 rows in turn; rows that are left are the first program's.

// CHECK-LABEL: loop.program @learn
// CHECK-NOT:     loop.alloc
// CHECK:         loop.kernel ins(%{{.*}} = %x[0:T], %{{.*}} = %w, %{{.*}} = %v, %{{.*}} = %want[0:T]) outs(%y[0:T], %gv, %gw) {
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
// TILE:         loop.launch @[[LEARN:.*]](%x, %w, %v, %want, %y, %[[A]], %[[B]])[T floordiv 64 + 7, T mod 64, 64 * (T floordiv 64), T]
// TILE-NEXT:    loop.launch @{{.*}}(%[[A]], %gv)
// TILE-NEXT:    loop.launch @{{.*}}(%[[B]], %gw)
// TILE:       tile.kernel @[[LEARN]]{{.*}} grid [8] {
// TILE:         %[[W:.*]] = tile.load {{.*}} -> !tile.tile<4x8xf32>
// TILE:         %[[GV:.*]], %[[GW:.*]] = tile.for {{.*}} step 1 init({{.*}}) : !tile.tile<8x2xf32>, !tile.tile<4x8xf32> {
// TILE:           %[[P:.*]] = tile.dot %{{.*}}, %[[W]], %{{.*}} : !tile.tile<64x4xf32>,
// TILE-NEXT:      %[[H:.*]] = tile.tanh %[[P]]
// TILE:           %[[HT:.*]] = tile.trans %[[H]]
// TILE:           tile.dot %[[HT]], %{{.*}}, %{{.*}} : !tile.tile<8x64xf32>, !tile.tile<64x2xf32>
// TILE:         tile.for {{.*}} init(%{{.*}} = %[[GV]], %{{.*}} = %[[GW]])
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

// -----

// Along two axes, of steps and of environments, rows are rows; a sum over both is one over rows.

// CHECK-LABEL: loop.program @two_axes
// CHECK:         loop.kernel ins({{.*}}) outs(%g) {
// CHECK-NEXT:      sdg.contract "tbk,kn->tbn"
// CHECK-NEXT:      sdg.contract "tbk,tbn->kn"

// TILE-LABEL: loop.program @two_axes
// TILE:         loop.launch @[[TWO:.*]](%x, %w, %{{.*}})[
// TILE:       tile.kernel @[[TWO]]{{.*}} grid [8] {
// TILE:         tile.dot {{.*}} !tile.tile<64x4xf32>
loop.program @two_axes dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 64x4xf32>
  %w = loop.parameter "w" : !loop.buffer<4x8xf32>
  %g = loop.output "g" : !loop.buffer<4x8xf32>
  %y = loop.alloc : !loop.buffer<(t: full) 64x8xf32>
  loop.compute ins(%0 = %x[0:T], %1 = %w) outs(%y[0:T]) {
    %p = sdg.contract "tbk,kn->tbn" %0, %1 : (tensor<?x64x4xf32, #sdg.size<T>>, tensor<4x8xf32>) -> tensor<?x64x8xf32, #sdg.size<T>>
    loop.yield %p : tensor<?x64x8xf32, #sdg.size<T>>
  }
  loop.compute ins(%0 = %x[0:T], %1 = %y[0:T]) outs(%g) {
    %p = sdg.contract "tbk,tbn->kn" %0, %1 : (tensor<?x64x4xf32, #sdg.size<T>>, tensor<?x64x8xf32, #sdg.size<T>>) -> tensor<4x8xf32>
    loop.yield %p : tensor<4x8xf32>
  }
}
