// RUN: tempo-opt %s --check-each -p sdg-schedule,loop-form-kernels --split-input-file | filecheck %s

// A norm that two products read is computed in the kernel of each: its rows are in memory anyway, and there are many columns.

// CHECK-LABEL: loop.program @norm
// CHECK-NOT:     loop.compute
// CHECK:         loop.kernel {{.*}}ins(%x_1 = %x[t], %v_1 = %v) outs(%p[t]) {
// CHECK-NEXT:      sdg.mul %x_1, %x_1
// CHECK-NEXT:      sdg.mean
// CHECK-NEXT:      sdg.reshape
// CHECK-NEXT:      sdg.mul
// CHECK-NEXT:      sdg.contract
// CHECK-NEXT:      loop.yield
// CHECK:         loop.kernel {{.*}}ins(%x_1 = %x[t], %w_1 = %w) outs(%q[t]) {
// CHECK-NEXT:      sdg.mul %x_1, %x_1
// CHECK-NEXT:      sdg.mean
// CHECK-NEXT:      sdg.reshape
// CHECK-NEXT:      sdg.mul
// CHECK-NEXT:      sdg.contract
// CHECK-NOT:     loop.compute
sdg.program @norm dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<2x4xf32>
  %v = sdg.parameter "v" : tensor<4x64xf32>
  %w = sdg.parameter "w" : tensor<4x64xf32>
  %s = sdg.mul %x[t], %x[t] in (t) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %m = sdg.mean %s[t] axes [1] in (t) : (tensor<2x4xf32>) -> tensor<2xf32>
  %c = sdg.reshape %m[t] in (t) : (tensor<2xf32>) -> tensor<2x1xf32>
  %n = sdg.mul %x[t], %c[t] in (t) : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %p = sdg.contract "bk,kn->bn" %n[t], %v in (t) : (tensor<2x4xf32>, tensor<4x64xf32>) -> tensor<2x64xf32>
  %q = sdg.contract "bk,kn->bn" %n[t], %w in (t) : (tensor<2x4xf32>, tensor<4x64xf32>) -> tensor<2x64xf32>
  sdg.output "p" %p[t] in (t) : tensor<2x64xf32>
  sdg.output "q" %q[t] in (t) : tensor<2x64xf32>
}

// -----

// What ends a product is computed with it, once: `(x @ w) * 2` is no part of the next product; nor is an exponential.

// CHECK-LABEL: loop.program @ends
// CHECK:         loop.kernel {{.*}}ins(%x_1 = %x[t], %w_1 = %w) outs([[D:%.*]][t]) {
// CHECK-NEXT:      sdg.contract
// CHECK:           sdg.mul
// CHECK-NEXT:      loop.yield
// CHECK:         loop.compute {{.*}}ins({{.*}} = [[D]][t], {{.*}} = %w) outs(%q[t]) {
// CHECK:         loop.compute {{.*}}ins({{.*}} = %x[t]) outs([[E:%.*]][t]) {
// CHECK:           sdg.exp
// CHECK:         loop.compute {{.*}}ins({{.*}} = [[E]][t], {{.*}} = %w) outs(%r[t]) {
sdg.program @ends dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<2x64xf32>
  %w = sdg.parameter "w" : tensor<64x64xf32>
  %two = sdg.constant 2.0 : tensor<f32>
  %p = sdg.contract "bk,kn->bn" %x[t], %w in (t) : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  %d = sdg.mul %p[t], %two in (t) : (tensor<2x64xf32>, tensor<f32>) -> tensor<2x64xf32>
  %q = sdg.contract "bk,kn->bn" %d[t], %w in (t) : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  %e = sdg.exp %x[t] in (t) : (tensor<2x64xf32>) -> tensor<2x64xf32>
  %r = sdg.contract "bk,kn->bn" %e[t], %w in (t) : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  sdg.output "q" %q[t] in (t) : tensor<2x64xf32>
  sdg.output "r" %r[t] in (t) : tensor<2x64xf32>
}

// -----

// A product whose columns are seen as heads is written so by its own kernel; seen transposed it is not.

// CHECK-LABEL: loop.program @heads
// CHECK:         loop.kernel {{.*}}outs(%h[t]) {
// CHECK-NEXT:      sdg.contract
// CHECK-NEXT:      sdg.reshape
// CHECK:         loop.compute {{.*}}outs([[P:%.*]][t]) {
// CHECK-NEXT:      sdg.contract
// CHECK:         loop.compute {{.*}}ins({{.*}} = [[P]][t]) outs(%s[t]) {
// CHECK-NEXT:      sdg.transpose
sdg.program @heads dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<2x4xf32>
  %w = sdg.parameter "w" : tensor<4x6xf32>
  %p = sdg.contract "bk,kn->bn" %x[t], %w in (t) : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
  %h = sdg.reshape %p[t] in (t) : (tensor<2x6xf32>) -> tensor<2x3x2xf32>
  %q = sdg.contract "bk,kn->bn" %x[t], %w in (t) : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
  %s = sdg.transpose %q[t] permutation [1, 0] in (t) : (tensor<2x6xf32>) -> tensor<6x2xf32>
  sdg.output "h" %h[t] in (t) : tensor<2x3x2xf32>
  sdg.output "s" %s[t] in (t) : tensor<6x2xf32>
}

// -----

// Queries are rotated and scaled in the kernel of their attention, which reads each once; keys are not.

// CHECK-LABEL: loop.program @queries
// CHECK:         loop.compute {{.*}}outs([[K:%.*]][t]) {
// CHECK:           sdg.mul
// CHECK:         loop.kernel {{.*}}ins({{.*}} = [[K]][0:t + 1]{{.*}}outs(%o[t]) {
// CHECK:           sdg.concat
// CHECK:           sdg.mul
// CHECK:           sdg.contract
// CHECK:           sdg.softmax
// CHECK:           sdg.contract
sdg.program @queries dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<2x4xf32>
  %y = sdg.input "y" in (t) : tensor<4xf32>
  %two = sdg.constant 2.0 : tensor<f32>
  %low = sdg.slice %x[t] take [0:2, 0:2] in (t) : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %high = sdg.slice %x[t] take [0:2, 2:4] in (t) : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %turned = sdg.concat %high[t], %low[t] axis 1 in (t) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
  %q = sdg.mul %turned[t], %two in (t) : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %k = sdg.mul %y[t], %two in (t) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %s = sdg.contract "gd,nd->gn" %q[t], %k[0:t + 1] in (t) : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x?xf32, #sdg.size<t + 1>>
  %p = sdg.softmax %s[t] axis 1 in (t) : (tensor<2x?xf32, #sdg.size<t + 1>>) -> tensor<2x?xf32, #sdg.size<t + 1>>
  %o = sdg.contract "gn,nd->gd" %p[t], %k[0:t + 1] in (t) : (tensor<2x?xf32, #sdg.size<t + 1>>, tensor<4xf32>) -> tensor<2x4xf32>
  sdg.output "o" %o[t] in (t) : tensor<2x4xf32>
}
