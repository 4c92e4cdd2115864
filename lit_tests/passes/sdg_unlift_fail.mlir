// Windows, steps, rows that are others at each point and single points stay reductions.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-unlift | filecheck %s

// windows lose rows; a step skips some; attention scores are others at each point; a single point has no neighbour
sdg.program @stays dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<4xf32>
  %w = sdg.sum %a[max(0, t - 7):t + 1] axes [0] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.sum %a[0:t + 1:2] axes [0] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %n = sdg.contract "d,nd->n" %a[t], %a[0:t + 1] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<?xf32, #sdg.size<t + 1>>
  %p = sdg.exp %n[t] in (t) : (tensor<?xf32, #sdg.size<t + 1>>) -> tensor<?xf32, #sdg.size<t + 1>>
  %y = sdg.contract "n,nd->d" %p[t], %a[0:t + 1] in (t) : (tensor<?xf32, #sdg.size<t + 1>>, tensor<4xf32>) -> tensor<4xf32>
  %l = sdg.sum %a[0:t + 1] axes [0] in (t: T - 1 to T) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "w" %w[t] in (t) : tensor<4xf32>
  sdg.output "s" %s[t] in (t) : tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
  sdg.output "l" %l[t] in (t: T - 1 to T) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @stays
// CHECK-NOT:     sdg.merge
