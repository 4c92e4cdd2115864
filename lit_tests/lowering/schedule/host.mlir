// RUN: tempo-opt %s --check-each -p sdg-schedule | filecheck %s

// Calls of one object follow its tokens: a reset per i, then the steps of that i. Tokens leave no trace.

// CHECK-LABEL: loop.program @host dims(i: I, t: T) where T >= 1 {
// CHECK-NOT:     token
// CHECK:         loop.for i = 0 to I {
// CHECK-NEXT:      loop.compute at (i = i) outs(%seed[i]) {
// CHECK-NEXT:        %0 = sdg.index i : tensor<i64>
// CHECK:           loop.host @env::@reset at (i = i) ins(%seed[i]) outs(%first[i])
// CHECK-NEXT:      loop.for t = 0 to T {
// CHECK-NEXT:        loop.if t = 0 {
// CHECK:             loop.host @env::@step at (i = i, t = t) ins(%obs[i, t]) outs(%after[i, t])
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:  }
sdg.program @host dims(i: I, t: T) where T >= 1 {
  %env = sdg.host_state @env : !sdg.token
  %seed = sdg.index i in (i) : tensor<i64>
  %e0 = sdg.merge {i = 0 : %env, i > 0 : %e2[i - 1, T - 1]} in (i) : (!sdg.token, !sdg.token) -> !sdg.token
  %first, %e1 = sdg.host @env::@reset(%seed[i]) after %e0[i] in (i) : (tensor<i64>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  %et = sdg.merge {t = 0 : %e1[i], t > 0 : %e2[i, t - 1]} in (i, t) : (!sdg.token, !sdg.token) -> !sdg.token
  %obs = sdg.merge {t = 0 : %first[i], t > 0 : %after[i, t - 1]} in (i, t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %after, %e2 = sdg.host @env::@step(%obs[i, t]) after %et[i, t] in (i, t) : (tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  sdg.output "after" %after[i, t] in (i, t) : tensor<4xf32>
}
