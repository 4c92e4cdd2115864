// RUN: tempo-opt %s -p sdg-default,sdg-schedule,loop-form-kernels,loop-plan-storage -t triton --split-input-file | filecheck %s

// Rows by their ids: an id outside is reported, and read as the nearest one that there is.

// CHECK:       # ---- gather_kernel.py
// CHECK:       # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def gather_kernel(e_ptr, ids_ptr, b2_ptr, status_ptr):
// CHECK-NEXT:      row = tl.arange(0, BLOCK_ROW)
// CHECK-NEXT:      col = tl.arange(0, BLOCK_COL)
// CHECK-NEXT:      ids = tl.load(ids_ptr + row)
// CHECK-NEXT:      is_below = ids < 0
// CHECK-NEXT:      at_least = ids >= 100
// CHECK-NEXT:      either = is_below | at_least
// CHECK-NEXT:      some = tl.reduce(either, 0, bitwise_or)
// CHECK-NEXT:      if some:
// CHECK-NEXT:          tl.store(status_ptr, tl.full((), 1, tl.int64))
// CHECK-NEXT:          chosen = tl.where(either, ids, -9223372036854775808)
// CHECK-NEXT:          greatest = tl.max(chosen, axis=0)
// CHECK-NEXT:          tl.store(status_ptr + 1, greatest)
// CHECK-NEXT:      inside = (ids >= 0) & (ids < 100)
// CHECK-NEXT:      e = tl.load(e_ptr + ids[:, None] * 64 + col[None, :], mask=inside[:, None], other=0.0)
// CHECK-NEXT:      tl.store(b2_ptr + row[:, None] * 64 + col[None, :], e)
// CHECK:       # ---- driver.py
// CHECK:           gather_kernel[(1,)](e, ids, y, status)
sdg.program @rows {
  %e = sdg.parameter "e" : tensor<100x64xf32>
  %ids = sdg.input "ids" : tensor<8xi64>
  %0 = sdg.gather %e, %ids axis 0 : (tensor<100x64xf32>, tensor<8xi64>) -> tensor<8x64xf32>
  sdg.output "y" %0 : tensor<8x64xf32>
}

// -----

// A draw: Philox by its counter, made normal in the same kernel.

// CHECK:       # ---- random_kernel_over_t.py
// CHECK:       # grid: 1 (offsets by BLOCK)
// CHECK-NEXT:  @triton.jit(do_not_specialize=["T", "call_start_t", "call_seed"])
// CHECK-NEXT:  def random_kernel_over_t(b0_ptr, T: "i64", call_start_t: "i64", call_seed: "i64"):
// CHECK-NEXT:      offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
// CHECK-NEXT:      inside_offsets = offsets < 100
// CHECK-NEXT:      positions = offsets.to(tl.int64)
// CHECK-NEXT:      converted = positions.to(tl.uint32)
// CHECK-NEXT:      converted_2 = call_seed.to(tl.uint32)
// CHECK-NEXT:      for t in range(T):
// CHECK-NEXT:          converted_3 = (call_start_t + t).to(tl.uint32)
// CHECK-NEXT:          word_0, word_1, word_2, word_3 = tl.philox_impl(
// CHECK-NEXT:              converted,
// CHECK-NEXT:              converted_3,
// CHECK-NEXT:              tl.full((), 0, tl.uint32),
// CHECK-NEXT:              tl.full((), 0, tl.uint32),
// CHECK-NEXT:              converted_2,
// CHECK-NEXT:              tl.full((), 0, tl.uint32),
// CHECK-NEXT:          )
// CHECK-NEXT:          shr = word_0 >> 8
// CHECK-NEXT:          converted_4 = shr.to(tl.float32)
// CHECK-NEXT:          b0 = converted_4 * 5.9604645e-08
// CHECK-NEXT:          tl.store(b0_ptr + t * 100 + offsets, b0, mask=inside_offsets)
// CHECK:       # ---- driver.py
// CHECK:           random_kernel_over_t[(1,)](y, T, start_t, seed)
sdg.program @draw dims(t: T) {
  %0 = sdg.random uniform id 0 in (t) : tensor<100xf32>
  sdg.output "y" %0[t] in (t) : tensor<100xf32>
}

// -----

// An update of a parameter: one kernel for all that it takes.

// CHECK:       # ---- abs_sqrt_over_t.py
// CHECK:       # grid: 2 (offsets by BLOCK)
// CHECK-NEXT:  @triton.jit(do_not_specialize=["T"])
// CHECK-NEXT:  def abs_sqrt_over_t(m_last_ptr, g_ptr, w_last_ptr, T: "i64"):
// CHECK-NEXT:      offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
// CHECK-NEXT:      m_last = tl.load(m_last_ptr + offsets)
// CHECK-NEXT:      w_last = tl.load(w_last_ptr + offsets)
// CHECK-NEXT:      total = m_last
// CHECK-NEXT:      carried = w_last
// CHECK-NEXT:      for t in range(T):
// CHECK-NEXT:          product = total * 0.9
// CHECK-NEXT:          g = tl.load(g_ptr + t * 256 + offsets)
// CHECK-NEXT:          product_2 = g * 0.1
// CHECK-NEXT:          total = product + product_2
// CHECK-NEXT:          product_3 = total * 0.01
// CHECK-NEXT:          magnitude = tl.abs(total)
// CHECK-NEXT:          sqrt = tl.sqrt(magnitude)
// CHECK-NEXT:          sum_of = sqrt + 1e-06
// CHECK-NEXT:          quotient = product_3 / sum_of
// CHECK-NEXT:          carried = carried - quotient
// CHECK-NEXT:          tl.debug_barrier()
// CHECK-NEXT:          tl.store(m_last_ptr + offsets, total)
// CHECK-NEXT:          tl.store(w_last_ptr + offsets, carried)
// CHECK:       # ---- copy_kernels.py
// CHECK:       # grid: 2
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def copy_kernels(w_first_ptr, w_last_ptr, m_first_ptr, m_last_ptr):
// CHECK-NEXT:      offsets = tl.arange(0, BLOCK)
// CHECK-NEXT:      if tl.program_id(0) < 1:
// CHECK-NEXT:          w_first = tl.load(w_first_ptr + offsets)
// CHECK-NEXT:          tl.store(w_last_ptr + offsets, w_first)
// CHECK-NEXT:      else:
// CHECK-NEXT:          m_first = tl.load(m_first_ptr + offsets)
// CHECK-NEXT:          tl.store(m_last_ptr + offsets, m_first)
// CHECK:       # ---- driver.py
// CHECK:           copy_kernels[(2,)](w_first, w_last, m_first, m_last)
// CHECK:           abs_sqrt_over_t[(2,)](m_last, g, w_last, T)
sdg.program @update dims(t: T) {
  %g = sdg.input "g" in (t) : tensor<256xf32>
  %w_first = sdg.parameter "w" : tensor<256xf32>
  %w = sdg.merge {t = 0 : %w_first, t > 0 : %w_next[t - 1]} in (t) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %m_first = sdg.parameter "m" : tensor<256xf32>
  %m = sdg.merge {t = 0 : %m_first, t > 0 : %m_next[t - 1]} in (t) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %0 = sdg.constant 0.9 : tensor<f32>
  %1 = sdg.mul %m[t], %0 in (t) : (tensor<256xf32>, tensor<f32>) -> tensor<256xf32>
  %2 = sdg.constant 0.1 : tensor<f32>
  %3 = sdg.mul %g[t], %2 in (t) : (tensor<256xf32>, tensor<f32>) -> tensor<256xf32>
  %m_next = sdg.add %1[t], %3[t] in (t) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %4 = sdg.constant 0.01 : tensor<f32>
  %5 = sdg.mul %m_next[t], %4 in (t) : (tensor<256xf32>, tensor<f32>) -> tensor<256xf32>
  %6 = sdg.abs %m_next[t] in (t) : (tensor<256xf32>) -> tensor<256xf32>
  %7 = sdg.sqrt %6[t] in (t) : (tensor<256xf32>) -> tensor<256xf32>
  %8 = sdg.constant 1.0e-06 : tensor<f32>
  %9 = sdg.add %7[t], %8 in (t) : (tensor<256xf32>, tensor<f32>) -> tensor<256xf32>
  %10 = sdg.div %5[t], %9[t] in (t) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %w_next = sdg.sub %w[t], %10[t] in (t) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %w_last = sdg.merge {T = 0 : %w_first, T > 0 : %w_next[T - 1]} : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  sdg.output "w" %w_last : tensor<256xf32>
  %m_last = sdg.merge {T = 0 : %m_first, T > 0 : %m_next[T - 1]} : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  sdg.output "m" %m_last : tensor<256xf32>
}

// -----

// A tail: of 100 elements the last programs have fewer.

// CHECK:       # ---- exp_add_over_t.py
// CHECK:       # grid: 24 (offsets by BLOCK)
// CHECK-NEXT:  @triton.jit(do_not_specialize=["T"])
// CHECK-NEXT:  def exp_add_over_t(x_ptr, b1_ptr, T: "i64"):
// CHECK-NEXT:      offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
// CHECK-NEXT:      inside_offsets = offsets < 3000
// CHECK-NEXT:      for t in range(T):
// CHECK-NEXT:          start = t * 3000
// CHECK-NEXT:          x = tl.load(x_ptr + start + offsets, mask=inside_offsets, other=0.0)
// CHECK-NEXT:          exp = tl.exp(x)
// CHECK-NEXT:          b1 = exp + 1.0
// CHECK-NEXT:          tl.store(b1_ptr + start + offsets, b1, mask=inside_offsets)
// CHECK:       # ---- driver.py
// CHECK:           exp_add_over_t[(24,)](x, y, T)
sdg.program @tail dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3000xf32>
  %0 = sdg.exp %x[t] in (t) : (tensor<3000xf32>) -> tensor<3000xf32>
  %1 = sdg.constant 1.0 : tensor<f32>
  %2 = sdg.add %0[t], %1 in (t) : (tensor<3000xf32>, tensor<f32>) -> tensor<3000xf32>
  sdg.output "y" %2[t] in (t) : tensor<3000xf32>
}

// -----

// A guard: the first step is another kernel, chosen by the driver.

// CHECK:       # ---- mul_kernel.py
// CHECK:       # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def mul_kernel(x_ptr, h_ptr):
// CHECK-NEXT:      offsets = tl.arange(0, BLOCK)
// CHECK-NEXT:      x = tl.load(x_ptr + offsets)
// CHECK-NEXT:      h = x * 2.0
// CHECK-NEXT:      tl.store(h_ptr + offsets, h)
// CHECK:       # ---- add_tanh_over_t.py
// CHECK:       # grid: 1 (offsets by BLOCK)
// CHECK-NEXT:  @triton.jit(do_not_specialize=["T"])
// CHECK-NEXT:  def add_tanh_over_t(h_ptr, x_ptr, T: "i64"):
// CHECK-NEXT:      offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
// CHECK-NEXT:      start = tl.full((), 0, tl.int64) + 1
// CHECK-NEXT:      if start < T:
// CHECK-NEXT:          h = tl.load(h_ptr + offsets)
// CHECK-NEXT:          carried = h
// CHECK-NEXT:          for t in range(start, T):
// CHECK-NEXT:              start_2 = t * 64
// CHECK-NEXT:              x = tl.load(x_ptr + start_2 + offsets)
// CHECK-NEXT:              sum_of = carried + x
// CHECK-NEXT:              carried = tanh(sum_of)
// CHECK-NEXT:              tl.store(h_ptr + start_2 + offsets, carried)
// CHECK:       # ---- driver.py
// CHECK:           if T >= 1:
// CHECK:               mul_kernel[(1,)](x, h)
// CHECK:           add_tanh_over_t[(1,)](h, x, T)
sdg.program @guard dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<64xf32>
  %h = sdg.merge {t = 0 : %0, true : %1[t]} in (t) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %2 = sdg.constant 2.0 : tensor<f32>
  %0 = sdg.mul %x[0], %2 in (where T >= 1) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = sdg.add %h[t - 1], %x[t] in (t: 1 to T) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %1 = sdg.tanh %3[t] in (t: 1 to T) : (tensor<64xf32>) -> tensor<64xf32>
  sdg.output "y" %h[t] in (t) : tensor<64xf32>
}

// -----

// Sums into rows: torch adds, since the order of ids is the data's.

// CHECK:       # ---- scatter_add_kernel.py
// CHECK:       # grid: one program
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def scatter_add_kernel(ids_ptr, x_ptr, ge_ptr, status_ptr):
// CHECK-NEXT:      offsets = tl.arange(0, BLOCK)
// CHECK-NEXT:      for i in range(10):
// CHECK-NEXT:          tl.store(ge_ptr + i * 16 + offsets, tl.zeros((BLOCK,), tl.float32))
// CHECK-NEXT:      for i_2 in range(8):
// CHECK-NEXT:          ids = tl.load(ids_ptr + i_2)
// CHECK-NEXT:          is_below = ids < 0
// CHECK-NEXT:          at_least = ids >= 10
// CHECK-NEXT:          either = is_below | at_least
// CHECK-NEXT:          if either:
// CHECK-NEXT:              tl.store(status_ptr, tl.full((), 1, tl.int64))
// CHECK-NEXT:              status = tl.where(either, ids, -9223372036854775808)
// CHECK-NEXT:              tl.store(status_ptr + 1, status)
// CHECK-NEXT:          x = tl.load(x_ptr + i_2 * 16 + offsets)
// CHECK-NEXT:          start = tl.minimum(ids, 9)
// CHECK-NEXT:          ge = tl.maximum(start, 0)
// CHECK-NEXT:          tl.debug_barrier()
// CHECK-NEXT:          tl.atomic_add(ge_ptr + ge * 16 + offsets, x)
// CHECK:       # ---- driver.py
// CHECK:           scatter_add_kernel[(1,)](ids, x, ge, status)
sdg.program @sums {
  %ids = sdg.input "ids" : tensor<8xi64>
  %x = sdg.input "x" : tensor<8x16xf32>
  %e = sdg.parameter "e" : tensor<10x16xf32>
  %0 = sdg.gather %e, %ids axis 0 : (tensor<10x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
  %1 = sdg.mul %0, %x : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %loss = sdg.sum %1 axes [0, 1] : (tensor<8x16xf32>) -> tensor<f32>
  %2 = sdg.grad %loss wrt %e : (tensor<f32>, tensor<10x16xf32>) -> tensor<10x16xf32>
  sdg.output "g" %2 : tensor<10x16xf32>
}
