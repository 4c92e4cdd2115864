// Every op runs at the points that need it, and once where nothing changes.
// RUN: tempo-opt %s --split-input-file -p sdg-reduce-domain | filecheck %s

sdg.program @hoisted dims(i: I, t: T) {
  %w = sdg.input "w" in (i) : tensor<4xf32>
  %x = sdg.input "x" in (i, t) : tensor<4xf32>
  %d = sdg.exp %w[i] in (i, t) : (tensor<4xf32>) -> tensor<4xf32>
  %e = sdg.mul %d[i, t], %x[i, t] in (i, t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f = sdg.neg %e[i, t] in (i, t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "f" %f[i, t + 1] in (i, t: 0 to T - 1) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @hoisted dims(i: I, t: T) {
// CHECK-NEXT:    %w = sdg.input "w" in (i) : tensor<4xf32>
// CHECK-NEXT:    %x = sdg.input "x" in (i, t) : tensor<4xf32>
// CHECK-NEXT:    %d = sdg.exp %w[i] in (i) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %e = sdg.mul %d[i], %x[i, t] in (i, t: 1 to T) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %f = sdg.neg %e[i, t] in (i, t: 1 to T) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    sdg.output "f" %f[i, t + 1] in (i, t: 0 to T - 1) : tensor<4xf32>
// CHECK-NEXT:  }

// -----

// a range of the dim is read: the rows would be missing
sdg.program @kept dims(t: T) {
  %w = sdg.input "w" : tensor<4xf32>
  %d = sdg.exp %w in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %u = sdg.random uniform id 0 in (t) : tensor<4xf32>
  %s = sdg.cumsum %d[0:T] axis 0 : (tensor<4xf32>) -> tensor<?x4xf32, #sdg.size<T>>
  sdg.output "s" %s : tensor<?x4xf32, #sdg.size<T>>
  sdg.output "u" %u[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @kept dims(t: T) {
// CHECK-NEXT:    %w = sdg.input "w" : tensor<4xf32>
// CHECK-NEXT:    %d = sdg.exp %w in (t) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %u = sdg.random uniform id 0 in (t) : tensor<4xf32>
// CHECK-NEXT:    %s = sdg.cumsum %d[0:T] axis 0 : (tensor<4xf32>) -> tensor<?x4xf32, #sdg.size<T>>
// CHECK-NEXT:    sdg.output "s" %s : tensor<?x4xf32, #sdg.size<T>>
// CHECK-NEXT:    sdg.output "u" %u[t] in (t) : tensor<4xf32>
// CHECK-NEXT:  }
