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

// -----

// What can fail runs only where something needs it; what cannot may run for nothing.

sdg.program @failing dims(t: T) {
  %k = sdg.input "k" in (t) : tensor<i64>
  %n = sdg.input "n" : tensor<i64>
  %six = sdg.constant 6 : tensor<i64>
  %negated = sdg.neg %n : (tensor<i64>) -> tensor<i64>
  %halved = sdg.floordiv %n, %six in (t: 3 to T) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %divided = sdg.floordiv %six, %negated in (t: 3 to T) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %sum = sdg.add %divided[t], %halved[t] in (t: 3 to T) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %late = sdg.add %k[t], %sum[t] in (t: 3 to T) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %y = sdg.merge {t < 3 : %k[t], true : %late[t]} in (t) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  sdg.output "y" %y[t] in (t) : tensor<i64>
}

// CHECK-LABEL: sdg.program @failing dims(t: T) {
// CHECK:         %halved = sdg.floordiv %n, %six : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:    %divided = sdg.floordiv %six, %negated in (where T >= 4) : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:    %sum = sdg.add %divided, %halved in (where T >= 4) : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:    %late = sdg.add %k[t], %sum in (t: 3 to T) : (tensor<i64>, tensor<i64>) -> tensor<i64>
