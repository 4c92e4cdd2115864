// A state asks for the array that holds its first value; the last one is then written there.
// RUN: tempo-opt %s --check-each -p sdg-insert-donate | filecheck %s
// RUN: tempo-opt %s --check-each -p sdg-insert-donate,sdg-cse,sdg-dce,sdg-reduce-domain,sdg-simplify | filecheck %s
// RUN: tempo-opt %s --check-each -p sdg-insert-donate,sdg-schedule,loop-plan-storage | filecheck %s --check-prefix=PLAN

sdg.program @sgd dims(i: I) {
  %g = sdg.input "g" in (i) : tensor<4xf32>
  %w0 = sdg.parameter "w" : tensor<4xf32>
  %w = sdg.merge {i = 0 : %w0, i > 0 : %w1[i - 1]} in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %w1 = sdg.sub %w[i], %g[i] in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %wI = sdg.merge {I = 0 : %w0, I > 0 : %w1[I - 1]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "w" %wI : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @sgd
// CHECK:         sdg.output "w" donates %wI : tensor<4xf32>
// PLAN-LABEL: loop.program @sgd
// PLAN:         loop.output "w" {donates} : !loop.buffer<4xf32>
