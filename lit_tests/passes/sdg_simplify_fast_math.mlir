// On request, numbers are taken to be finite, and sums of floats are grouped as is cheapest.
// RUN: tempo-opt %s -p "sdg-simplify{fast-math=true}" | filecheck %s

sdg.program @finite dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %w = sdg.input "w" : tensor<4xf32>
  %zero = sdg.constant 0.0 : tensor<f32>
  %y = sdg.mul %x[t], %zero in (t) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %a = sdg.mul %x[t], %w in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = sdg.mul %w, %y[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.add %a[t], %b[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "s" %s[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @finite
// CHECK-NEXT:    %x = sdg.input
// CHECK-NEXT:    %w = sdg.input
// CHECK-NEXT:    %a = sdg.mul %x[t], %w in (t)
// CHECK-NEXT:    sdg.output "s" %a[t]
