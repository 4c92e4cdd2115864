// RUN: tempo-opt %s -p sdg-schedule,loop-form-kernels,loop-plan-storage -t triton --split-input-file | filecheck %s

// A bias and an activation after a product: the columns are shared by the programs.

// CHECK:       # ---- contract_add_le_select.py
// CHECK:       # grid: 2 (b by BLOCK_B), 2 (n by BLOCK_N)
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def contract_add_le_select(x_ptr, w_ptr, b_ptr, b3_ptr):
// CHECK-NEXT:      k = tl.arange(0, BLOCK_K)
// CHECK-NEXT:      b = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)
// CHECK-NEXT:      x = tl.load(x_ptr + b[:, None] * 64 + k[None, :])
// CHECK-NEXT:      n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
// CHECK-NEXT:      w = tl.load(w_ptr + k[:, None] * 128 + n[None, :])
// CHECK-NEXT:      product = tl.dot(x, w, input_precision="ieee")
// CHECK-NEXT:      b_2 = tl.load(b_ptr + n)
// CHECK-NEXT:      sum_of = product + b_2[None, :]
// CHECK-NEXT:      at_most = sum_of <= 0.0
// CHECK-NEXT:      b3 = tl.where(at_most, 0.0, sum_of)
// CHECK-NEXT:      tl.store(b3_ptr + b[:, None] * 128 + n[None, :], b3)
// CHECK:       # ---- driver.py
// CHECK:           contract_add_le_select[(2, 2)](x, w, b, y)
sdg.program @bias {
  %x = sdg.input "x" : tensor<32x64xf32>
  %w = sdg.parameter "w" : tensor<64x128xf32>
  %b = sdg.parameter "b" : tensor<128xf32>
  %0 = sdg.contract "bk,kn->bn" %x, %w : (tensor<32x64xf32>, tensor<64x128xf32>) -> tensor<32x128xf32>
  %1 = sdg.add %0, %b : (tensor<32x128xf32>, tensor<128xf32>) -> tensor<32x128xf32>
  %2 = sdg.constant 0.0 : tensor<f32>
  %3 = sdg.le %1, %2 : (tensor<32x128xf32>, tensor<f32>) -> tensor<32x128xi1>
  %4 = sdg.select %3, %2, %1 : (tensor<32x128xi1>, tensor<f32>, tensor<32x128xf32>) -> tensor<32x128xf32>
  sdg.output "y" %4 : tensor<32x128xf32>
}

// -----

// A residual after a product: read where the product is written.

// CHECK:       # ---- contract_add_over_t.py
// CHECK:       # grid: 2 (n by BLOCK_N)
// CHECK-NEXT:  @triton.jit(do_not_specialize=["T"])
// CHECK-NEXT:  def contract_add_over_t(x_ptr, w_ptr, r_ptr, b3_ptr, T: "i64"):
// CHECK-NEXT:      k = tl.arange(0, BLOCK_K)
// CHECK-NEXT:      n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
// CHECK-NEXT:      w = tl.load(w_ptr + n[:, None] * 64 + k[None, :])
// CHECK-NEXT:      for t in range(T):
// CHECK-NEXT:          start = t * 32
// CHECK-NEXT:          r = tl.load(r_ptr + start + n)
// CHECK-NEXT:          x = tl.load(x_ptr + t * 64 + k)
// CHECK-NEXT:          product = x[None, :] * w
// CHECK-NEXT:          total = tl.sum(product, axis=1)
// CHECK-NEXT:          b3 = r + total
// CHECK-NEXT:          tl.store(b3_ptr + start + n, b3)
// CHECK:       # ---- driver.py
// CHECK:           contract_add_over_t[(2,)](x, w, r, y, T)
sdg.program @residual dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<1x64xf32>
  %r = sdg.input "r" in (t) : tensor<1x32xf32>
  %w = sdg.parameter "w" : tensor<32x64xf32>
  %0 = sdg.contract "bk,nk->bn" %x[t], %w in (t) : (tensor<1x64xf32>, tensor<32x64xf32>) -> tensor<1x32xf32>
  %1 = sdg.add %r[t], %0[t] in (t) : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
  sdg.output "y" %1[t] in (t) : tensor<1x32xf32>
}

// -----

// Heads of a product, in a cache: a row of it is written head by head.

// CHECK:       # ---- contract_reshape.py
// CHECK:       # grid: 4
// CHECK-NEXT:  @triton.jit(do_not_specialize=["at"])
// CHECK-NEXT:  def contract_reshape(x_ptr, w_ptr, v_ptr, scalars_ptr, at: "i64"):
// CHECK-NEXT:      n0 = tl.multiple_of(tl.load(scalars_ptr + at), 16)
// CHECK-NEXT:      n1 = tl.multiple_of(tl.load(scalars_ptr + at + 1), 16)
// CHECK-NEXT:      k = tl.arange(0, BLOCK_K)
// CHECK-NEXT:      row = tl.arange(0, BLOCK_ROW)
// CHECK-NEXT:      program = tl.program_id(0)
// CHECK-NEXT:      x = tl.load(x_ptr + n0 + k)
// CHECK-NEXT:      w = tl.load(w_ptr + program * 512 + row[:, None] * 64 + k[None, :])
// CHECK-NEXT:      product = x[None, :] * w
// CHECK-NEXT:      v = tl.sum(product, axis=1)
// CHECK-NEXT:      tl.store(v_ptr + n1 + program * 8 + row, v)
// CHECK:       # ---- sum_kernel.py
// CHECK:       # grid: one program
// CHECK-NEXT:  @triton.jit(do_not_specialize=["at"])
// CHECK-NEXT:  def sum_kernel(v_ptr, b1_ptr, scalars_ptr, at: "i64"):
// CHECK-NEXT:      n0 = tl.load(scalars_ptr + at)
// CHECK-NEXT:      n1 = tl.multiple_of(tl.load(scalars_ptr + at + 1), 16)
// CHECK-NEXT:      col = tl.arange(0, BLOCK_COL)
// CHECK-NEXT:      total = tl.zeros((BLOCK_ROW, BLOCK_COL), tl.float32)
// CHECK-NEXT:      for row_start in range(0, n0, BLOCK_ROW):
// CHECK-NEXT:          row = row_start + tl.arange(0, BLOCK_ROW)
// CHECK-NEXT:          inside_row = row < n0
// CHECK-NEXT:          v = tl.load(v_ptr + row[:, None] * 32 + col[None, :], mask=inside_row[:, None], other=0.0)
// CHECK-NEXT:          total += v
// CHECK-NEXT:      total_2 = tl.sum(total, axis=0)
// CHECK-NEXT:      tl.store(b1_ptr + n1 + col, total_2)
// CHECK:       # ---- driver.py
// CHECK:           def step_t():
// CHECK:               next_t[(1,)](scalars)
// CHECK:               contract_reshape[(4,)](x, w, v, scalars, 1)
// CHECK:               sum_kernel[(1,)](v, s, scalars, 3)
// CHECK:           for t in range(T):
sdg.program @heads dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<1x64xf32>
  %w = sdg.parameter "w" : tensor<32x64xf32>
  %0 = sdg.contract "bk,nk->bn" %x[t], %w in (t) : (tensor<1x64xf32>, tensor<32x64xf32>) -> tensor<1x32xf32>
  %v = sdg.reshape %0[t] in (t) : (tensor<1x32xf32>) -> tensor<4x8xf32>
  %1 = sdg.sum %v[0:t + 1] axes [0] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  sdg.output "s" %1[t] in (t) : tensor<4x8xf32>
}

// -----

// Weights of 16 bits: they are multiplied as they are stored, by tensor cores, and summed in f32.

// CHECK:       # ---- contract_cast.py
// CHECK:       # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def contract_cast(x_ptr, w_ptr, b2_ptr):
// CHECK-NEXT:      b = tl.arange(0, BLOCK_B)
// CHECK-NEXT:      inside_b = b < 5
// CHECK-NEXT:      k = tl.arange(0, BLOCK_K)
// CHECK-NEXT:      n = tl.arange(0, BLOCK_N)
// CHECK-NEXT:      inside_n = n < 37
// CHECK-NEXT:      x = tl.load(x_ptr + b[:, None] * 64 + k[None, :], mask=inside_b[:, None], other=0.0)
// CHECK-NEXT:      w = tl.load(w_ptr + k[:, None] * 37 + n[None, :], mask=inside_n[None, :], other=0.0)
// CHECK-NEXT:      product = tl.dot(x, w, input_precision="ieee")
// CHECK-NEXT:      converted = product.to(tl.float16).to(tl.float32)
// CHECK-NEXT:      tl.store(b2_ptr + b[:, None] * 37 + n[None, :], converted, mask=inside_b[:, None] & inside_n[None, :])
// CHECK:       # ---- driver.py
// CHECK:           contract_cast[(1,)](x, w, y)
sdg.program @narrow {
  %x = sdg.input "x" : tensor<5x64xf16>
  %w = sdg.parameter "w" : tensor<64x37xf16>
  %0 = sdg.contract "bk,kn->bn" %x, %w : (tensor<5x64xf16>, tensor<64x37xf16>) -> tensor<5x37xf16>
  %1 = sdg.cast %0 : (tensor<5x37xf16>) -> tensor<5x37xf32>
  sdg.output "y" %1 : tensor<5x37xf32>
}

// -----

// Keys that are rotated into a cache: both halves are written by one kernel, beside what the cache has.

// CHECK:       # ---- concat_kernel.py
// CHECK:       # grid: one program
// CHECK-NEXT:  @triton.jit(do_not_specialize=["at"])
// CHECK-NEXT:  def concat_kernel(x_ptr, c_ptr, s_ptr, k_ptr, scalars_ptr, at: "i64"):
// CHECK-NEXT:      n0 = tl.multiple_of(tl.load(scalars_ptr + at), 16)
// CHECK-NEXT:      n1 = tl.multiple_of(tl.load(scalars_ptr + at + 1), 16)
// CHECK-NEXT:      n2 = tl.multiple_of(tl.load(scalars_ptr + at + 2), 16)
// CHECK-NEXT:      row = tl.arange(0, BLOCK_ROW)
// CHECK-NEXT:      col = tl.arange(0, BLOCK_COL)
// CHECK-NEXT:      x = tl.load(x_ptr + n0 + row[:, None] * 32 + col[None, :])
// CHECK-NEXT:      c = tl.load(c_ptr + n1 + col)
// CHECK-NEXT:      product = x * c[None, :]
// CHECK-NEXT:      b = tl.load(x_ptr + n2 + row[:, None] * 32 + col[None, :])
// CHECK-NEXT:      s = tl.load(s_ptr + n1 + col)
// CHECK-NEXT:      product_2 = b * s[None, :]
// CHECK-NEXT:      k = product - product_2
// CHECK-NEXT:      tl.store(k_ptr + n0 + row[:, None] * 32 + col[None, :], k)
// CHECK-NEXT:      product_3 = b * c[None, :]
// CHECK-NEXT:      product_4 = x * s[None, :]
// CHECK-NEXT:      k_2 = product_3 + product_4
// CHECK-NEXT:      tl.store(k_ptr + n0 + 16 + row[:, None] * 32 + col[None, :], k_2)
// CHECK:       # ---- sum_kernel.py
// CHECK:       # grid: 2 (col by BLOCK_COL)
// CHECK-NEXT:  @triton.jit(do_not_specialize=["at"])
// CHECK-NEXT:  def sum_kernel(k_ptr, b1_ptr, scalars_ptr, at: "i64"):
// CHECK-NEXT:      n0 = tl.load(scalars_ptr + at)
// CHECK-NEXT:      n1 = tl.multiple_of(tl.load(scalars_ptr + at + 1), 16)
// CHECK-NEXT:      col = tl.program_id(0) * BLOCK_COL + tl.arange(0, BLOCK_COL)
// CHECK-NEXT:      total = tl.zeros((BLOCK_ROW, BLOCK_COL), tl.float32)
// CHECK-NEXT:      for row_start in range(0, n0, BLOCK_ROW):
// CHECK-NEXT:          row = row_start + tl.arange(0, BLOCK_ROW)
// CHECK-NEXT:          inside_row = row < n0
// CHECK-NEXT:          k = tl.load(k_ptr + row[:, None] * 128 + col[None, :], mask=inside_row[:, None], other=0.0)
// CHECK-NEXT:          total += k
// CHECK-NEXT:      total_2 = tl.sum(total, axis=0)
// CHECK-NEXT:      tl.store(b1_ptr + n1 + col, total_2)
// CHECK:       # ---- driver.py
// CHECK:           def step_t():
// CHECK:               next_t[(1,)](scalars)
// CHECK:               concat_kernel[(1,)](x, c, s, k, scalars, 1)
// CHECK:               sum_kernel[(2,)](k, total, scalars, 4)
// CHECK:           for t in range(T):
sdg.program @rotated dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4x32xf32>
  %c = sdg.input "c" in (t) : tensor<16xf32>
  %s = sdg.input "s" in (t) : tensor<16xf32>
  %0 = sdg.slice %x[t] take [0:4, 0:16] in (t) : (tensor<4x32xf32>) -> tensor<4x16xf32>
  %b = sdg.slice %x[t] take [0:4, 16:32] in (t) : (tensor<4x32xf32>) -> tensor<4x16xf32>
  %1 = sdg.mul %0[t], %c[t] in (t) : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %2 = sdg.mul %b[t], %s[t] in (t) : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %3 = sdg.sub %1[t], %2[t] in (t) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %4 = sdg.mul %b[t], %c[t] in (t) : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %5 = sdg.mul %0[t], %s[t] in (t) : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %6 = sdg.add %4[t], %5[t] in (t) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %k = sdg.concat %3[t], %6[t] axis 1 in (t) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x32xf32>
  %7 = sdg.sum %k[0:t + 1] axes [0] in (t) : (tensor<4x32xf32>) -> tensor<4x32xf32>
  sdg.output "total" %7[t] in (t) : tensor<4x32xf32>
}
