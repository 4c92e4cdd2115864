// RUN: tempo-opt %s -t triton | filecheck %s

// Axes that only spread are written where they are used; others are stretched on a line. A transpose goes into its dot.

// CHECK:       # ---- shapes.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       BLOCK_N = tl.constexpr(16)
// CHECK-NEXT:  BLOCK_K = tl.constexpr(32)
// CHECK-NEXT:  BLOCK = tl.constexpr(32)
// CHECK-NEXT:  BLOCK_M = tl.constexpr(16)
// CHECK-NEXT:  BLOCK_ROW = tl.constexpr(16)
// CHECK-NEXT:  BLOCK_COL = tl.constexpr(32)
// CHECK-NEXT:  num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # shapes.mlir:{{.*}}
// CHECK-NEXT:  # grid: one program
// CHECK-NEXT:  @triton.jit(do_not_specialize=["k"])
// CHECK-NEXT:  def shapes(x_ptr, n_ptr, k: "i64"):
// CHECK-NEXT:      n = tl.arange(0, BLOCK_N)
// CHECK-NEXT:      ks = tl.arange(0, BLOCK_K)
// CHECK-NEXT:      offsets = k + tl.arange(0, BLOCK)
// CHECK-NEXT:      offsets_2 = tl.arange(0, BLOCK)
// CHECK-NEXT:      x = tl.load(x_ptr + n[:, None] * 32 + ks[None, :])
// CHECK-NEXT:      scale = tl.load(x_ptr + ks)
// CHECK-NEXT:      scaled = x * scale[None, :]
// CHECK-NEXT:      stretched = tl.broadcast_to(scale[None, :], (BLOCK_M, BLOCK_K))
// CHECK-NEXT:      dot = tl.dot(stretched, tl.trans(scaled), input_precision="ieee")
// CHECK-NEXT:      flipped = tl.trans(dot)
// CHECK-NEXT:      total = tl.sum(scale, axis=0)
// CHECK-NEXT:      filled = tl.full((BLOCK,), total, tl.float32)
// CHECK-NEXT:      places = offsets.to(tl.int64)
// CHECK-NEXT:      inside_offsets_2 = offsets_2 < k
// CHECK-NEXT:      kept = tl.where(inside_offsets_2, places, places)
// CHECK-NEXT:      tl.debug_barrier()
// CHECK-NEXT:      tl.atomic_add(x_ptr + offsets_2, filled)
// CHECK-NEXT:      tl.store(n_ptr + offsets_2, kept)
tile.kernel @shapes(%x: !tile.ptr<f32>, %n: !tile.ptr<i64>, %k: index) grid [] {
  %z = tile.const 0 : index -> index
  %vx = tile.view %x [] : !tile.ptr<f32> -> !tile.view<16x32xf32, [32, 1]>
  %vr = tile.view %x [] : !tile.ptr<f32> -> !tile.view<32xf32, [1]>
  %vn = tile.view %n [] : !tile.ptr<i64> -> !tile.view<32xi64, [1]>
  %0 = tile.load %vx[%z, %z] block [16, 32] : !tile.view<16x32xf32, [32, 1]> -> !tile.tile<16x32xf32>
  %scale = tile.load %vr[%z] block [32] : !tile.view<32xf32, [1]> -> !tile.tile<32xf32>
  %row = tile.expand %scale axis 0 : !tile.tile<32xf32> -> !tile.tile<1x32xf32>
  %scaled = tile.mul %0, %row : (!tile.tile<16x32xf32>, !tile.tile<1x32xf32>) -> !tile.tile<16x32xf32>
  %stretched = tile.broadcast %row : !tile.tile<1x32xf32> -> !tile.tile<16x32xf32>
  %turned = tile.trans %scaled : !tile.tile<16x32xf32> -> !tile.tile<32x16xf32>
  %zero = tile.const 0.0 : f32 -> !tile.tile<16x16xf32>
  %dot = tile.dot %stretched, %turned, %zero : !tile.tile<16x32xf32>, !tile.tile<32x16xf32>, !tile.tile<16x16xf32> -> !tile.tile<16x16xf32>
  %flipped = tile.trans %dot : !tile.tile<16x16xf32> -> !tile.tile<16x16xf32>
  %one = tile.const 1.5 : f32 -> !tile.tile<16x32xf32>
  %total = tile.reduce sum %scale axis 0 : !tile.tile<32xf32> -> f32
  %filled = tile.splat %total : f32 -> !tile.tile<32xf32>
  %places = tile.iota %k : !tile.tile<32xi64>
  %below = tile.in_range %z below %k : !tile.tile<32xi1>
  %kept = tile.select %below, %places, %places : (!tile.tile<32xi1>, !tile.tile<32xi64>, !tile.tile<32xi64>) -> !tile.tile<32xi64>
  tile.atomic_add %filled, %vr[%z] block [32] : !tile.tile<32xf32>, !tile.view<32xf32, [1]>
  tile.store %kept, %vn[%z] block [32] : !tile.tile<32xi64>, !tile.view<32xi64, [1]>
}

// Philox is Triton's own; its words are unsigned.

// CHECK:       # ---- draws.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       BLOCK = tl.constexpr(64)
// CHECK-NEXT:  num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # shapes.mlir:{{.*}}
// CHECK-NEXT:  # grid: one program
// CHECK-NEXT:  @triton.jit(do_not_specialize=["seed", "n"])
// CHECK-NEXT:  def draws(seed: "i32", n: "i64"):
// CHECK-NEXT:      offsets = tl.arange(0, BLOCK)
// CHECK-NEXT:      counter = offsets.to(tl.uint32)
// CHECK-NEXT:      w0, w1, w2, w3 = tl.philox_impl(
// CHECK-NEXT:          counter,
// CHECK-NEXT:          tl.full((), 0, tl.uint32),
// CHECK-NEXT:          tl.full((), 0, tl.uint32),
// CHECK-NEXT:          tl.full((), 0, tl.uint32),
// CHECK-NEXT:          seed.to(tl.uint32),
// CHECK-NEXT:          tl.full((), 7, tl.uint32),
// CHECK-NEXT:      )
tile.kernel @draws(%seed: i32, %n: index) grid [] {
  %z = tile.const 0 : index -> index
  %zero = tile.const 0 : ui32 -> ui32
  %7 = tile.const 7 : ui32 -> ui32
  %counter = tile.iota %z : !tile.tile<64xui32>
  %w0, %w1, %w2, %w3 = tile.philox key(%seed, %7) counter(%counter, %zero, %zero, %zero) : (i32, ui32, !tile.tile<64xui32>, ui32, ui32, ui32) -> (!tile.tile<64xui32>, !tile.tile<64xui32>, !tile.tile<64xui32>, !tile.tile<64xui32>)
}
