// Each value with memory of its own is asked to be given back after its last reader; the buffer carries it to storage.
// RUN: tempo-opt %s --check-each -p sdg-insert-dealloc | filecheck %s
// RUN: tempo-opt %s --check-each -p sdg-insert-dealloc,sdg-insert-dealloc,sdg-dce,sdg-reduce-domain | filecheck %s
// RUN: tempo-opt %s --check-each -p sdg-insert-dealloc,sdg-schedule | filecheck %s --check-prefix=LOOP
// RUN: tempo-opt %s --check-each -p sdg-insert-dealloc,sdg-schedule,loop-plan-storage | filecheck %s --check-prefix=PLAN

sdg.program @window dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %zero = sdg.constant 0.0 : tensor<4xf32>
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %h = sdg.add %s[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = sdg.exp %h[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %w = sdg.sum %y[max(0, t - 3):t + 1] axes [0] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "w" %w[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @window
// CHECK:         %h = sdg.add
// CHECK-NEXT:    sdg.dealloc %s : tensor<4xf32>
// CHECK-NEXT:    %y = sdg.exp
// CHECK-NEXT:    sdg.dealloc %h : tensor<4xf32>
// CHECK-NEXT:    %w = sdg.sum
// CHECK-NEXT:    sdg.dealloc %y : tensor<4xf32>
// CHECK-NEXT:    sdg.output "w"
// CHECK-NOT:     sdg.dealloc

// LOOP-LABEL: loop.program @window
// LOOP:         %y = loop.alloc {dealloc} : !loop.buffer<(t: full) 4xf32>
// PLAN-LABEL: loop.program @window
// PLAN-NOT:     {dealloc}
// PLAN:         loop.free %y[t - 3]
