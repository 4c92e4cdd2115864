// RUN: tempo-opt %s --split-input-file -p loop-join-launches | filecheck %s

// A copy of four programs and a sum: five programs, of which the last one sums. What both pass is one argument, and equal
// groups are one kernel.

// CHECK-LABEL: loop.program @updates
// CHECK:         loop.launch @copy_sum_joined(%a, %b, %c)[T]
// CHECK-NEXT:    loop.for i = 0 to I {
// CHECK-NEXT:      loop.launch @copy_sum_joined(%a, %c, %b)[T]
// CHECK-NEXT:    }
// CHECK-NOT:     tile.kernel @copy(
// CHECK:         tile.kernel @copy_sum_joined(%a: !tile.ptr<f32>, %{{.*}}: !tile.ptr<f32>, %{{.*}}: !tile.ptr<f32>, %n: index) grid [5] {
// CHECK-NEXT:      %[[PROGRAM:.*]] = tile.program_id 0
// CHECK-NEXT:      %[[FOUR:.*]] = tile.const 4 : index -> index
// CHECK-NEXT:      %[[FIRST:.*]] = tile.lt %[[PROGRAM]], %[[FOUR]]
// CHECK-NEXT:      %[[PLACE:.*]] = tile.mod %[[PROGRAM]], %[[FOUR]]
// CHECK-NEXT:      tile.if %[[FIRST]] {
// CHECK:             tile.mul %[[PLACE]], %{{.*}}
// CHECK:             tile.store %{{.*}}, %{{.*}}[%start] block [64]
// CHECK-NEXT:      }
// CHECK-NEXT:      %[[SECOND:.*]] = tile.ge %[[PROGRAM]], %[[FOUR]]
// CHECK-NEXT:      tile.if %[[SECOND]] {
// CHECK:             tile.for
// CHECK:             tile.store %{{.*}}, %{{.*}}[] block []
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NOT:     tile.kernel
loop.program @updates dims(i: I, t: T) {
  %a = loop.input "a" : !loop.buffer<256xf32>
  %b = loop.output "b" : !loop.buffer<256xf32>
  %c = loop.output "c" : !loop.buffer<256xf32>
  loop.launch @copy(%a, %b)
  loop.launch @sum(%a, %c)[T]
  loop.for i = 0 to I {
    loop.launch @copy(%a, %c)
    loop.launch @sum(%a, %b)[T]
  }
}
tile.kernel @copy(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) grid [4] {
  %program = tile.program_id 0
  %width = tile.const 64 : index -> index
  %start = tile.mul %program, %width : (index, index) -> index
  %xs = tile.view %x [] : !tile.ptr<f32> -> !tile.view<256xf32, [1]>
  %ys = tile.view %y [] : !tile.ptr<f32> -> !tile.view<256xf32, [1]>
  %tile = tile.load %xs[%start] block [64] : !tile.view<256xf32, [1]> -> !tile.tile<64xf32>
  tile.store %tile, %ys[%start] block [64] : !tile.tile<64xf32>, !tile.view<256xf32, [1]>
}
tile.kernel @sum(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: index) grid [] {
  %zero = tile.const 0 : index -> index
  %none = tile.const 0.0 : f32 -> f32
  %xs = tile.view %x [%n] : !tile.ptr<f32> -> !tile.view<?xf32, [1]>
  %total = tile.for %t = %zero to %n step 64 init(%sum = %none) : f32 {
    %tile = tile.load %xs[%t] block [64] : !tile.view<?xf32, [1]> -> !tile.tile<64xf32>
    %part = tile.reduce sum %tile axis 0 : !tile.tile<64xf32> -> f32
    %more = tile.add %sum, %part : (f32, f32) -> f32
    tile.yield %more : f32
  }
  %ys = tile.view %y [] : !tile.ptr<f32> -> !tile.view<f32, []>
  tile.store %total, %ys[] block [] : f32, !tile.view<f32, []>
}

// -----

// Elementwise kernels have as many programs as they want; where the second one begins is a scalar then. Memory that is made
// in between is no obstacle.

// CHECK-LABEL: loop.program @open
// CHECK:         %c = loop.alloc
// CHECK-NEXT:    loop.launch @negate_joined(%a, %b, %c)[T, 2 * T]
// CHECK:         tile.kernel @negate_joined(%a: !tile.ptr<f32>, %b: !tile.ptr<f32>, %c: !tile.ptr<f32>, %n: index) grid [?] {
// CHECK-NEXT:      %[[PROGRAM:.*]] = tile.program_id 0
// CHECK-NEXT:      %{{.*}} = tile.lt %[[PROGRAM]], %n
// CHECK:           %{{.*}} = tile.ge %[[PROGRAM]], %n
// CHECK-NEXT:      %{{.*}} = tile.sub %[[PROGRAM]], %n
loop.program @open dims(t: T) {
  %a = loop.input "a" : !loop.buffer<(t: full) 8xf32>
  %b = loop.output "b" : !loop.buffer<(t: full) 8xf32>
  loop.launch @negate(%a, %b)[T, T]
  %c = loop.alloc : !loop.buffer<(t: full) 8xf32>
  loop.launch @negate(%a, %c)[T, T]
}
tile.kernel @negate(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: index) grid [?] {
  %program = tile.program_id 0
  %zero = tile.const 0 : index -> index
  %xs = tile.view %x [%n] : !tile.ptr<f32> -> !tile.view<?x8xf32, [8, 1]>
  %ys = tile.view %y [%n] : !tile.ptr<f32> -> !tile.view<?x8xf32, [8, 1]>
  %row = tile.load %xs[%program, %zero] block [0, 8] : !tile.view<?x8xf32, [8, 1]> -> !tile.tile<8xf32>
  %negated = tile.neg %row : (!tile.tile<8xf32>) -> !tile.tile<8xf32>
  tile.store %negated, %ys[%program, %zero] block [0, 8] : !tile.tile<8xf32>, !tile.view<?x8xf32, [8, 1]>
}
