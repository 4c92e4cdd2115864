// RUN: tempo-opt %s --check-each -p sdg-schedule | filecheck %s

// Constants and values of indices are computed by their readers; a slice of one, or one read elsewhere, has a leaf.

// CHECK-LABEL: loop.program @formulas dims(t: T) {
// CHECK:         loop.for t = 0 to T {
// CHECK-NEXT:      loop.compute at (t = t) outs(%twice[t]) {
// CHECK-NEXT:        %0 = sdg.index 2 * t : tensor<i64>
// CHECK:         loop.for t = 1 to T {
// CHECK-NEXT:      loop.compute at (t = t) ins(%a = %x[t]) outs(%y[t]) {
// CHECK-NEXT:        %0 = sdg.index 2 * t - 2 : tensor<i64>
// CHECK-NEXT:        %1 = sdg.mul %a, %0 : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:        loop.yield %1 : tensor<i64>
// CHECK:         loop.compute ins(%a = %twice[0:T]) outs(%sum) {
// CHECK:         loop.for t = 0 to T {
// CHECK-NEXT:      loop.compute at (t = t) ins(%a = %twice[T - t - 1]) outs(%back[t]) {
sdg.program @formulas dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<i64>
  %twice = sdg.index 2 * t in (t) : tensor<i64>
  %y = sdg.mul %x[t], %twice[t - 1] in (t: 1 to T) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %sum = sdg.sum %twice[0:T] axes [0] : (tensor<i64>) -> tensor<i64>
  %back = sdg.neg %twice[T - 1 - t] in (t) : (tensor<i64>) -> tensor<i64>
  sdg.output "y" %y[t] in (t: 1 to T) : tensor<i64>
  sdg.output "sum" %sum : tensor<i64>
  sdg.output "back" %back[t] in (t) : tensor<i64>
}
