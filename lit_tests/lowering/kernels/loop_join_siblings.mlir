// RUN: tempo-opt %s --check-each -p loop-join-siblings{target=sm_90} | filecheck %s

// Two products of one row and what a third reads: the two that need nothing of each other are one launch, the buffer that
// both read one argument, and the memory of the second is there before. Programs 0 to 2 are those of the first kernel.

// CHECK-LABEL: loop.program @products
// CHECK:         loop.for t = 0 to T {
// CHECK-NEXT:      %a = loop.alloc
// CHECK-NEXT:      %b = loop.alloc
// CHECK-NEXT:      loop.launch @double_and_triple(%x, %a, %b)[8 * t]
// CHECK-NEXT:      loop.launch @both(%a, %b, %y)[8 * t]
// CHECK:       tile.kernel @both
// CHECK:       tile.kernel @double_and_triple(%x: !tile.ptr<f32>, %a: !tile.ptr<f32>, %b: !tile.ptr<f32>, %n: index) grid [5] {
// CHECK-NEXT:    %[[P:.*]] = tile.program_id 0
// CHECK-NEXT:    %[[THREE:.*]] = tile.const 3 : index
// CHECK-NEXT:    %is_first = tile.lt %[[P]], %[[THREE]]
// CHECK-NEXT:    tile.if %is_first {
// CHECK:           tile.view %x offset %n
// CHECK:           tile.view %a
// CHECK:         } else {
// CHECK-NEXT:      %[[OWN:.*]] = tile.sub %[[P]], %[[THREE]]
// CHECK:           tile.view %x offset %n
// CHECK:           tile.view %b
loop.program @products dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 8xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 8xf32>
  loop.for t = 0 to T {
    %a = loop.alloc : !loop.buffer<8xf32>
    loop.launch @double(%x, %a)[8 * t]
    %b = loop.alloc : !loop.buffer<8xf32>
    loop.launch @triple(%x, %b)[8 * t]
    loop.launch @both(%a, %b, %y)[8 * t]
  }
}
tile.kernel @double(%x: !tile.ptr<f32>, %a: !tile.ptr<f32>, %n: index) grid [3] {
  %p = tile.program_id 0
  %s = tile.const 4 : index -> index
  %i = tile.mul %p, %s : (index, index) -> index
  %v = tile.view %x offset %n[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %l = tile.load %v[%i] block [4] : !tile.view<8xf32, [1]> -> !tile.tile<4xf32>
  %r = tile.add %l, %l : (!tile.tile<4xf32>, !tile.tile<4xf32>) -> !tile.tile<4xf32>
  %w = tile.view %a[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  tile.store %r, %w[%i] block [4] : !tile.tile<4xf32>, !tile.view<8xf32, [1]>
}
tile.kernel @triple(%x: !tile.ptr<f32>, %b: !tile.ptr<f32>, %n: index) grid [2] {
  %p = tile.program_id 0
  %s = tile.const 4 : index -> index
  %i = tile.mul %p, %s : (index, index) -> index
  %v = tile.view %x offset %n[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %l = tile.load %v[%i] block [4] : !tile.view<8xf32, [1]> -> !tile.tile<4xf32>
  %d = tile.add %l, %l : (!tile.tile<4xf32>, !tile.tile<4xf32>) -> !tile.tile<4xf32>
  %r = tile.add %d, %l : (!tile.tile<4xf32>, !tile.tile<4xf32>) -> !tile.tile<4xf32>
  %w = tile.view %b[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  tile.store %r, %w[%i] block [4] : !tile.tile<4xf32>, !tile.view<8xf32, [1]>
}
tile.kernel @both(%a: !tile.ptr<f32>, %b: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: index) grid [] {
  %z = tile.const 0 : index -> index
  %v = tile.view %a[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %l = tile.load %v[%z] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
  %u = tile.view %b[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %m = tile.load %u[%z] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
  %r = tile.mul %l, %m : (!tile.tile<8xf32>, !tile.tile<8xf32>) -> !tile.tile<8xf32>
  %w = tile.view %y offset %n[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  tile.store %r, %w[%z] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
}
