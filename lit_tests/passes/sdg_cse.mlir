// Equal computations are done once, isomorphic recurrences included; what differs stays apart.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-cse | filecheck %s

sdg.program @recurrences dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %zero = sdg.constant 0.0 : tensor<f32>
  %s = sdg.merge {t = 0 : %zero, t > 0 : %g[t - 1]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %g = sdg.add %s[t], %x[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %r = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %h = sdg.add %x[t], %r[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "g" %g[t] in (t) : tensor<f32>
  sdg.output "h" %h[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @recurrences dims(t: T) {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<f32>
// CHECK-NEXT:    %zero = sdg.constant 0.0 : tensor<f32>
// CHECK-NEXT:    %s = sdg.merge {t = 0 : %zero, t > 0 : %g[t - 1]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    %g = sdg.add %s[t], %x[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    sdg.output "g" %g[t] in (t) : tensor<f32>
// CHECK-NEXT:    sdg.output "h" %g[t] in (t) : tensor<f32>
// CHECK-NEXT:  }

// -----

sdg.program @apart dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %u = sdg.random uniform id 0 in (t) : tensor<f32>
  %v = sdg.random uniform id 1 in (t) : tensor<f32>
  %a = sdg.sub %x[t], %u[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %b = sdg.sub %u[t], %x[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %c = sdg.sub %x[t], %v[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %d = sdg.sub %x[t], %u[max(t - 1, 0)] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "a" %a[t] in (t) : tensor<f32>
  sdg.output "b" %b[t] in (t) : tensor<f32>
  sdg.output "c" %c[t] in (t) : tensor<f32>
  sdg.output "d" %d[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @apart dims(t: T) {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<f32>
// CHECK-NEXT:    %u = sdg.random uniform id 0 in (t) : tensor<f32>
// CHECK-NEXT:    %v = sdg.random uniform id 1 in (t) : tensor<f32>
// CHECK-NEXT:    %a = sdg.sub %x[t], %u[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    %b = sdg.sub %u[t], %x[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    %c = sdg.sub %x[t], %v[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    %d = sdg.sub %x[t], %u[max(0, t - 1)] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    sdg.output "a" %a[t] in (t) : tensor<f32>
// CHECK-NEXT:    sdg.output "b" %b[t] in (t) : tensor<f32>
// CHECK-NEXT:    sdg.output "c" %c[t] in (t) : tensor<f32>
// CHECK-NEXT:    sdg.output "d" %d[t] in (t) : tensor<f32>
// CHECK-NEXT:  }
