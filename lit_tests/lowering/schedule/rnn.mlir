// RUN: tempo-opt %s --check-each -p sdg-schedule | filecheck %s

// The forward loop runs up, the loop of the gradients down; what only the second needs (%u) is computed there.

// CHECK-LABEL: loop.program @rnn dims(i: I, t: T) where T >= 1 {
// CHECK-NEXT:    %x = loop.input "x" : !loop.buffer<(i: full, t: full) 16x64xf32>
// CHECK-NEXT:    %w0 = loop.parameter "w" : !loop.buffer<64x64xf32>
// CHECK-NEXT:    %wI = loop.output "w" : !loop.buffer<64x64xf32>
// CHECK-NEXT:    %w = loop.alloc : !loop.buffer<(i: full) 64x64xf32>
// CHECK:         loop.for i = 0 to I {
// CHECK-NEXT:      loop.if i = 0 {
// CHECK-NEXT:        loop.compute at (i = i) ins(%a = %w0) outs(%w[i]) {
// CHECK-NEXT:          loop.yield %a : tensor<64x64xf32>
// CHECK-NEXT:        }
// CHECK-NEXT:      } else {
// CHECK-NEXT:        loop.compute at (i = i) ins(%a = %w1[i - 1]) outs(%w[i]) {
// CHECK:           loop.for t = 0 to T {
// CHECK-NEXT:        loop.if t = 0 {
// CHECK-NEXT:          loop.compute at (i = i, t = t) outs(%s[i, t]) {
// CHECK-NEXT:            %0 = sdg.constant 0.0 : tensor<16x64xf32>
// CHECK-NEXT:            loop.yield %0 : tensor<16x64xf32>
// CHECK:               } else {
// CHECK-NEXT:          loop.compute at (i = i, t = t) ins(%a = %h[i, t - 1]) outs(%s[i, t]) {
// CHECK:             loop.compute at (i = i, t = t) ins(%a = %s[i, t], %b = %w[i]) outs(%sw[i, t]) {
// CHECK-NEXT:          %0 = sdg.contract "bk,kn->bn" %a, %b : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
// CHECK:             loop.compute {{.*}} outs(%xs[i, t]) {
// CHECK:             loop.compute {{.*}} outs(%h[i, t]) {
// CHECK-NEXT:          %0 = sdg.tanh
// CHECK:           loop.for t = T - 1 down to 0 {
// CHECK-NEXT:        loop.compute {{.*}} outs(%u[i, t]) {
// CHECK:             loop.if t < T - 1 {
// CHECK-NEXT:          loop.compute at (i = i, t = t) ins(%a = %gs[i, t + 1]) outs(%gn[i, t]) {
// CHECK:             loop.compute {{.*}} outs(%ga[i, t]) {
// CHECK:             loop.compute {{.*}} outs(%gs[i, t]) {
// CHECK:             loop.compute {{.*}} outs(%gw[i, t]) {
// CHECK:           loop.compute at (i = i) ins(%a = %gw[i, 0:T]) outs(%dw[i]) {
// CHECK-NEXT:        %0 = sdg.sum %a axes [0] : (tensor<?x64x64xf32, #sdg.size<T>>) -> tensor<64x64xf32>
// CHECK:         loop.if I = 0 {
// CHECK-NEXT:      loop.compute ins(%a = %w0) outs(%wI) {
sdg.program @rnn dims(i: I, t: T) where T >= 1 {
  %x = sdg.input "x" in (i, t) : tensor<16x64xf32>
  %zero = sdg.constant 0.0 : tensor<16x64xf32>
  %one = sdg.constant 1.0 : tensor<16x64xf32>
  %w0 = sdg.parameter "w" : tensor<64x64xf32>
  %w = sdg.merge {i = 0 : %w0, i > 0 : %w1[i - 1]} in (i) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[i, t - 1]} in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %sw = sdg.contract "bk,kn->bn" %s[i, t], %w[i] in (i, t) : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %xs = sdg.add %x[i, t], %sw[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %h = sdg.tanh %xs[i, t] in (i, t) : (tensor<16x64xf32>) -> tensor<16x64xf32>
  %u = sdg.sub %one, %h[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %gn = sdg.merge {t < T - 1 : %gs[i, t + 1], t = T - 1 : %one} in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %ga = sdg.mul %gn[i, t], %u[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %gs = sdg.contract "bn,kn->bk" %ga[i, t], %w[i] in (i, t) : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %gw = sdg.contract "bk,bn->kn" %s[i, t], %ga[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<64x64xf32>
  %dw = sdg.sum %gw[i, 0:T] axes [0] in (i) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %w1 = sdg.sub %w[i], %dw[i] in (i) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %wI = sdg.merge {I = 0 : %w0, I > 0 : %w1[I - 1]} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  sdg.output "w" %wI : tensor<64x64xf32>
}
