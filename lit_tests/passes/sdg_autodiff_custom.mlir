// A value that says its own gradient: the ops between the cotangent and what it says are copied for the gradient at hand.
// RUN: tempo-opt %s | tempo-opt --pass-pipeline='sdg-autodiff,sdg-dce' | filecheck %s

sdg.program @straight_through dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %f = sdg.sign %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %dy = sdg.cotangent in (t) : tensor<4xf32>
  %seven = sdg.constant 7.0 : tensor<f32>
  %gx = sdg.mul %dy[t], %seven in (t) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %y = sdg.custom_gradient %f[t], %dy[t], %x[t], %gx[t] in (t) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %p = sdg.mul %y[t], %y[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = sdg.sum %p[t] axes [0] in (t) : (tensor<4xf32>) -> tensor<f32>
  %dx = sdg.grad %loss wrt %x in (t) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "dx" %dx[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @straight_through dims(t: T) {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<4xf32>
// CHECK-NEXT:    %f = sdg.sign %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %seven = sdg.constant 7.0 : tensor<f32>
// CHECK-NEXT:    %0 = sdg.broadcast %f[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %1 = sdg.constant 2.0 : tensor<f32>
// CHECK-NEXT:    %gy = sdg.mul %0[t], %1 in (t) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:    %2 = sdg.broadcast %gy[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %dx = sdg.mul %2[t], %seven in (t) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:    sdg.output "dx" %dx[t] in (t) : tensor<4xf32>
// CHECK-NEXT:  }
