// Where there is no parameter of the key, or another array, nothing is asked; a parameter that is read late is kept.
// RUN: tempo-opt %s --check-each -p sdg-insert-donate | filecheck %s
// RUN: tempo-opt %s --remarks --check-each -p sdg-insert-donate,sdg-schedule,loop-plan-storage 2>&1 | filecheck %s --check-prefix=REMARK

sdg.program @late dims(i: I) where I >= 1 {
  %w0 = sdg.parameter "w" : tensor<4xf32>
  %v0 = sdg.parameter "v" : tensor<4xf32>
  %w = sdg.merge {i = 0 : %w0, i > 0 : %w1[i - 1]} in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %w1 = sdg.sin %w[i] in (i) : (tensor<4xf32>) -> tensor<4xf32>
  %moved = sdg.sub %w1[I - 1], %w0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %sum = sdg.sum %v0 axes [0] : (tensor<4xf32>) -> tensor<f32>
  sdg.output "w" %w1[I - 1] : tensor<4xf32>
  sdg.output "moved" %moved : tensor<4xf32>
  sdg.output "v" %sum : tensor<f32>
}

// CHECK-LABEL: sdg.program @late
// CHECK:         sdg.output "w" donates %w1[I - 1] : tensor<4xf32>
// CHECK:         sdg.output "moved" %moved : tensor<4xf32>
// CHECK:         sdg.output "v" %sum : tensor<f32>
// REMARK-DAG: remark: it needs an array of its own: the parameter is tensor<4xf32> at other points
// REMARK-DAG: remark: it needs an array of its own: the parameter is read after the output is written
