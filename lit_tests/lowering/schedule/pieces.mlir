// Up to a point each step reads the one before, from there on the one after: no loop orders the whole, so the
// statements are cut there, and each piece has its loop.
// RUN: tempo-opt %s -p sdg-schedule | filecheck %s

sdg.program @turning dims(t: T) where P <= T {
  %x = sdg.input "x" in (t) : tensor<f32>
  %s = sdg.merge {t < P and t > 0 : %h[t - 1], t >= P and t + 1 < T : %h[t + 1], true : %x[t]} in (t)
      : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %h = sdg.tanh %s[t] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "h" %h[t] in (t) : tensor<f32>
}

// CHECK-LABEL: loop.program @turning dims(t: T) where P <= T {
// CHECK:        loop.for t = 0 to P {
// CHECK:          loop.if t < P and t > 0 {
// CHECK:            loop.compute at (t = t) ins(%a = %h[t - 1]) outs(%s[t]) {
// CHECK:          } else {
// CHECK:            loop.compute at (t = t) ins(%a = %x[t]) outs(%s[t]) {
// CHECK:          loop.compute at (t = t) ins(%a = %s[t]) outs(%h[t]) {
// CHECK:        loop.for t = T - 1 down to P {
// CHECK:          loop.if t >= P and t < T - 1 {
// CHECK:            loop.compute at (t = t) ins(%a = %h[t + 1]) outs(%s[t]) {
// CHECK:          } else {
// CHECK:            loop.compute at (t = t) ins(%a = %x[t]) outs(%s[t]) {
// CHECK:          loop.compute at (t = t) ins(%a = %s[t]) outs(%h[t]) {
