// RUN: tempo-opt %s -t triton | filecheck %s

// Each elementwise op is a line: an operator or a function of Triton where these mean the same, else a function of the library.

// CHECK:       # ---- floats.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       from .library import (
// CHECK-NEXT:      float_floor_divide, float_floor_modulo, float_sign, log1p, nan_maximum, nan_minimum, power, round_even, tanh
// CHECK-NEXT:  )
// CHECK:       BLOCK = tl.constexpr(64)
// CHECK-NEXT:  num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # elementwise.mlir:{{.*}}
// CHECK-NEXT:  # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def floats(x_ptr, y_ptr):
// CHECK-NEXT:      offsets = tl.arange(0, BLOCK)
// CHECK-NEXT:      x = tl.load(x_ptr + offsets)
// CHECK-NEXT:      y = tl.load(y_ptr + offsets)
// CHECK-NEXT:      of_neg = -x
// CHECK-NEXT:      of_abs = tl.abs(x)
// CHECK-NEXT:      of_sign = float_sign(x)
// CHECK-NEXT:      of_exp = tl.exp(x)
// CHECK-NEXT:      of_log = tl.log(x)
// CHECK-NEXT:      of_log1p = log1p(x)
// CHECK-NEXT:      of_sqrt = tl.sqrt(x)
// CHECK-NEXT:      of_rsqrt = tl.rsqrt(x)
// CHECK-NEXT:      of_tanh = tanh(x)
// CHECK-NEXT:      of_sigmoid = tl.sigmoid(x)
// CHECK-NEXT:      of_erf = tl.erf(x)
// CHECK-NEXT:      of_sin = tl.sin(x)
// CHECK-NEXT:      of_cos = tl.cos(x)
// CHECK-NEXT:      of_floor = tl.floor(x)
// CHECK-NEXT:      of_ceil = tl.ceil(x)
// CHECK-NEXT:      of_round = round_even(x)
// CHECK-NEXT:      by_add = x + y
// CHECK-NEXT:      by_sub = x - y
// CHECK-NEXT:      by_mul = x * y
// CHECK-NEXT:      by_div = x / y
// CHECK-NEXT:      by_pow = power(x, y)
// CHECK-NEXT:      by_max = nan_maximum(x, y)
// CHECK-NEXT:      by_min = nan_minimum(x, y)
// CHECK-NEXT:      by_floordiv = float_floor_divide(x, y)
// CHECK-NEXT:      by_mod = float_floor_modulo(x, y)
// CHECK-NEXT:      is_lt = x < y
// CHECK-NEXT:      is_le = x <= y
// CHECK-NEXT:      is_gt = x > y
// CHECK-NEXT:      is_ge = x >= y
// CHECK-NEXT:      is_eq = x == y
// CHECK-NEXT:      is_ne = x != y
// CHECK-NEXT:      chosen = tl.where(is_lt, x, y)
// CHECK-NEXT:      cube = x * x * x
// CHECK-NEXT:      more = x + 0.1
// CHECK-NEXT:      largest = nan_maximum(x, tl.full((BLOCK,), 0.1, tl.float32))
tile.kernel @floats(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) grid [] {
  %z = tile.const 0 : index -> index
  %vx = tile.view %x [] : !tile.ptr<f32> -> !tile.view<64xf32, [1]>
  %vy = tile.view %y [] : !tile.ptr<f32> -> !tile.view<64xf32, [1]>
  %0 = tile.load %vx[%z] block [64] : !tile.view<64xf32, [1]> -> !tile.tile<64xf32>
  %1 = tile.load %vy[%z] block [64] : !tile.view<64xf32, [1]> -> !tile.tile<64xf32>
  %of_neg = tile.neg %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_abs = tile.abs %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_sign = tile.sign %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_exp = tile.exp %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_log = tile.log %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_log1p = tile.log1p %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_sqrt = tile.sqrt %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_rsqrt = tile.rsqrt %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_tanh = tile.tanh %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_sigmoid = tile.sigmoid %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_erf = tile.erf %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_sin = tile.sin %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_cos = tile.cos %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_floor = tile.floor %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_ceil = tile.ceil %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %of_round = tile.round %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  %by_add = tile.add %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xf32>
  %by_sub = tile.sub %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xf32>
  %by_mul = tile.mul %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xf32>
  %by_div = tile.div %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xf32>
  %by_pow = tile.pow %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xf32>
  %by_max = tile.max %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xf32>
  %by_min = tile.min %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xf32>
  %by_floordiv = tile.floordiv %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xf32>
  %by_mod = tile.mod %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xf32>
  %is_lt = tile.lt %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xi1>
  %is_le = tile.le %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xi1>
  %is_gt = tile.gt %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xi1>
  %is_ge = tile.ge %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xi1>
  %is_eq = tile.eq %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xi1>
  %is_ne = tile.ne %0, %1 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xi1>
  %chosen = tile.select %is_lt, %0, %1 : (!tile.tile<64xi1>, !tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xf32>
  %three = tile.const 3.0 : f32 -> f32
  %cube = tile.pow %0, %three : (!tile.tile<64xf32>, f32) -> !tile.tile<64xf32>
  %tenth = tile.const 0.1 : f32 -> f32
  %more = tile.add %0, %tenth : (!tile.tile<64xf32>, f32) -> !tile.tile<64xf32>
  %largest = tile.max %0, %tenth : (!tile.tile<64xf32>, f32) -> !tile.tile<64xf32>
}

// Integers floor, wrap and never trap; where the divisor or the distance is a number, operators will do.

// CHECK:       # ---- integers.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       from .library import (
// CHECK-NEXT:      floor_divide,
// CHECK-NEXT:      floor_modulo,
// CHECK-NEXT:      integer_power,
// CHECK-NEXT:      shift_left,
// CHECK-NEXT:      shift_right,
// CHECK-NEXT:      sign,
// CHECK-NEXT:      unsigned_divide,
// CHECK-NEXT:      unsigned_modulo,
// CHECK-NEXT:      unsigned_power,
// CHECK-NEXT:      unsigned_shift_right,
// CHECK-NEXT:  )
// CHECK:       BLOCK = tl.constexpr(64)
// CHECK-NEXT:  num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # elementwise.mlir:{{.*}}
// CHECK-NEXT:  # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def integers(x_ptr, y_ptr, b_ptr):
// CHECK-NEXT:      offsets = tl.arange(0, BLOCK)
// CHECK-NEXT:      x = tl.load(x_ptr + offsets)
// CHECK-NEXT:      y = tl.load(y_ptr + offsets)
// CHECK-NEXT:      b = tl.load(b_ptr + offsets)
// CHECK-NEXT:      of_neg = -x
// CHECK-NEXT:      of_abs = tl.abs(x)
// CHECK-NEXT:      of_sign = sign(x)
// CHECK-NEXT:      of_not = ~x
// CHECK-NEXT:      by_add = x + x
// CHECK-NEXT:      by_sub = x - x
// CHECK-NEXT:      by_mul = x * x
// CHECK-NEXT:      by_floordiv = floor_divide(x, x)
// CHECK-NEXT:      by_mod = floor_modulo(x, x)
// CHECK-NEXT:      by_pow = integer_power(x, x, 32)
// CHECK-NEXT:      by_max = tl.maximum(x, x)
// CHECK-NEXT:      by_min = tl.minimum(x, x)
// CHECK-NEXT:      by_and = x & x
// CHECK-NEXT:      by_or = x | x
// CHECK-NEXT:      by_xor = x ^ x
// CHECK-NEXT:      by_shl = shift_left(x, x, 32)
// CHECK-NEXT:      by_shr = shift_right(x, x, 32)
// CHECK-NEXT:      unsigned_floordiv = unsigned_divide(y, y)
// CHECK-NEXT:      unsigned_mod = unsigned_modulo(y, y)
// CHECK-NEXT:      unsigned_pow = unsigned_power(y, y, 8)
// CHECK-NEXT:      unsigned_shr = unsigned_shift_right(y, y, 8)
// CHECK-NEXT:      number_floordiv = y // 2
// CHECK-NEXT:      number_mod = y % 2
// CHECK-NEXT:      number_shl = y << 2
// CHECK-NEXT:      number_shr = y >> 2
// CHECK-NEXT:      signed_floordiv = floor_divide(x, tl.full((), 5, tl.int32))
// CHECK-NEXT:      signed_mod = floor_modulo(x, tl.full((), 5, tl.int32))
// CHECK-NEXT:      signed_shl = x << 5
// CHECK-NEXT:      signed_shr = x >> 5
// CHECK-NEXT:      inverse = b == 0
tile.kernel @integers(%x: !tile.ptr<i32>, %y: !tile.ptr<ui8>, %b: !tile.ptr<i1>) grid [] {
  %z = tile.const 0 : index -> index
  %vx = tile.view %x [] : !tile.ptr<i32> -> !tile.view<64xi32, [1]>
  %vy = tile.view %y [] : !tile.ptr<ui8> -> !tile.view<64xui8, [1]>
  %vb = tile.view %b [] : !tile.ptr<i1> -> !tile.view<64xi1, [1]>
  %0 = tile.load %vx[%z] block [64] : !tile.view<64xi32, [1]> -> !tile.tile<64xi32>
  %1 = tile.load %vy[%z] block [64] : !tile.view<64xui8, [1]> -> !tile.tile<64xui8>
  %2 = tile.load %vb[%z] block [64] : !tile.view<64xi1, [1]> -> !tile.tile<64xi1>
  %five = tile.const 5 : i32 -> i32
  %two = tile.const 2 : ui8 -> ui8
  %of_neg = tile.neg %0 : (!tile.tile<64xi32>) -> !tile.tile<64xi32>
  %of_abs = tile.abs %0 : (!tile.tile<64xi32>) -> !tile.tile<64xi32>
  %of_sign = tile.sign %0 : (!tile.tile<64xi32>) -> !tile.tile<64xi32>
  %of_not = tile.not %0 : (!tile.tile<64xi32>) -> !tile.tile<64xi32>
  %by_add = tile.add %0, %0 : (!tile.tile<64xi32>, !tile.tile<64xi32>) -> !tile.tile<64xi32>
  %by_sub = tile.sub %0, %0 : (!tile.tile<64xi32>, !tile.tile<64xi32>) -> !tile.tile<64xi32>
  %by_mul = tile.mul %0, %0 : (!tile.tile<64xi32>, !tile.tile<64xi32>) -> !tile.tile<64xi32>
  %by_floordiv = tile.floordiv %0, %0 : (!tile.tile<64xi32>, !tile.tile<64xi32>) -> !tile.tile<64xi32>
  %by_mod = tile.mod %0, %0 : (!tile.tile<64xi32>, !tile.tile<64xi32>) -> !tile.tile<64xi32>
  %by_pow = tile.pow %0, %0 : (!tile.tile<64xi32>, !tile.tile<64xi32>) -> !tile.tile<64xi32>
  %by_max = tile.max %0, %0 : (!tile.tile<64xi32>, !tile.tile<64xi32>) -> !tile.tile<64xi32>
  %by_min = tile.min %0, %0 : (!tile.tile<64xi32>, !tile.tile<64xi32>) -> !tile.tile<64xi32>
  %by_and = tile.and %0, %0 : (!tile.tile<64xi32>, !tile.tile<64xi32>) -> !tile.tile<64xi32>
  %by_or = tile.or %0, %0 : (!tile.tile<64xi32>, !tile.tile<64xi32>) -> !tile.tile<64xi32>
  %by_xor = tile.xor %0, %0 : (!tile.tile<64xi32>, !tile.tile<64xi32>) -> !tile.tile<64xi32>
  %by_shl = tile.shl %0, %0 : (!tile.tile<64xi32>, !tile.tile<64xi32>) -> !tile.tile<64xi32>
  %by_shr = tile.shr %0, %0 : (!tile.tile<64xi32>, !tile.tile<64xi32>) -> !tile.tile<64xi32>
  %unsigned_floordiv = tile.floordiv %1, %1 : (!tile.tile<64xui8>, !tile.tile<64xui8>) -> !tile.tile<64xui8>
  %unsigned_mod = tile.mod %1, %1 : (!tile.tile<64xui8>, !tile.tile<64xui8>) -> !tile.tile<64xui8>
  %unsigned_pow = tile.pow %1, %1 : (!tile.tile<64xui8>, !tile.tile<64xui8>) -> !tile.tile<64xui8>
  %unsigned_shr = tile.shr %1, %1 : (!tile.tile<64xui8>, !tile.tile<64xui8>) -> !tile.tile<64xui8>
  %number_floordiv = tile.floordiv %1, %two : (!tile.tile<64xui8>, ui8) -> !tile.tile<64xui8>
  %number_mod = tile.mod %1, %two : (!tile.tile<64xui8>, ui8) -> !tile.tile<64xui8>
  %number_shl = tile.shl %1, %two : (!tile.tile<64xui8>, ui8) -> !tile.tile<64xui8>
  %number_shr = tile.shr %1, %two : (!tile.tile<64xui8>, ui8) -> !tile.tile<64xui8>
  %signed_floordiv = tile.floordiv %0, %five : (!tile.tile<64xi32>, i32) -> !tile.tile<64xi32>
  %signed_mod = tile.mod %0, %five : (!tile.tile<64xi32>, i32) -> !tile.tile<64xi32>
  %signed_shl = tile.shl %0, %five : (!tile.tile<64xi32>, i32) -> !tile.tile<64xi32>
  %signed_shr = tile.shr %0, %five : (!tile.tile<64xi32>, i32) -> !tile.tile<64xi32>
  %inverse = tile.not %2 : (!tile.tile<64xi1>) -> !tile.tile<64xi1>
}

// Casts to integers saturate, casts to bool compare with 0, casts to 16 bits round and go on in f32; those that change no
// register are nothing.

// CHECK:       # ---- casts.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       from .library import saturate
// CHECK:       BLOCK = tl.constexpr(64)
// CHECK-NEXT:  num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # elementwise.mlir:{{.*}}
// CHECK-NEXT:  # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def casts(x_ptr, h_ptr, n_ptr, b_ptr):
// CHECK-NEXT:      offsets = tl.arange(0, BLOCK)
// CHECK-NEXT:      x = tl.load(x_ptr + offsets)
// CHECK-NEXT:      h = tl.load(h_ptr + offsets).to(tl.float32)
// CHECK-NEXT:      n = tl.load(n_ptr + offsets)
// CHECK-NEXT:      b = tl.load(b_ptr + offsets)
// CHECK-NEXT:      saturated = saturate(x, -2147483648, 2147483647, tl.int32)
// CHECK-NEXT:      truth = x != 0
// CHECK-NEXT:      rounded = x.to(tl.float16).to(tl.float32)
// CHECK-NEXT:      twice = rounded + rounded
// CHECK-NEXT:      sum_2 = h + x
// CHECK-NEXT:      short = n.to(tl.int8)
// CHECK-NEXT:      float_2 = n.to(tl.float64)
// CHECK-NEXT:      number = b.to(tl.int64)
// CHECK-NEXT:      stored = sum_2.to(tl.bfloat16)
// CHECK-NEXT:      tl.debug_barrier()
// CHECK-NEXT:      tl.store(h_ptr + offsets, stored)
tile.kernel @casts(%x: !tile.ptr<f32>, %h: !tile.ptr<bf16>, %n: !tile.ptr<i64>, %b: !tile.ptr<i1>) grid [] {
  %z = tile.const 0 : index -> index
  %vx = tile.view %x [] : !tile.ptr<f32> -> !tile.view<64xf32, [1]>
  %vh = tile.view %h [] : !tile.ptr<bf16> -> !tile.view<64xbf16, [1]>
  %vn = tile.view %n [] : !tile.ptr<i64> -> !tile.view<64xi64, [1]>
  %vb = tile.view %b [] : !tile.ptr<i1> -> !tile.view<64xi1, [1]>
  %0 = tile.load %vx[%z] block [64] : !tile.view<64xf32, [1]> -> !tile.tile<64xf32>
  %1 = tile.load %vh[%z] block [64] : !tile.view<64xbf16, [1]> -> !tile.tile<64xbf16>
  %2 = tile.load %vn[%z] block [64] : !tile.view<64xi64, [1]> -> !tile.tile<64xi64>
  %3 = tile.load %vb[%z] block [64] : !tile.view<64xi1, [1]> -> !tile.tile<64xi1>
  %saturated = tile.cast %0 : (!tile.tile<64xf32>) -> !tile.tile<64xi32>
  %truth = tile.cast %0 : (!tile.tile<64xf32>) -> !tile.tile<64xi1>
  %rounded = tile.cast %0 : (!tile.tile<64xf32>) -> !tile.tile<64xf16>
  %twice = tile.add %rounded, %rounded : (!tile.tile<64xf16>, !tile.tile<64xf16>) -> !tile.tile<64xf16>
  %wide = tile.cast %1 : (!tile.tile<64xbf16>) -> !tile.tile<64xf32>
  %sum = tile.add %wide, %0 : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xf32>
  %short = tile.cast %2 : (!tile.tile<64xi64>) -> !tile.tile<64xi8>
  %float = tile.cast %2 : (!tile.tile<64xi64>) -> !tile.tile<64xf64>
  %number = tile.cast %3 : (!tile.tile<64xi1>) -> !tile.tile<64xi64>
  %stored = tile.cast %sum : (!tile.tile<64xf32>) -> !tile.tile<64xbf16>
  tile.store %stored, %vh[%z] block [64] : !tile.tile<64xbf16>, !tile.view<64xbf16, [1]>
}
