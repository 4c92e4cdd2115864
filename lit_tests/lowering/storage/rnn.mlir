// RUN: tempo-opt %s --check-each -p sdg-schedule,loop-form-kernels,loop-plan-storage | filecheck %s

// Back-propagation through time. States before and after a step are one buffer, whose first row is written before the
// loop; it is kept for the loop down, which frees it row by row. The gradient of the state is read one step later only:
// one slot. Nothing is kept from one iteration of training to the next but the weights, in the array of the caller.

!h = tensor<16x64xf32>
!w = tensor<64x64xf32>

// CHECK-LABEL: loop.program @rnn dims(i: I, t: T) {
// CHECK:         %w0 = loop.parameter "w" : !loop.buffer<64x64xf32>
// CHECK-NEXT:    %wI = loop.output "w" {donates} : !loop.buffer<64x64xf32>
// CHECK-NEXT:    loop.compute ins(%a = %w0) outs(%wI) {
// CHECK:         loop.for i = 0 to I {
// CHECK-NEXT:      %h = loop.alloc : !loop.buffer<(t: full to T + 1) 16x64xf32>
// CHECK-NEXT:      %gs = loop.alloc : !loop.buffer<16x64xf32>
// CHECK-NEXT:      %gw = loop.alloc : !loop.buffer<(t: full) 64x64xf32>
// CHECK-NEXT:      loop.compute outs(%h[0]) {
// CHECK:           loop.for t = 0 to T {
// CHECK-NEXT:        loop.kernel {{.*}}%h[t]{{.*}}%wI{{.*}} outs(%h[t + 1]) {
// CHECK:           loop.compute outs(%gs) {
// CHECK:           loop.for t = T - 1 down to 0 {
// CHECK-NEXT:        %ga = loop.alloc : !loop.buffer<16x64xf32>
// CHECK-NEXT:        loop.kernel {{.*}}%h[t + 1]{{.*}}%gs{{.*}} outs(%ga) {
// CHECK:             loop.free %h[t + 1]
// CHECK:             loop.compute {{.*}} outs(%gs) {
// CHECK:             loop.compute at (i = i, t = t) ins(%a = %h[t], %b = %ga) outs(%gw[t]) {
// CHECK:           loop.kernel at (i = i) ins({{.*}} = %gw[0:T], {{.*}} = %wI) outs(%wI) {
// CHECK-NOT:       loop.alloc
sdg.program @rnn dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : !h
  %y = sdg.input "y" in (i, t) : !h
  %w0 = sdg.parameter "w" : !w
  %zero = sdg.constant 0.0 : !h
  %w = sdg.merge {i = 0 : %w0, i > 0 : %w1[i - 1]} in (i) : (!w, !w) -> !w
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[i, t - 1]} in (i, t) : (!h, !h) -> !h
  %sw = sdg.contract "bk,kn->bn" %s[i, t], %w[i] in (i, t) : (!h, !w) -> !h
  %a = sdg.add %x[i, t], %sw[i, t] in (i, t) : (!h, !h) -> !h
  %h = sdg.tanh %a[i, t] in (i, t) : (!h) -> !h
  %d = sdg.sub %h[i, t], %y[i, t] in (i, t) : (!h, !h) -> !h
  %gn = sdg.merge {t < T - 1 : %gs[i, t + 1], t = T - 1 : %zero} in (i, t) : (!h, !h) -> !h
  %gh = sdg.add %d[i, t], %gn[i, t] in (i, t) : (!h, !h) -> !h
  %h2 = sdg.mul %h[i, t], %h[i, t] in (i, t) : (!h, !h) -> !h
  %u = sdg.neg %h2[i, t] in (i, t) : (!h) -> !h
  %ga = sdg.mul %gh[i, t], %u[i, t] in (i, t) : (!h, !h) -> !h
  %gs = sdg.contract "bn,kn->bk" %ga[i, t], %w[i] in (i, t) : (!h, !w) -> !h
  %gw = sdg.contract "bk,bn->kn" %s[i, t], %ga[i, t] in (i, t) : (!h, !h) -> !w
  %dw = sdg.sum %gw[i, 0:T] axes [0] in (i) : (!w) -> !w
  %w1 = sdg.sub %w[i], %dw[i] in (i) : (!w, !w) -> !w
  %wI = sdg.merge {I = 0 : %w0, I > 0 : %w1[I - 1]} : (!w, !w) -> !w
  sdg.output "w" %wI : !w
}
