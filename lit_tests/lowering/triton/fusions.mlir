// RUN: tempo-opt %s -p sdg-schedule,loop-form-kernels,loop-plan-storage -t triton --split-input-file | filecheck %s

// A product with what stands round it: the norm of its rows before, a bias and an activation after. The columns are shared
// by the programs.

// CHECK:       # ---- mean_rsqrt_contract_tanh.py
// CHECK:       # grid (2), num_warps 4
// CHECK-NEXT:  @triton.jit(do_not_specialize=["at"])
// CHECK-NEXT:  def mean_rsqrt_contract_tanh(x_ptr, w_ptr, bias_ptr, y_ptr, scalars_ptr, at: "i64"):
// CHECK:           program = tl.program_id(0).to(tl.int64)
// CHECK-NEXT:      x = tl.load(x_ptr + n0 + range_32)
// CHECK-NEXT:      s = x * x
// CHECK-NEXT:      reduce = tl.sum(s, axis=0)
// CHECK-NEXT:      converted = tl.full((), 32.0, tl.float32)
// CHECK-NEXT:      m = reduce / converted
// CHECK-NEXT:      r = tl.rsqrt(m)
// CHECK-NEXT:      n = x * r
// CHECK-NEXT:      start = program * 64
// CHECK-NEXT:      w = tl.load(w_ptr + start + range_32[:, None] * 128 + range_64[None, :])
// CHECK-NEXT:      expanded = n[None, :]
// CHECK-NEXT:      dot = tl.sum(expanded[:, :, None] * w[None, :, :], axis=1)
// CHECK-NEXT:      p = tl.sum(dot, axis=0)
// CHECK-NEXT:      bias = tl.load(bias_ptr + start + range_64)
// CHECK-NEXT:      b = p + bias
// CHECK-NEXT:      y = tanh(b)
// CHECK-NEXT:      y_2 = y[None, :]
// CHECK-NEXT:      tl.store(y_ptr + (n1 + start) + range_1[:, None] * 128 + range_64[None, :], y_2)
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

// Attention of a step over a cache that may be long: 64 programs have every 64th block of keys. The scores of a block are
// weighed against the greatest so far, nothing of the length of the past is kept; the queries are scaled before the loop.
// A second kernel combines what the programs found.

// CHECK:       # ---- mul_contract_shares.py
// CHECK:       # grid (64), num_warps 4
// CHECK:       def mul_contract_shares(q_ptr, k_ptr, v_ptr, sums_ptr, greatest_ptr, totals_ptr, scalars_ptr, at: "i64"):
// CHECK:           start = program * 64
// CHECK:           q = tl.load(q_ptr + n1 + range_2[:, None] * 16 + range_16[None, :])
// CHECK-NEXT:      scaled = q * 2.0
// CHECK-NEXT:      carried = tl.full((2,), float("-inf"), tl.float32)
// CHECK-NEXT:      carried_2 = tl.full((2, 64), 0.0, tl.float32)
// CHECK-NEXT:      carried_3 = tl.full((2, 16), 0.0, tl.float32)
// CHECK-NEXT:      for i in range(start, n0, 4096):
// CHECK:               s = tl.sum(scaled[:, :, None] * transposed[None, :, :], axis=1)
// CHECK:               reduce = tl.reduce(chosen, 1, nan_maximum)
// CHECK-NEXT:          max_2 = nan_maximum(carried, reduce)
// CHECK:               exp = tl.exp(difference)
// CHECK:               v = tl.load(v_ptr
// CHECK:               carried, carried_2, carried_3 = max_2, sum_of, dot
// CHECK-NEXT:      totals = tl.sum(carried_2, axis=1)
// CHECK-NEXT:      tl.store(sums_ptr
// CHECK-NEXT:      tl.store(greatest_ptr
// CHECK-NEXT:      tl.store(totals_ptr

// CHECK:       # ---- max_eq_exp_contract.py
// CHECK:           greatest = tl.load(greatest_ptr
// CHECK-NEXT:      reduce = tl.reduce(greatest, 0, nan_maximum)
// CHECK-NEXT:      eq = reduce == float("-inf")
// CHECK-NEXT:      chosen = tl.where(eq, 0.0, reduce)
// CHECK:           sums = tl.load(sums_ptr
// CHECK:           chosen_2 = tl.where({{.*}}, 1.0,
// CHECK-NEXT:      o = {{.*}} / chosen_2
// CHECK-NEXT:      tl.store(o_ptr

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
