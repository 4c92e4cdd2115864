// RUN: tempo-opt %s -p 'sdg-schedule,loop-form-kernels,loop-plan-storage,loop-lower-kernels{target=sm_80}' -t triton --split-input-file | filecheck %s

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

// Attention of a step: the scores of a block are weighed against the greatest so far, nothing of the length of the past is
// kept; the queries are scaled before the loop.

// CHECK:       # ---- mul_contract_softmax.py
// CHECK:       def mul_contract_softmax(q_ptr, k_ptr, v_ptr, o_ptr, scalars_ptr, at: "i64"):
// CHECK:           q = tl.load(q_ptr + n1 + range_2[:, None] * 16 + range_16[None, :])
// CHECK-NEXT:      scaled = q * 2.0
// CHECK-NEXT:      carried = tl.full((2,), float("-inf"), tl.float32)
// CHECK-NEXT:      carried_2 = tl.full((2, 64), 0.0, tl.float32)
// CHECK-NEXT:      carried_3 = tl.full((2, 16), 0.0, tl.float32)
// CHECK-NEXT:      for i in range(0, n0, 64):
// CHECK:               s = tl.sum(scaled[:, :, None] * transposed[None, :, :], axis=1)
// CHECK:               reduce = tl.reduce(chosen_2, 1, nan_maximum)
// CHECK-NEXT:          max_2 = nan_maximum(carried, reduce)
// CHECK:               exp = tl.exp(difference)
// CHECK:               v = tl.load(v_ptr
// CHECK:               carried, carried_2, carried_3 = max_2, sum_of, dot
// CHECK:           o = carried_3 /
// CHECK-NEXT:      tl.store(o_ptr
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
