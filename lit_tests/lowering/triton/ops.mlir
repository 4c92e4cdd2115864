// RUN: tempo-opt %s -t triton | filecheck %s

// One line per op, none where a line before has it or nobody reads it; values go by their names, by the buffer they are read from or written to, or by what they are.

// CHECK:       # ---- scale.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       from .library import tanh
// CHECK:       BLOCK = tl.constexpr(64)
// CHECK-NEXT:  num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # ops.mlir:{{.*}}
// CHECK-NEXT:  # grid: the launch says how many (offsets by BLOCK)
// CHECK-NEXT:  @triton.jit(do_not_specialize=["n"])
// CHECK-NEXT:  def scale(x_ptr, out_ptr, n: "i64"):
// CHECK-NEXT:      offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
// CHECK-NEXT:      inside_offsets = offsets < n
// CHECK-NEXT:      x = tl.load(x_ptr + offsets, mask=inside_offsets, other=0.0).to(tl.float32)
// CHECK-NEXT:      doubled = x * 2.0
// CHECK-NEXT:      out = tanh(doubled)
// CHECK-NEXT:      tl.store(out_ptr + offsets, out.to(tl.bfloat16), mask=inside_offsets)
tile.kernel @scale(%x: !tile.ptr<bf16>, %out: !tile.ptr<bf16>, %n: index) grid [?] {
  %program = tile.program_id 0
  %c64 = tile.const 64 : index -> index
  %start = tile.mul %program, %c64 : (index, index) -> index
  %view = tile.view %x [%n] : !tile.ptr<bf16> -> !tile.view<?xbf16, [1]>
  %outs = tile.view %out [%n] : !tile.ptr<bf16> -> !tile.view<?xbf16, [1]>
  %0 = tile.load %view[%start] block [64] : !tile.view<?xbf16, [1]> -> !tile.tile<64xbf16>
  %two = tile.const 2.0 : bf16 -> bf16
  %doubled = tile.mul %0, %two : (!tile.tile<64xbf16>, bf16) -> !tile.tile<64xbf16>
  %1 = tile.tanh %doubled : (!tile.tile<64xbf16>) -> !tile.tile<64xbf16>
  tile.store %1, %outs[%start] block [64] : !tile.tile<64xbf16>, !tile.view<?xbf16, [1]>
}

// Dots use the tensor cores where every side is at least 16, and are written out elsewhere; f16 and bf16 go to them as they are.

// CHECK:       # ---- dots.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       BLOCK_M = tl.constexpr(16)
// CHECK-NEXT:  BLOCK_K = tl.constexpr(64)
// CHECK-NEXT:  BLOCK_N = tl.constexpr(32)
// CHECK-NEXT:  num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # ops.mlir:{{.*}}
// CHECK-NEXT:  # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def dots(a_ptr, b_ptr, c_ptr):
// CHECK-NEXT:      m = tl.arange(0, BLOCK_M)
// CHECK-NEXT:      k = tl.arange(0, BLOCK_K)
// CHECK-NEXT:      n = tl.arange(0, BLOCK_N)
// CHECK-NEXT:      a = tl.load(a_ptr + m[:, None] * 64 + k[None, :])
// CHECK-NEXT:      b = tl.load(b_ptr + k[:, None] * 32 + n[None, :]).to(tl.float32)
// CHECK-NEXT:      c = tl.dot(a, b.to(tl.float16), input_precision="ieee")
// CHECK-NEXT:      tl.store(c_ptr + m[:, None] * 32 + n[None, :], c)
// CHECK-NEXT:      row = tl.load(a_ptr + k[None, :]).to(tl.float32)
// CHECK-NEXT:      product = tl.sum(row[:, :, None] * b[None, :, :], axis=1)
// CHECK-NEXT:      more = product + tl.sum(row[:, :, None] * b[None, :, :], axis=1)
// CHECK-NEXT:      tl.debug_barrier()
// CHECK-NEXT:      tl.store(c_ptr + n[None, :], more)
tile.kernel @dots(%a: !tile.ptr<f16>, %b: !tile.ptr<f16>, %c: !tile.ptr<f32>) grid [] {
  %z = tile.const 0 : index -> index
  %va = tile.view %a [] : !tile.ptr<f16> -> !tile.view<16x64xf16, [64, 1]>
  %vb = tile.view %b [] : !tile.ptr<f16> -> !tile.view<64x32xf16, [32, 1]>
  %vc = tile.view %c [] : !tile.ptr<f32> -> !tile.view<16x32xf32, [32, 1]>
  %0 = tile.load %va[%z, %z] block [16, 64] : !tile.view<16x64xf16, [64, 1]> -> !tile.tile<16x64xf16>
  %1 = tile.load %vb[%z, %z] block [64, 32] : !tile.view<64x32xf16, [32, 1]> -> !tile.tile<64x32xf16>
  %zero = tile.const 0.0 : f32 -> !tile.tile<16x32xf32>
  %2 = tile.dot %0, %1, %zero : !tile.tile<16x64xf16>, !tile.tile<64x32xf16>, !tile.tile<16x32xf32> -> !tile.tile<16x32xf32>
  tile.store %2, %vc[%z, %z] block [16, 32] : !tile.tile<16x32xf32>, !tile.view<16x32xf32, [32, 1]>
  %row = tile.load %va[%z, %z] block [1, 64] : !tile.view<16x64xf16, [64, 1]> -> !tile.tile<1x64xf16>
  %none = tile.const 0.0 : f32 -> !tile.tile<1x32xf32>
  %product = tile.dot %row, %1, %none : !tile.tile<1x64xf16>, !tile.tile<64x32xf16>, !tile.tile<1x32xf32> -> !tile.tile<1x32xf32>
  %more = tile.dot %row, %1, %product : !tile.tile<1x64xf16>, !tile.tile<64x32xf16>, !tile.tile<1x32xf32> -> !tile.tile<1x32xf32>
  tile.store %more, %vc[%z, %z] block [1, 32] : !tile.tile<1x32xf32>, !tile.view<16x32xf32, [32, 1]>
}

// Reductions keep the element type and propagate NaN; numbers are typed where Triton would guess another type.

// CHECK:       # ---- reductions.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       from .library import first_largest, nan_maximum, saturate
// CHECK:       BLOCK = tl.constexpr(8)
// CHECK-NEXT:  num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # ops.mlir:{{.*}}
// CHECK-NEXT:  # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def reductions(x_ptr, y_ptr):
// CHECK-NEXT:      offsets = tl.arange(0, BLOCK)
// CHECK-NEXT:      x = tl.load(x_ptr + offsets)
// CHECK-NEXT:      total = tl.sum(x, axis=0, dtype=tl.int8)
// CHECK-NEXT:      greatest = tl.max(x, axis=0).to(tl.int8)
// CHECK-NEXT:      y = tl.load(y_ptr + offsets)
// CHECK-NEXT:      top = tl.reduce(y, 0, nan_maximum)
// CHECK-NEXT:      place = tl.reduce((y, offsets), 0, first_largest)[1].to(tl.int64)
// CHECK-NEXT:      running = tl.cumsum(y, axis=0, reverse=True)
// CHECK-NEXT:      larger = nan_maximum(y, tl.full((BLOCK,), 0.1, tl.float64))
// CHECK-NEXT:      less = saturate(y, -128, 127, tl.int8)
tile.kernel @reductions(%x: !tile.ptr<i8>, %y: !tile.ptr<f64>) grid [] {
  %z = tile.const 0 : index -> index
  %vx = tile.view %x [] : !tile.ptr<i8> -> !tile.view<8xi8, [1]>
  %vy = tile.view %y [] : !tile.ptr<f64> -> !tile.view<8xf64, [1]>
  %0 = tile.load %vx[%z] block [8] : !tile.view<8xi8, [1]> -> !tile.tile<8xi8>
  %total = tile.reduce sum %0 axis 0 : !tile.tile<8xi8> -> i8
  %greatest = tile.reduce max %0 axis 0 : !tile.tile<8xi8> -> i8
  %1 = tile.load %vy[%z] block [8] : !tile.view<8xf64, [1]> -> !tile.tile<8xf64>
  %top = tile.reduce max %1 axis 0 : !tile.tile<8xf64> -> f64
  %place = tile.reduce argmax %1 axis 0 : !tile.tile<8xf64> -> i64
  %running = tile.scan sum %1 axis 0 reverse : !tile.tile<8xf64> -> !tile.tile<8xf64>
  %tenth = tile.const 0.1 : f64 -> f64
  %larger = tile.max %1, %tenth : (!tile.tile<8xf64>, f64) -> !tile.tile<8xf64>
  %less = tile.cast %1 : (!tile.tile<8xf64>) -> !tile.tile<8xi8>
}
