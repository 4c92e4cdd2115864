// The loops that a program asks for stand outside of all others where there is such an order.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-schedule | filecheck %s

// CHECK-LABEL: loop.program @rows
// CHECK:         loop.for b = 0 to B {
// CHECK:           loop.for t = 0 to T {
sdg.program @rows dims(t: T, b: B) attributes {outermost = ["b"]} {
  %x = sdg.input "x" in (t, b) : tensor<4xf32>
  %s = sdg.merge {t = 0 : %x[0, b], t > 0 : %h[t - 1, b]} in (t, b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %h = sdg.tanh %s[t, b] in (t, b) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "h" %h[t, b] in (t, b) : tensor<4xf32>
}

// -----

// a step needs all rows of the step before: there is none
// CHECK-LABEL: loop.program @steps
// CHECK:         loop.for t = 0 to T {
sdg.program @steps dims(t: T, b: B) attributes {outermost = ["b"]} {
  %x = sdg.input "x" in (t, b) : tensor<4xf32>
  %s = sdg.merge {t = 0 : %x[0, b], t > 0 : %m[t - 1]} in (t, b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %h = sdg.add %s[t, b], %x[t, b] in (t, b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %m = sdg.sum %h[t, 0:B] axes [0] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "m" %m[t] in (t) : tensor<4xf32>
}
