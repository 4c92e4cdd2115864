// What a loop keeps for a later one is asked to lie with the host meanwhile; the largest values first, to a budget.
// RUN: tempo-opt %s --check-each -p sdg-insert-swap | filecheck %s
// RUN: tempo-opt %s --check-each -p sdg-insert-swap,sdg-insert-swap,sdg-cse,sdg-dce,sdg-simplify,sdg-reduce-domain | filecheck %s
// RUN: tempo-opt %s --check-each -p 'sdg-insert-swap{budget=10000 sizes="T=512" ahead=3}' | filecheck %s --check-prefix=SOME
// RUN: tempo-opt %s --check-each -p 'sdg-insert-swap{budget=10000 sizes="T=512" solver=ilp}' | filecheck %s --check-prefix=SOME
// RUN: tempo-opt %s --check-each -p 'sdg-insert-swap{budget=100000 sizes="T=512"}' | filecheck %s --check-prefix=NONE
// RUN: tempo-opt %s --check-each -p 'sdg-insert-swap,sdg-schedule,loop-form-kernels,loop-plan-storage' | filecheck %s --check-prefix=PLAN

!h = tensor<16xf32>

// CHECK-LABEL: sdg.program @back
// CHECK:         %s = sdg.merge
// CHECK-NEXT:    sdg.swap %s ahead 2 : tensor<16xf32>
// CHECK:         %h = sdg.tanh
// CHECK-NEXT:    sdg.swap %h ahead 2 : tensor<16xf32>
// CHECK:         %mean = sdg.mean
// CHECK-NEXT:    sdg.swap %mean ahead 1 : tensor<f32>
// what the way back can compute for itself may be kept instead: the scheduler decides
// CHECK:         %u = sdg.mul
// CHECK-NEXT:    sdg.swap %u ahead 2 : tensor<16xf32>
// CHECK:         %v = sdg.mul
// CHECK-NEXT:    sdg.swap %v ahead 2 : tensor<16xf32>
// CHECK-NOT:     sdg.swap

// SOME:          sdg.swap %h ahead {{[23]}}
// SOME-NOT:      sdg.swap %mean
// NONE-NOT:      sdg.swap

// PLAN:         %b = loop.output
// PLAN-NOT:     loop.alloc : !loop.buffer<(t: full
// PLAN:         loop.alloc {host} : !loop.buffer<(t: full) 16xf32>
// PLAN-NOT:     loop.alloc : !loop.buffer<(t: full
// PLAN:         loop.offload
sdg.program @back dims(t: T) {
  %x = sdg.input "x" in (t) : !h
  %zero = sdg.constant 0.0 : !h
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : (!h, !h) -> !h
  %s1 = sdg.add %s[t], %x[t] in (t) : (!h, !h) -> !h
  %h = sdg.tanh %s1[t] in (t) : (!h) -> !h
  %mean = sdg.mean %h[t] axes [0] in (t) : (!h) -> tensor<f32>
  %u = sdg.mul %h[t], %s[t] in (t) : (!h, !h) -> !h
  %v = sdg.mul %u[t], %mean[t] in (t) : (!h, tensor<f32>) -> !h
  %n = sdg.merge {t = T - 1 : %zero, t < T - 1 : %b[t + 1]} in (t) : (!h, !h) -> !h
  %b = sdg.mul %n[t], %v[t] in (t) : (!h, !h) -> !h
  sdg.output "b" %b[t] in (t) : !h
}
