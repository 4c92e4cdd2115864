// RUN: tempo-opt %s -p sdg-schedule,loop-form-kernels,loop-plan-storage -t triton | filecheck %s --check-prefix=IEEE
// RUN: tempo-opt %s -p sdg-schedule,loop-form-kernels,loop-plan-storage -t 'triton{precision=tf32}' | filecheck %s --check-prefix=TF32
// RUN: tempo-opt %s -p sdg-schedule,loop-form-kernels,loop-plan-storage -t 'triton{machine=sm_90 precision=tf32}' | filecheck %s --check-prefix=TF32
// RUN: not tempo-opt %s -p sdg-schedule -t 'triton{precision=tf16}' 2>&1 | filecheck %s --check-prefix=REFUSED

// Products of f32 are those of f32, unless it is asked that tensor cores multiply 11 bits of each factor.

// IEEE:    tl.dot({{.*}}, input_precision="ieee")
// TF32:    tl.dot({{.*}}, input_precision="tf32")
// REFUSED: error: there is no precision 'tf16'; use one of ieee, tf32
sdg.program @product dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<64x128xf32>
  %w = sdg.parameter "w" : tensor<128x64xf32>
  %y = sdg.contract "bk,kn->bn" %x[t], %w in (t) : (tensor<64x128xf32>, tensor<128x64xf32>) -> tensor<64x64xf32>
  sdg.output "y" %y[t] in (t) : tensor<64x64xf32>
}
