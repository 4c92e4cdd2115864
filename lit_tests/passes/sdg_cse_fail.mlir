// What is alike and not equal stays apart.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-cse | filecheck %s

// the order of operands, steps, domains, results of one producer
sdg.program @apart dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %w = sdg.input "w" in (t) : tensor<f32>
  %c = sdg.lt %x[t], %w[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %a = sdg.select %c[t], %x[t], %w[t] in (t) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %b = sdg.select %c[t], %w[t], %x[t] in (t) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %d = sdg.exp %a[t] in (t) : (tensor<f32>) -> tensor<f32>
  %e = sdg.exp %a[max(0, t - 1)] in (t) : (tensor<f32>) -> tensor<f32>
  %f = sdg.exp %b[t] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "d" %d[t] in (t) : tensor<f32>
  sdg.output "e" %e[t] in (t) : tensor<f32>
  sdg.output "f" %f[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @apart
// CHECK:         %a = sdg.select %c[t], %x[t], %w[t]
// CHECK-NEXT:    %b = sdg.select %c[t], %w[t], %x[t]
// CHECK-NEXT:    %d = sdg.exp %a[t] in (t)
// CHECK-NEXT:    %e = sdg.exp %a[max(0, t - 1)] in (t)
// CHECK-NEXT:    %f = sdg.exp %b[t] in (t)

// -----

// each call of a host happens
sdg.program @hosts dims(t: T) {
  %e0 = sdg.host_state @env : !sdg.token
  %e = sdg.merge {t = 0 : %e0, t > 0 : %e2[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %e1 = sdg.host @env::@draw() after %e[t] in (t) : (!sdg.token) -> (tensor<f32>, !sdg.token)
  %z, %e2 = sdg.host @env::@draw() after %e1[t] in (t) : (!sdg.token) -> (tensor<f32>, !sdg.token)
  %s = sdg.sub %y[t], %z[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "s" %s[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @hosts
// CHECK-COUNT-2: sdg.host @env::@draw
// CHECK:         sdg.sub %y[t], %z[t]

// -----

// two random ops differ though all about them is equal but the id
sdg.program @draws dims(t: T) {
  %u = sdg.random uniform id 0 in (t) : tensor<3xf32>
  %v = sdg.random uniform id 1 in (t) : tensor<3xf32>
  %s = sdg.sub %u[t], %v[t] in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "s" %s[t] in (t) : tensor<3xf32>
}

// CHECK-LABEL: sdg.program @draws
// CHECK:         sdg.sub %u[t], %v[t]

// -----

// the gradient counts the uses of what it is taken by alone
sdg.program @leaf dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %a = sdg.exp %x[t] in (t) : (tensor<f32>) -> tensor<f32>
  %b = sdg.exp %x[t] in (t) : (tensor<f32>) -> tensor<f32>
  %y = sdg.mul %a[t], %b[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %g = sdg.grad %y wrt %a in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "g" %g[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @leaf
// CHECK:         sdg.mul %a[t], %b[t]
