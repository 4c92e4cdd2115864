// RUN: tempo-opt %s --check-each -p sdg-schedule,loop-plan-storage --split-input-file | filecheck %s

// A prompt is copied at once, before the loop; each step writes the next row where it stays.

!row = tensor<4xf32>

// CHECK-LABEL: loop.program @prefix
// CHECK:         %s = loop.output "s" : !loop.buffer<(t: full) 4xf32>
// CHECK-NEXT:    loop.compute ins(%a = %prompt[0:P]) outs(%s[0:P]) {
// CHECK-NEXT:      loop.yield %a : tensor<?x4xf32, #sdg.size<P>>
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.for t = 0 to T {
// CHECK-NEXT:      loop.if t < T - 1 and t >= P - 1 {
// CHECK-NEXT:        loop.compute at (t = t) ins(%a = %s[t]) outs(%s[t + 1]) {
// CHECK-NEXT:          %0 = sdg.sin %a
// CHECK-NEXT:          loop.yield
// CHECK-NEXT:        }
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:  }
sdg.program @prefix dims(t: T, p: P) where 1 <= P <= T {
  %prompt = sdg.input "prompt" in (p) : !row
  %s = sdg.merge {t < P : %prompt[t], t > 0 : %h[t - 1]} in (t) : (!row, !row) -> !row
  %h = sdg.sin %s[t] in (t: P - 1 to T - 1) : (!row) -> !row
  sdg.output "s" %s[t] in (t) : !row
}

// -----

// The caller's array has no row of the first value where there is no step.

// CHECK-LABEL: loop.program @first
// CHECK:         loop.if 0 < T {
// CHECK-NEXT:      loop.compute ins(%a_1 = %a) outs(%s[0]) {
// CHECK:         loop.for t = 0 to T {
// CHECK-NEXT:      loop.if t < T - 1 {
// CHECK-NEXT:        loop.compute at (t = t) ins(%{{.*}} = %s[0:t + 1]) outs(%s[t + 1]) {
sdg.program @first dims(t: T) {
  %a = sdg.input "a" : tensor<4xf32>
  %s = sdg.merge {t = 0 : %a, t > 0 : %h[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %h = sdg.mean %s[0:t + 1] axes [0] in (t: 0 to T - 1) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "s" %s[t] in (t) : tensor<4xf32>
}

// -----

// Rows of a ring, of which few live at once, and rows that come in another order, are copied one by one.

// CHECK-LABEL: loop.program @one_by_one
// CHECK:           loop.compute at (t = t) ins(%{{.*}} = %a[t]) outs(%h[t]) {
// CHECK:           loop.compute at (t = t) ins(%{{.*}} = %a[P - t - 1]) outs(%r[t]) {
sdg.program @one_by_one dims(t: T, p: P) where 1 <= P <= T {
  %a = sdg.input "a" in (p) : tensor<4xf32>
  %s = sdg.merge {t < P : %a[t], t > 0 : %h[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %r = sdg.merge {t < P : %a[P - 1 - t], t > 0 : %h[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %h = sdg.sin %s[t] in (t: P - 1 to T - 1) : (tensor<4xf32>) -> tensor<4xf32>
  %y = sdg.cos %s[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "r" %r[t] in (t) : tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}
