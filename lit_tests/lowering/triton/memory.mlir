// RUN: tempo-opt %s -t triton | filecheck %s

// Masks follow from the sizes of views; they are left out where a block surely lies inside. Programs of a grid whose extent is
// known start at known places.

// CHECK-LABEL: def masks(
// CHECK:           program = tl.program_id(0).to(tl.int64)
// CHECK-NEXT:      start = program * 16
// CHECK-NEXT:      inside = tl.load(x_ptr + start * 32 + range_16[:, None] * 32 + range_32[None, :])
// CHECK-NEXT:      inside_2 = start + range_16[:, None] < n
// CHECK-NEXT:      partly = tl.load(x_ptr + start * 32 + range_16[:, None] * 32 + range_32[None, :], mask=inside_2, other=-1.0)
// CHECK-NEXT:      inside_3 = (n + range_16[:, None] >= 0) & (n + range_16[:, None] < 64)
// CHECK-NEXT:      around = tl.load(x_ptr + n * 32 + range_16[:, None] * 32 + range_32[None, :], mask=inside_3, other=0)
// CHECK-NEXT:      point = tl.load(x_ptr + (n * 32 + 3))
tile.kernel @masks(%x: !tile.ptr<f32>, %n: index) grid [4] {
  %z = tile.const 0 : index -> index
  %c3 = tile.const 3 : index -> index
  %c16 = tile.const 16 : index -> index
  %program = tile.program_id 0
  %start = tile.mul %program, %c16 : (index, index) -> index
  %all = tile.view %x [] : !tile.ptr<f32> -> !tile.view<64x32xf32, [32, 1]>
  %some = tile.view %x [%n] : !tile.ptr<f32> -> !tile.view<?x32xf32, [32, 1]>
  %inside = tile.load %all[%start, %z] block [16, 32] : !tile.view<64x32xf32, [32, 1]> -> !tile.tile<16x32xf32>
  %partly = tile.load %some[%start, %z] block [16, 32] other -1.0 : f32 : !tile.view<?x32xf32, [32, 1]> -> !tile.tile<16x32xf32>
  %around = tile.load %all[%n, %z] block [16, 32] : !tile.view<64x32xf32, [32, 1]> -> !tile.tile<16x32xf32>
  %point = tile.load %all[%n, %c3] block [0, 0] : !tile.view<64x32xf32, [32, 1]> -> f32
}

// Positions from memory are compared with the view's size, always. Of equal positions the last write stays.

// CHECK-LABEL: def rows(
// CHECK:           ids = tl.load(ids_ptr + range_8)
// CHECK-NEXT:      places = ids.to(tl.int64)
// CHECK-NEXT:      inside = (places[:, None] >= 0) & (places[:, None] < 100)
// CHECK-NEXT:      x = tl.load(x_ptr + places[:, None] * 32 + range_32[None, :], mask=inside, other=0)
// CHECK-NEXT:      tl.debug_barrier()
// CHECK-NEXT:      last = last_of_equals(ids, range_8)
// CHECK-NEXT:      inside_2 = (places[:, None] >= 0) & (places[:, None] < 100) & last[:, None]
// CHECK-NEXT:      tl.store(x_ptr + places[:, None] * 32 + range_32[None, :], x, mask=inside_2)
// CHECK-NEXT:      tl.debug_barrier()
// CHECK-NEXT:      tl.atomic_add(x_ptr + places[:, None] * 32 + range_32[None, :], x, mask=inside)
tile.kernel @rows(%x: !tile.ptr<f32>, %ids: !tile.ptr<i32>) grid [] {
  %z = tile.const 0 : index -> index
  %v = tile.view %x [] : !tile.ptr<f32> -> !tile.view<100x32xf32, [32, 1]>
  %vi = tile.view %ids [] : !tile.ptr<i32> -> !tile.view<8xi32, [1]>
  %0 = tile.load %vi[%z] block [8] : !tile.view<8xi32, [1]> -> !tile.tile<8xi32>
  %1 = tile.gather %v[%z, %z] at %0 axis 0 block [8, 32] : !tile.view<100x32xf32, [32, 1]>, !tile.tile<8xi32> -> !tile.tile<8x32xf32>
  tile.scatter %1, %v[%z, %z] at %0 axis 0 block [8, 32] : !tile.tile<8x32xf32>, !tile.view<100x32xf32, [32, 1]>, !tile.tile<8xi32>
  tile.scatter_add %1, %v[%z, %z] at %0 axis 0 block [8, 32] : !tile.tile<8x32xf32>, !tile.view<100x32xf32, [32, 1]>, !tile.tile<8xi32>
}

// Offsets of constant loops are of 32 bits in Triton: they are widened where they may not fit.

// CHECK-LABEL: def wide(
// CHECK:           for i in range(0, 4096, 16):
// CHECK-NEXT:          x = tl.load(x_ptr + tl.cast(i, tl.int64) * 1048576 + range_16.to(tl.int64) * 268435456)
// CHECK-NEXT:          near = tl.load(x_ptr + i + range_16)
tile.kernel @wide(%x: !tile.ptr<f32>) grid [] {
  %z = tile.const 0 : index -> index
  %n = tile.const 4096 : index -> index
  %v = tile.view %x [] : !tile.ptr<f32> -> !tile.view<4096x16xf32, [1048576, 268435456]>
  %w = tile.view %x [] : !tile.ptr<f32> -> !tile.view<4096xf32, [1]>
  tile.for %i = %z to %n step 16 {
    %0 = tile.load %v[%i, %z] block [0, 16] : !tile.view<4096x16xf32, [1048576, 268435456]> -> !tile.tile<16xf32>
    %near = tile.load %w[%i] block [16] : !tile.view<4096xf32, [1]> -> !tile.tile<16xf32>
  }
}
