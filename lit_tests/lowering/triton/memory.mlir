// RUN: tempo-opt %s -t triton | filecheck %s

// Masks follow from the sizes of views; they are left out where a block surely lies inside. Programs of a grid whose extent is
// known start at known places.

// CHECK:       # ---- masks.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       BLOCK_ROW = tl.constexpr(16)
// CHECK-NEXT:  BLOCK_COL = tl.constexpr(32)
// CHECK-NEXT:  num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # memory.mlir:{{.*}}
// CHECK-NEXT:  # grid: 4 (row by BLOCK_ROW)
// CHECK-NEXT:  @triton.jit(do_not_specialize=["n"])
// CHECK-NEXT:  def masks(x_ptr, n: "i64"):
// CHECK-NEXT:      col = tl.arange(0, BLOCK_COL)
// CHECK-NEXT:      row = n + tl.arange(0, BLOCK_ROW)
// CHECK-NEXT:      inside_row = (row >= 0) & (row < 64)
// CHECK-NEXT:      row_2 = tl.program_id(0) * BLOCK_ROW + tl.arange(0, BLOCK_ROW)
// CHECK-NEXT:      inside_row_2 = row_2 < n
// CHECK-NEXT:      inside = tl.load(x_ptr + row_2[:, None] * 32 + col[None, :])
// CHECK-NEXT:      partly = tl.load(x_ptr + row_2[:, None] * 32 + col[None, :], mask=inside_row_2[:, None], other=-1.0)
// CHECK-NEXT:      around = tl.load(x_ptr + row[:, None] * 32 + col[None, :], mask=inside_row[:, None], other=0.0)
// CHECK-NEXT:      point = tl.load(x_ptr + n * 32 + 3)
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

// CHECK:       # ---- rows.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       from .library import last_of_equals
// CHECK:       BLOCK_ROW = tl.constexpr(8)
// CHECK-NEXT:  BLOCK_COL = tl.constexpr(32)
// CHECK-NEXT:  num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # memory.mlir:{{.*}}
// CHECK-NEXT:  # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def rows(x_ptr, ids_ptr):
// CHECK-NEXT:      row = tl.arange(0, BLOCK_ROW)
// CHECK-NEXT:      col = tl.arange(0, BLOCK_COL)
// CHECK-NEXT:      ids = tl.load(ids_ptr + row)
// CHECK-NEXT:      places = ids.to(tl.int64)
// CHECK-NEXT:      inside = (places >= 0) & (places < 100)
// CHECK-NEXT:      x = tl.load(x_ptr + places[:, None] * 32 + col[None, :], mask=inside[:, None], other=0.0)
// CHECK-NEXT:      tl.debug_barrier()
// CHECK-NEXT:      last = last_of_equals(ids, row)
// CHECK-NEXT:      tl.store(x_ptr + places[:, None] * 32 + col[None, :], x, mask=inside[:, None] & last[:, None])
// CHECK-NEXT:      tl.debug_barrier()
// CHECK-NEXT:      tl.atomic_add(x_ptr + places[:, None] * 32 + col[None, :], x, mask=inside[:, None])
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

// CHECK:       # ---- wide.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       BLOCK = tl.constexpr(16)
// CHECK-NEXT:  num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # memory.mlir:{{.*}}
// CHECK-NEXT:  # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def wide(x_ptr):
// CHECK-NEXT:      offsets = tl.arange(0, BLOCK)
// CHECK-NEXT:      for i in range(0, 4096, BLOCK):
// CHECK-NEXT:          offsets_2 = i + tl.arange(0, BLOCK)
// CHECK-NEXT:          x = tl.load(x_ptr + tl.cast(i, tl.int64) * 1048576 + offsets.to(tl.int64) * 268435456)
// CHECK-NEXT:          near = tl.load(x_ptr + offsets_2)
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
