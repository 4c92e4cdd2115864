// RUN: tempo-opt %s -p sdg-schedule,loop-form-kernels,loop-plan-storage -t triton --split-input-file | filecheck %s

// A softmax: one pass over a row that a program holds; padding is -inf, and counts for nothing.

// CHECK:       # ---- mul_softmax.py
// CHECK:       # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def mul_softmax(x_ptr, b1_ptr):
// CHECK-NEXT:      row = tl.arange(0, BLOCK_ROW)
// CHECK-NEXT:      col = tl.arange(0, BLOCK_COL)
// CHECK-NEXT:      inside_col = col < 100
// CHECK-NEXT:      x = tl.load(x_ptr + row[:, None] * 100 + col[None, :], mask=inside_col[None, :], other=0.0)
// CHECK-NEXT:      product = x * 0.5
// CHECK-NEXT:      chosen = tl.where(inside_col[None, :], product, float("-inf"))
// CHECK-NEXT:      greatest = tl.reduce(chosen, 1, nan_maximum)
// CHECK-NEXT:      equal = greatest == float("-inf")
// CHECK-NEXT:      chosen_2 = tl.where(equal, 0.0, greatest)
// CHECK-NEXT:      difference = product - chosen_2[:, None]
// CHECK-NEXT:      exp = tl.exp(difference)
// CHECK-NEXT:      chosen_3 = tl.where(inside_col[None, :], exp, 0.0)
// CHECK-NEXT:      total = tl.sum(chosen_3, axis=1)
// CHECK-NEXT:      equal_2 = total == 0.0
// CHECK-NEXT:      chosen_4 = tl.where(equal_2, 1.0, total)
// CHECK-NEXT:      quotient = 1.0 / chosen_4
// CHECK-NEXT:      b1 = exp * quotient[:, None]
// CHECK-NEXT:      tl.store(b1_ptr + row[:, None] * 100 + col[None, :], b1, mask=inside_col[None, :])
// CHECK:       # ---- driver.py
// CHECK:           mul_softmax[(1,)](x, y)
sdg.program @soft {
  %x = sdg.input "x" : tensor<8x100xf32>
  %0 = sdg.constant 0.5 : tensor<f32>
  %1 = sdg.mul %x, %0 : (tensor<8x100xf32>, tensor<f32>) -> tensor<8x100xf32>
  %2 = sdg.softmax %1 axis 1 : (tensor<8x100xf32>) -> tensor<8x100xf32>
  sdg.output "y" %2 : tensor<8x100xf32>
}

// -----

// A greedy choice: the first of the greatest.

// CHECK:       # ---- add_argmax.py
// CHECK:       # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def add_argmax(x_ptr, b_ptr, b2_ptr):
// CHECK-NEXT:      row = tl.arange(0, BLOCK_ROW)
// CHECK-NEXT:      col = tl.arange(0, BLOCK_COL)
// CHECK-NEXT:      x = tl.load(x_ptr + row[:, None] * 64 + col[None, :])
// CHECK-NEXT:      b = tl.load(b_ptr + col)
// CHECK-NEXT:      sum_of = x + b[None, :]
// CHECK-NEXT:      place = tl.reduce((sum_of, tl.broadcast_to(col[None, :], (BLOCK_ROW, BLOCK_COL))), 1, first_largest)[1].to(tl.int64)
// CHECK-NEXT:      tl.store(b2_ptr + row, place)
// CHECK:       # ---- driver.py
// CHECK:           add_argmax[(1,)](x, b, y)
sdg.program @greedy {
  %x = sdg.input "x" : tensor<8x64xf32>
  %b = sdg.parameter "b" : tensor<64xf32>
  %0 = sdg.add %x, %b : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  %1 = sdg.argmax %0 axis 1 : (tensor<8x64xf32>) -> tensor<8xi64>
  sdg.output "y" %1 : tensor<8xi64>
}

// -----

// A running sum: it carries on along its axis.

// CHECK:       # ---- mul_kernel.py
// CHECK:       # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def mul_kernel(x_ptr, b1_ptr):
// CHECK-NEXT:      offsets = tl.arange(0, BLOCK)
// CHECK-NEXT:      x = tl.load(x_ptr + offsets)
// CHECK-NEXT:      b1 = x * 2.0
// CHECK-NEXT:      tl.store(b1_ptr + offsets, b1)
// CHECK:       # ---- cumsum_kernel.py
// CHECK:       # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def cumsum_kernel(b0_ptr, b1_ptr):
// CHECK-NEXT:      offsets = tl.arange(0, BLOCK)
// CHECK-NEXT:      total = tl.zeros((BLOCK,), tl.float32)
// CHECK-NEXT:      for i in range(64):
// CHECK-NEXT:          b0 = tl.load(b0_ptr + i + offsets * 64)
// CHECK-NEXT:          b1 = b0 + total
// CHECK-NEXT:          total = b1
// CHECK-NEXT:          tl.store(b1_ptr + i + offsets * 64, b1)
// CHECK:       # ---- driver.py
// CHECK:           mul_kernel[(1,)](x, buffer)
// CHECK:           cumsum_kernel[(1,)](buffer, y)
sdg.program @running {
  %x = sdg.input "x" : tensor<16x64xf32>
  %0 = sdg.constant 2.0 : tensor<f32>
  %1 = sdg.mul %x, %0 : (tensor<16x64xf32>, tensor<f32>) -> tensor<16x64xf32>
  %2 = sdg.cumsum %1 axis 1 : (tensor<16x64xf32>) -> tensor<16x64xf32>
  sdg.output "y" %2 : tensor<16x64xf32>
}

// -----

// A concatenation: each part is written where it goes.

// CHECK:       # ---- exp_kernel.py
// CHECK:       # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def exp_kernel(y_ptr, b1_ptr):
// CHECK-NEXT:      offsets = tl.arange(0, BLOCK)
// CHECK-NEXT:      inside_offsets = offsets < 384
// CHECK-NEXT:      y = tl.load(y_ptr + offsets, mask=inside_offsets, other=0.0)
// CHECK-NEXT:      b1 = tl.exp(y)
// CHECK-NEXT:      tl.store(b1_ptr + offsets, b1, mask=inside_offsets)
// CHECK:       # ---- mul_concat.py
// CHECK:       # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def mul_concat(x_ptr, b1_ptr, b2_ptr):
// CHECK-NEXT:      row = tl.arange(0, BLOCK_ROW)
// CHECK-NEXT:      col = tl.arange(0, BLOCK_COL)
// CHECK-NEXT:      col_2 = tl.arange(0, BLOCK_COL_2)
// CHECK-NEXT:      inside_col_2 = col_2 + 16 < 64
// CHECK-NEXT:      x = tl.load(x_ptr + row[:, None] * 16 + col[None, :])
// CHECK-NEXT:      b2 = x * 2.0
// CHECK-NEXT:      tl.store(b2_ptr + row[:, None] * 64 + col[None, :], b2)
// CHECK-NEXT:      b1 = tl.load(b1_ptr + row[:, None] * 48 + col_2[None, :], mask=inside_col_2[None, :], other=0.0)
// CHECK-NEXT:      tl.debug_barrier()
// CHECK-NEXT:      tl.store(b2_ptr + 16 + row[:, None] * 64 + col_2[None, :], b1, mask=inside_col_2[None, :])
// CHECK:       # ---- driver.py
// CHECK:           exp_kernel[(1,)](y, buffer)
// CHECK:           mul_concat[(1,)](x, buffer, z)
sdg.program @joined {
  %x = sdg.input "x" : tensor<8x16xf32>
  %y = sdg.input "y" : tensor<8x48xf32>
  %0 = sdg.constant 2.0 : tensor<f32>
  %1 = sdg.mul %x, %0 : (tensor<8x16xf32>, tensor<f32>) -> tensor<8x16xf32>
  %2 = sdg.exp %y : (tensor<8x48xf32>) -> tensor<8x48xf32>
  %3 = sdg.concat %1, %2 axis 1 : (tensor<8x16xf32>, tensor<8x48xf32>) -> tensor<8x64xf32>
  sdg.output "z" %3 : tensor<8x64xf32>
}
