// Rows that only a later loop reads again lie with the host until then: both buffers of the device are rings.
// RUN: tempo-opt %s --check-each -p sdg-schedule,loop-form-kernels,loop-plan-storage | filecheck %s
// RUN: tempo-opt %s -p sdg-schedule,loop-form-kernels | filecheck %s --check-prefix=ASKED
// RUN: tempo-opt %s -p sdg-schedule,loop-form-kernels,loop-plan-storage,loop-lower-kernels -t llvm | filecheck %s --check-prefix=LLVM
// RUN: tempo-opt %s -p sdg-schedule,loop-form-kernels,loop-plan-storage,loop-lower-kernels{target=sm_80} -t triton | filecheck %s --check-prefix=TRITON

!r = tensor<3xf32>

// ASKED:       %h = loop.alloc {swap = 3 : i64} : !loop.buffer<(i: full, t: full) 3xf32>

// CHECK-LABEL: loop.program @back
// CHECK:         loop.for i = 0 to I {
// CHECK-DAG:       %h = loop.alloc : !loop.buffer<3xf32>
// CHECK-DAG:       %h_host = loop.alloc {host} : !loop.buffer<(t: full to T + 1) 3xf32>
// CHECK-DAG:       %h_back = loop.alloc : !loop.buffer<(t: ring 5 to T + 1) 3xf32>
// CHECK:           loop.offload %h to %h_host[0]
// CHECK-NEXT:      loop.for t = 0 to T {
// CHECK-NEXT:        loop.kernel {{.*}} outs(%h) {
// CHECK:             loop.offload %h to %h_host[t + 1]
// the first rows come back before the loop down, then one in each iteration, three before the one that reads it
// CHECK:           loop.for n = 0 to 4 {
// CHECK-NEXT:        loop.if {{.*}} {
// CHECK-NEXT:          loop.fetch %h_host[T - n] to %h_back[T - n]
// CHECK-NEXT:          loop.free %h_host[T - n]
// CHECK:           loop.for t = T - 1 down to 0 {
// CHECK-NEXT:        loop.if t >= 3 {
// CHECK-NEXT:          loop.fetch %h_host[t - 3] to %h_back[t - 3]
// CHECK-NEXT:          loop.free %h_host[t - 3]
// CHECK:             loop.kernel {{.*}} = %h_back[t + 1]{{.*}} = %h_back[t]
// CHECK:             loop.free %h_back[t + 1]

// LLVM:        define i32 @host
// LLVM:        call void @llvm.memcpy.p0.p0.i64(ptr {{.*}}, ptr {{.*}}, i64 12, i1 false)

// On a GPU copies have a stream of their own: who overwrites a row waits until it is copied, who reads one until it is back.

// TRITON:      "h_host": Buffer((T + 1, 3), torch.float32, {{[0-9]+}}, {{[0-9]+}}, host=True),
// TRITON:      copies = Copies(memory)
// TRITON:          for t in range(T):
// TRITON:              copies.wait(h, 0)
// TRITON-NEXT:         add_tanh[(1,)](h, x, scalars, {{[0-9]+}})
// TRITON-NEXT:         copies.offload(Rows(h, 0, (3,), (1,)), Rows(h_host, 3 * t + 3, (3,), (1,)))
// TRITON-NEXT:     copies.wait(h)
// TRITON:              if t >= 3:
// TRITON-NEXT:             copies.fetch(Rows(h_host, 3 * t - 9, (3,), (1,)), Rows(h_back, 3 * ((t + 2) % 5), (3,), (1,)))
// TRITON:              copies.wait(h_back, 3 * ((t + 1) % 5))
// TRITON-NEXT:         copies.wait(h_back, 3 * (t % 5))
// TRITON:          copies.wait(h_back)
// TRITON:      copies.finish()
// TRITON-NEXT: arena.give(memory)
sdg.program @back dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : !r
  %zero = sdg.constant 0.0 : !r
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[i, t - 1]} in (i, t) : (!r, !r) -> !r
  %h0 = sdg.add %s[i, t], %x[i, t] in (i, t) : (!r, !r) -> !r
  %h = sdg.tanh %h0[i, t] in (i, t) : (!r) -> !r
  sdg.swap %h ahead 3 : !r
  %g = sdg.merge {t < T - 1 : %b[i, t + 1], t = T - 1 : %zero} in (i, t) : (!r, !r) -> !r
  %p = sdg.mul %h[i, t], %g[i, t] in (i, t) : (!r, !r) -> !r
  %b = sdg.add %s[i, t], %p[i, t] in (i, t) : (!r, !r) -> !r
  sdg.output "b" %b[i, t] in (i, t) : !r
}
