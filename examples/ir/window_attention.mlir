// One decoder step over a window: attention of each step over the 64 last keys and values.
//
//   tempo-opt examples/ir/window_attention.mlir \
//     --pass-pipeline='sdg-simplify,sdg-schedule,loop-form-kernels,loop-plan-storage'
//
// Add `-t llvm` or `-t triton` for the code.

!kv = tensor<4x32xf32>
!q = tensor<4x2x32xf32>
!score = tensor<4x2x?xf32, #sdg.size<min(t + 1, 64)>>

sdg.program @window_attention dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<256xf32>
  %wq = sdg.parameter "q" : tensor<4x2x32x256xf32>
  %wk = sdg.parameter "k" : tensor<4x32x256xf32>
  %wv = sdg.parameter "v" : tensor<4x32x256xf32>
  %wo = sdg.parameter "o" : tensor<256x4x2x32xf32>
  %q = sdg.contract "hgdk,k->hgd" %wq, %x[t] in (t) : (tensor<4x2x32x256xf32>, tensor<256xf32>) -> !q
  %k = sdg.contract "hdk,k->hd" %wk, %x[t] in (t) : (tensor<4x32x256xf32>, tensor<256xf32>) -> !kv
  %v = sdg.contract "hdk,k->hd" %wv, %x[t] in (t) : (tensor<4x32x256xf32>, tensor<256xf32>) -> !kv
  %scale = sdg.constant 0.17677669 : tensor<f32>
  %scaled = sdg.mul %q[t], %scale in (t) : (!q, tensor<f32>) -> !q
  %score = sdg.contract "hgd,nhd->hgn" %scaled[t], %k[max(0, t - 63):t + 1] in (t) : (!q, !kv) -> !score
  %weight = sdg.softmax %score[t] axis 2 in (t) : (!score) -> !score
  %mixed = sdg.contract "hgn,nhd->hgd" %weight[t], %v[max(0, t - 63):t + 1] in (t) : (!score, !kv) -> !q
  %y = sdg.contract "khgd,hgd->k" %wo, %mixed[t] in (t) : (tensor<256x4x2x32xf32>, !q) -> tensor<256xf32>
  %out = sdg.add %x[t], %y[t] in (t) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  sdg.output "y" %out[t] in (t) : tensor<256xf32>
}
