// RUN: tempo-opt %s -p sdg-schedule,loop-form-kernels,loop-plan-storage -t triton | filecheck %s

// Attention of all queries of a prompt: a program has 16 queries of each of three that share their keys, and reads a block of
// keys and of values once for all of them. Keys behind its last query, and those before the window of its first one, are not
// read. Products are of 16 bits, sums of f32; no score is in memory.

// CHECK:       # grid: the launch says how many (p by BLOCK_P), 2 (h)
// CHECK:           start_2 = tl.maximum(0, (-99 + start))
// CHECK-NEXT:      start_3 = start_2 // 64
// CHECK-NEXT:      start_4 = tl.minimum((16 + start), P)
// CHECK:           q = tl.load(q_ptr
// CHECK:           q_2 = tl.load(q_ptr
// CHECK:           q_3 = tl.load(q_ptr
// CHECK:           for p_2_start in range(start_3 * BLOCK_P_2, start_4, BLOCK_P_2):
// CHECK:               seen = n[None, :] <= m[:, None]
// CHECK:               k = tl.load(k_ptr
// CHECK-NOT:           tl.load
// CHECK:               product = tl.dot(q, transposed, input_precision="ieee")
// CHECK:               v = tl.load(v_ptr
// CHECK-NOT:           tl.load
// CHECK:               total_2 = tl.dot({{.*}}, v, {{.*}})
// CHECK:               {{.*}} = tl.dot(q_2, transposed, input_precision="ieee")
// CHECK:               total_4 = tl.dot({{.*}}, v, {{.*}})
// CHECK:               {{.*}} = tl.dot(q_3, transposed, input_precision="ieee")
// CHECK:               total_6 = tl.dot({{.*}}, v, {{.*}})
// CHECK:           tl.store(mixed_ptr + h * 192 + p[:, None] * 384
!q = tensor<?x2x3x64xbf16, #sdg.size<P>>
!k = tensor<?x2x64xbf16, #sdg.size<P>>
!s = tensor<2x3x?x?xbf16, #sdg.size<P, P>>
!m = tensor<?x1xi64, #sdg.size<P>>
!n = tensor<1x?xi64, #sdg.size<P>>
!b = tensor<?x?xi1, #sdg.size<P, P>>
sdg.program @prompt dims(p: P) {
  %q = sdg.input "q" in (p) : tensor<2x3x64xbf16>
  %k = sdg.input "k" in (p) : tensor<2x64xbf16>
  %v = sdg.input "v" in (p) : tensor<2x64xbf16>
  %at = sdg.arange [0:P] : tensor<?xi64, #sdg.size<P>>
  %m = sdg.reshape %at : (tensor<?xi64, #sdg.size<P>>) -> !m
  %n = sdg.reshape %at : (tensor<?xi64, #sdg.size<P>>) -> !n
  %window = sdg.constant 100 : tensor<i64>
  %first = sdg.sub %m, %window : (!m, tensor<i64>) -> !m
  %seen = sdg.le %n, %m : (!n, !m) -> !b
  %near = sdg.gt %n, %first : (!n, !m) -> !b
  %both = sdg.and %seen, %near : (!b, !b) -> !b
  %nothing = sdg.constant -inf : tensor<bf16>
  %scores = sdg.contract "mhgd,nhd->hgmn" %q[0:P], %k[0:P] : (tensor<2x3x64xbf16>, tensor<2x64xbf16>) -> !s
  %masked = sdg.select %both, %scores, %nothing : (!b, !s, tensor<bf16>) -> !s
  %weights = sdg.softmax %masked axis 3 : (!s) -> !s
  %mixed = sdg.contract "hgmn,nhd->mhgd" %weights, %v[0:P] : (!s, tensor<2x64xbf16>) -> !q
  sdg.output "mixed" %mixed : !q
}
