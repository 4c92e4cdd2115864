// RUN: tempo-opt %s -p 'sdg-schedule,loop-form-kernels,loop-plan-storage,loop-lower-kernels{target=sm_80}' -t triton --split-input-file | filecheck %s

// A norm before a product: it is made in the kernel of each product that reads it, as are a bias and an activation. The columns are shared
// by the programs.

// CHECK:       # ---- mean_rsqrt_contract_tanh.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       from .library import tanh
// CHECK:       BLOCK_K = tl.constexpr(32)
// CHECK-NEXT:  BLOCK_N = tl.constexpr(64)
// CHECK-NEXT:  num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # sdg.mul, sdg.mean, sdg.rsqrt, sdg.contract, sdg.add, sdg.tanh
// CHECK-NEXT:  # fusions.mlir:{{.*}}
// CHECK-NEXT:  # grid: 2 (n by BLOCK_N)
// CHECK-NEXT:  @triton.jit(do_not_specialize=["at"])
// CHECK-NEXT:  def mean_rsqrt_contract_tanh(x_ptr, w_ptr, bias_ptr, y_ptr, scalars_ptr, at: "i64"):
// CHECK-NEXT:      n0 = tl.multiple_of(tl.load(scalars_ptr + at), 16)
// CHECK-NEXT:      n1 = tl.multiple_of(tl.load(scalars_ptr + at + 1), 16)
// CHECK-NEXT:      k = tl.arange(0, BLOCK_K)
// CHECK-NEXT:      x = tl.load(x_ptr + n0 + k)
// CHECK-NEXT:      s = x * x
// CHECK-NEXT:      total = tl.sum(s, axis=0)
// CHECK-NEXT:      m = total / 32.0
// CHECK-NEXT:      r = tl.rsqrt(m)
// CHECK-NEXT:      n_2 = x * r
// CHECK-NEXT:      n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
// CHECK-NEXT:      w = tl.load(w_ptr + k[:, None] * 128 + n[None, :])
// CHECK-NEXT:      product = n_2[:, None] * w
// CHECK-NEXT:      p = tl.sum(product, axis=0)
// CHECK-NEXT:      bias = tl.load(bias_ptr + n)
// CHECK-NEXT:      b = p + bias
// CHECK-NEXT:      y = tanh(b)
// CHECK-NEXT:      tl.store(y_ptr + n1 + n, y)
sdg.program @product dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<1x32xf32>
  %w = sdg.parameter "w" : tensor<32x128xf32>
  %bias = sdg.parameter "bias" : tensor<128xf32>
  %s = sdg.mul %x[t], %x[t] in (t) : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
  %m = sdg.mean %s[t] axes [1] in (t) : (tensor<1x32xf32>) -> tensor<1xf32>
  %r = sdg.rsqrt %m[t] in (t) : (tensor<1xf32>) -> tensor<1xf32>
  %c = sdg.reshape %r[t] in (t) : (tensor<1xf32>) -> tensor<1x1xf32>
  %n = sdg.mul %x[t], %c[t] in (t) : (tensor<1x32xf32>, tensor<1x1xf32>) -> tensor<1x32xf32>
  %p = sdg.contract "bk,kn->bn" %n[t], %w in (t) : (tensor<1x32xf32>, tensor<32x128xf32>) -> tensor<1x128xf32>
  %b = sdg.add %p[t], %bias in (t) : (tensor<1x128xf32>, tensor<128xf32>) -> tensor<1x128xf32>
  %y = sdg.tanh %b[t] in (t) : (tensor<1x128xf32>) -> tensor<1x128xf32>
  sdg.output "y" %y[t] in (t) : tensor<1x128xf32>
}

// -----

// Queries that are scaled before attention: in its kernel. Over a cache that may be long 64 programs have every 64th block of keys. The scores of a block are
// weighed against the greatest so far, nothing of the length of the past is kept; the queries are scaled before the loop.
// A second kernel combines what the programs found.

// CHECK:       # ---- mul_contract_shares.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       from .library import nan_maximum
// CHECK:       BLOCK_G = tl.constexpr(2)
// CHECK-NEXT:  BLOCK_D = tl.constexpr(16)
// CHECK-NEXT:  BLOCK_T = tl.constexpr(64)
// CHECK-NEXT:  num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # sdg.mul, sdg.constant, sdg.contract, loop.shares
// CHECK-NEXT:  # fusions.mlir:{{.*}}
// CHECK-NEXT:  # grid: 64 (share)
// CHECK-NEXT:  @triton.jit(do_not_specialize=["at"])
// CHECK-NEXT:  def mul_contract_shares(q_ptr, k_ptr, v_ptr, sums_ptr, greatest_ptr, totals_ptr, scalars_ptr, at: "i64"):
// CHECK-NEXT:      n0 = tl.load(scalars_ptr + at)
// CHECK-NEXT:      n1 = tl.multiple_of(tl.load(scalars_ptr + at + 1), 16)
// CHECK-NEXT:      g = tl.arange(0, BLOCK_G)
// CHECK-NEXT:      d = tl.arange(0, BLOCK_D)
// CHECK-NEXT:      share = tl.program_id(0)
// CHECK-NEXT:      q = tl.load(q_ptr + n1 + g[:, None] * 16 + d[None, :])
// CHECK-NEXT:      scaled = q * 2.0
// CHECK-NEXT:      greatest = tl.full((BLOCK_G,), float("-inf"), tl.float32)
// CHECK-NEXT:      total = tl.zeros((BLOCK_G, BLOCK_T), tl.float32)
// CHECK-NEXT:      total_2 = tl.zeros((BLOCK_G, BLOCK_D), tl.float32)
// CHECK-NEXT:      for t_start in range(share * BLOCK_T, n0, 64 * BLOCK_T):
// CHECK-NEXT:          t = t_start + tl.arange(0, BLOCK_T)
// CHECK-NEXT:          inside_t = t < n0
// CHECK-NEXT:          k = tl.load(k_ptr + t[:, None] * 16 + d[None, :], mask=inside_t[:, None], other=0.0)
// CHECK-NEXT:          s = tl.sum(scaled[:, :, None] * tl.trans(k)[None, :, :], axis=1)
// CHECK-NEXT:          chosen = tl.where(inside_t[None, :], s, float("-inf"))
// CHECK-NEXT:          greatest_2 = tl.reduce(chosen, 1, nan_maximum)
// CHECK-NEXT:          greater = nan_maximum(greatest, greatest_2)
// CHECK-NEXT:          equal = greater == float("-inf")
// CHECK-NEXT:          chosen_2 = tl.where(equal, 0.0, greater)
// CHECK-NEXT:          difference = chosen - chosen_2[:, None]
// CHECK-NEXT:          exp = tl.exp(difference)
// CHECK-NEXT:          difference_2 = greatest - chosen_2
// CHECK-NEXT:          exp_2 = tl.exp(difference_2)
// CHECK-NEXT:          product = total * exp_2[:, None]
// CHECK-NEXT:          total = product + exp
// CHECK-NEXT:          v = tl.load(v_ptr + t[:, None] * 16 + d[None, :], mask=inside_t[:, None], other=0.0)
// CHECK-NEXT:          product_2 = total_2 * exp_2[:, None]
// CHECK-NEXT:          total_2 = product_2 + tl.sum(exp[:, :, None] * v[None, :, :], axis=1)
// CHECK-NEXT:          greatest = greater
// CHECK-NEXT:      total_3 = tl.sum(total, axis=1)
// CHECK-NEXT:      tl.store(sums_ptr + share * 32 + g[:, None] * 16 + d[None, :], total_2)
// CHECK-NEXT:      tl.store(greatest_ptr + share * 2 + g, greatest)
// CHECK-NEXT:      tl.store(totals_ptr + share * 2 + g, total_3)

// CHECK:       # ---- max_eq_exp_contract.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       from .library import nan_maximum
// CHECK:       BLOCK_S = tl.constexpr(64)
// CHECK-NEXT:  BLOCK_D = tl.constexpr(16)
// CHECK-NEXT:  num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # sdg.sub, sdg.max, sdg.constant, sdg.eq, sdg.select, sdg.exp, sdg.contract, sdg.div
// CHECK-NEXT:  # fusions.mlir:{{.*}}
// CHECK-NEXT:  # grid: 2 (g)
// CHECK-NEXT:  @triton.jit(do_not_specialize=["at"])
// CHECK-NEXT:  def max_eq_exp_contract(sums_ptr, greatest_ptr, totals_ptr, o_ptr, scalars_ptr, at: "i64"):
// CHECK-NEXT:      n0 = tl.multiple_of(tl.load(scalars_ptr + at), 16)
// CHECK-NEXT:      s = tl.arange(0, BLOCK_S)
// CHECK-NEXT:      d = tl.arange(0, BLOCK_D)
// CHECK-NEXT:      g = tl.program_id(0)
// CHECK-NEXT:      greatest = tl.load(greatest_ptr + g + s * 2)
// CHECK-NEXT:      greatest_2 = tl.reduce(greatest, 0, nan_maximum)
// CHECK-NEXT:      equal = greatest_2 == float("-inf")
// CHECK-NEXT:      chosen = tl.where(equal, 0.0, greatest_2)
// CHECK-NEXT:      difference = greatest - chosen
// CHECK-NEXT:      exp = tl.exp(difference)
// CHECK-NEXT:      sums = tl.load(sums_ptr + g * 16 + s[:, None] * 32 + d[None, :])
// CHECK-NEXT:      product = exp[:, None] * sums
// CHECK-NEXT:      total = tl.sum(product, axis=0)
// CHECK-NEXT:      totals = tl.load(totals_ptr + g + s * 2)
// CHECK-NEXT:      product_2 = exp * totals
// CHECK-NEXT:      total_2 = tl.sum(product_2, axis=0)
// CHECK-NEXT:      equal_2 = total_2 == 0.0
// CHECK-NEXT:      chosen_2 = tl.where(equal_2, 1.0, total_2)
// CHECK-NEXT:      o = total / chosen_2
// CHECK-NEXT:      tl.store(o_ptr + n0 + g * 16 + d, o)

// CHECK:           mul_contract_shares[(64,)](q, k, v, sums, greatest, totals, scalars, 1)
// CHECK-NEXT:      max_eq_exp_contract[(2,)](sums, greatest, totals, o, scalars, 3)
sdg.program @attention dims(t: T) {
  %q = sdg.input "q" in (t) : tensor<2x16xf32>
  %k = sdg.input "k" in (t) : tensor<16xf32>
  %v = sdg.input "v" in (t) : tensor<16xf32>
  %two = sdg.constant 2.0 : tensor<f32>
  %scaled = sdg.mul %q[t], %two in (t) : (tensor<2x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %s = sdg.contract "gd,nd->gn" %scaled[t], %k[0:t + 1] in (t) : (tensor<2x16xf32>, tensor<16xf32>) -> tensor<2x?xf32, #sdg.size<t + 1>>
  %p = sdg.softmax %s[t] axis 1 in (t) : (tensor<2x?xf32, #sdg.size<t + 1>>) -> tensor<2x?xf32, #sdg.size<t + 1>>
  %o = sdg.contract "gn,nd->gd" %p[t], %v[0:t + 1] in (t) : (tensor<2x?xf32, #sdg.size<t + 1>>, tensor<16xf32>) -> tensor<2x16xf32>
  sdg.output "o" %o[t] in (t) : tensor<2x16xf32>
}
