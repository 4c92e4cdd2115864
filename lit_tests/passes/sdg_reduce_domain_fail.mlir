// A dim stays where a range of it is read, and for draws and host calls, which differ from point to point.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-reduce-domain | filecheck %s
// RUN: tempo-opt %s --split-input-file --remarks -p sdg-reduce-domain 2>&1 | filecheck %s --check-prefix=REMARK

// REMARK: remark: varies over (t) though t changes nothing: {{.+}} [sdg-reduce-domain]

// the rows would be missing
sdg.program @range dims(t: T) {
  %w = sdg.input "w" : tensor<4xf32>
  %d = sdg.exp %w in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.cumsum %d[0:T] axis 0 : (tensor<4xf32>) -> tensor<?x4xf32, #sdg.size<T>>
  sdg.output "s" %s : tensor<?x4xf32, #sdg.size<T>>
}

// CHECK-LABEL: sdg.program @range
// CHECK:         %d = sdg.exp %w in (t)
// CHECK-NEXT:    %s = sdg.cumsum %d[0:T]

// -----

sdg.program @drawn dims(t: T) {
  %u = sdg.random uniform id 0 in (t) : tensor<4xf32>
  %e0 = sdg.host_state @env : !sdg.token
  %e = sdg.merge {t = 0 : %e0, t > 0 : %e1[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %e1 = sdg.host @env::@step() after %e[t] in (t) : (!sdg.token) -> (tensor<f32>, !sdg.token)
  sdg.output "u" %u[t] in (t) : tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @drawn
// CHECK:         sdg.random uniform id 0 in (t)
// CHECK:         sdg.host @env::@step() after %e[t] in (t)

// -----

// earlier points are needed by later ones
sdg.program @needed dims(t: T) where T >= 1 {
  %x = sdg.input "x" in (t) : tensor<f32>
  %h = sdg.merge {t = 0 : %x[0], t > 0 : %g[t - 1]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %g = sdg.tanh %h[t] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "last" %g[T - 1] : tensor<f32>
}

// CHECK-LABEL: sdg.program @needed
// CHECK:         sdg.merge {{.*}} in (t)
// CHECK-NEXT:    sdg.tanh %h[t] in (t)
