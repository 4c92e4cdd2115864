// No rewrite where NaN, infinity, a dynamic shape, a range or a gradient would notice.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-simplify | filecheck %s

sdg.program @may_be_nan dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %zero = sdg.constant 0.0 : tensor<f32>
  %a = sdg.mul %x[t], %zero in (t) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b = sdg.sub %a[t], %a[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = sdg.div %x[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = sdg.eq %x[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  sdg.output "b" %b[t] in (t) : tensor<4xf32>
  sdg.output "c" %c[t] in (t) : tensor<4xf32>
  sdg.output "d" %d[t] in (t) : tensor<4xi1>
}

// CHECK-LABEL: sdg.program @may_be_nan
// CHECK:         %a = sdg.mul %x[t], %zero in (t)
// CHECK-NEXT:    %b = sdg.sub %a[t], %a[t] in (t)
// CHECK-NEXT:    %c = sdg.div %x[t], %x[t] in (t)
// CHECK-NEXT:    %d = sdg.eq %x[t], %x[t] in (t)

// -----

// a slice through a reversal is no one index
sdg.program @reversed_slice dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %a = sdg.reshape %x[T - 1 - t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.cumsum %a[0:t + 1] axis 0 in (t) : (tensor<4xf32>) -> tensor<?x4xf32, #sdg.size<t + 1>>
  %y = sdg.slice %s[t] take [t, 0:4] in (t) : (tensor<?x4xf32, #sdg.size<t + 1>>) -> tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @reversed_slice
// CHECK:         sdg.cumsum %a[0:t + 1]

// -----

// a sum of squares is no square of a sum, and a cast that narrows does not cancel one that widens
sdg.program @not_linear dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %squares = sdg.mul %x[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %largest = sdg.max %squares[t] axes [0] in (t) : (tensor<4xf32>) -> tensor<f32>
  %narrow = sdg.cast %x[t] in (t) : (tensor<4xf32>) -> tensor<4xbf16>
  %wide = sdg.cast %narrow[t] in (t) : (tensor<4xbf16>) -> tensor<4xf32>
  sdg.output "largest" %largest[t] in (t) : tensor<f32>
  sdg.output "wide" %wide[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @not_linear
// CHECK:         sdg.mul %x[t], %x[t]
// CHECK-NEXT:    sdg.max
// CHECK-NEXT:    %narrow = sdg.cast
// CHECK-NEXT:    %wide = sdg.cast %narrow[t]

// -----

// nothing flows through it as long as a gradient is left
sdg.program @stopped dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %s = sdg.stop_gradient %x[t] in (t) : (tensor<f32>) -> tensor<f32>
  %y = sdg.mul %s[t], %x[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %g = sdg.grad %y wrt %x in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "g" %g[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @stopped
// CHECK:         sdg.stop_gradient
