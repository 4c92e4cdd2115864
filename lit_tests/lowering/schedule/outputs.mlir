// RUN: tempo-opt %s --check-each -p sdg-schedule | filecheck %s

// An output of a value at its own points is computed in place; an input, another point and a second output are copied.

// CHECK-LABEL: loop.program @outputs dims(t: T) {
// CHECK-NEXT:    %x = loop.input "x" : !loop.buffer<(t: full) f32>
// CHECK-NEXT:    %y = loop.output "first" : !loop.buffer<(t: full) f32>
// CHECK-NEXT:    %second = loop.output "second" : !loop.buffer<(t: full) f32>
// CHECK-NEXT:    %backwards = loop.output "backwards" : !loop.buffer<(t: full) f32>
// CHECK-NEXT:    %same = loop.output "same" : !loop.buffer<(t: full) f32>
// CHECK-NEXT:    %number = loop.output "number" : !loop.buffer<i64>
// CHECK-NEXT:    loop.for t = 0 to T {
// CHECK-NEXT:      loop.compute at (t = t) ins(%a = %x[t]) outs(%y[t]) {
// CHECK:           loop.compute at (t = t) ins(%a = %y[t]) outs(%second[t]) {
// CHECK:         loop.for t = 0 to T {
// CHECK-NEXT:      loop.compute at (t = t) ins(%a = %y[T - t - 1]) outs(%backwards[t]) {
// CHECK:           loop.compute at (t = t) ins(%a = %x[t]) outs(%same[t]) {
// CHECK:         loop.compute outs(%number) {
// CHECK-NEXT:      %0 = sdg.constant 3 : tensor<i64>
// CHECK-NEXT:      loop.yield %0 : tensor<i64>
sdg.program @outputs dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %y = sdg.exp %x[t] in (t) : (tensor<f32>) -> tensor<f32>
  %three = sdg.constant 3 : tensor<i64>
  sdg.output "first" %y[t] in (t) : tensor<f32>
  sdg.output "second" %y[t] in (t) : tensor<f32>
  sdg.output "backwards" %y[T - 1 - t] in (t) : tensor<f32>
  sdg.output "same" %x[t] in (t) : tensor<f32>
  sdg.output "number" %three : tensor<i64>
}
