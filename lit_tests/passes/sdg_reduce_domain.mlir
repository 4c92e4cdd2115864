// Every op runs at the points that need it, and once where nothing changes.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-reduce-domain | filecheck %s

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
