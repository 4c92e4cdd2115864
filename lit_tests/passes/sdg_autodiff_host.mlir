// A call of a host function names the method that carries gradients back: it is called in reverse order.
// RUN: tempo-opt %s --pass-pipeline='sdg-autodiff,sdg-dce' | filecheck %s

sdg.program @last_first dims(t: T) where T >= 1 {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %sim = sdg.host_state @sim : !sdg.token
  %e = sdg.merge {t = 0 : %sim, t > 0 : %e1[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %e1 = sdg.host @sim::@step(%x[t]) after %e[t] gradient @back in (t) : (tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  %loss = sdg.sum %y[t] axes [0] in (t) : (tensor<4xf32>) -> tensor<f32>
  %dx = sdg.grad %loss wrt %x in (t) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "dx" %dx[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @last_first dims(t: T) where T >= 1 {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<4xf32>
// CHECK-NEXT:    %sim = sdg.host_state @sim : !sdg.token
// CHECK-NEXT:    %e = sdg.merge {t = 0 : %sim, t > 0 : %e1[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
// CHECK-NEXT:    %y, %e1 = sdg.host @sim::@step(%x[t]) after %e[t] gradient @back in (t) : (tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
// CHECK-NEXT:    %gloss = sdg.constant 1.0 : tensor<f32>
// CHECK-NEXT:    %0 = sdg.broadcast %gloss : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:    %1 = sdg.merge {t < T - 1 : %2[t + 1], true : %e1[T - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
// CHECK-NEXT:    %dx, %2 = sdg.host @sim::@back(%x[t], %0) after %1[t] in (t) : (tensor<4xf32>, tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
// CHECK-NEXT:    sdg.output "dx" %dx[t] in (t) : tensor<4xf32>
// CHECK-NEXT:  }
