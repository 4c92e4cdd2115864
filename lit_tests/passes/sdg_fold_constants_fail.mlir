// What is large, infinite, drawn or wrong is left to the run.
// RUN: tempo-opt %s --check-each --check-set T=0 --pass-pipeline='sdg-fold-constants{limit=4}' | filecheck %s
// RUN: tempo-opt %s --remarks -p sdg-fold-constants 2>&1 | filecheck %s --check-prefix=REMARK

// REMARK: remark: not folded: {{.*}}division by zero

sdg.program @left dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %zero = sdg.constant 0.0 : tensor<f32>
  %list = sdg.constant dense<[1.0, 0.0, 3.0, 4.0]> : tensor<4xf32>
  %infinite = sdg.div %list, %zero : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %table = sdg.contract "a,b->ab" %list, %list : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %n = sdg.constant 7 : tensor<i64>
  %none = sdg.constant 0 : tensor<i64>
  %wrong = sdg.floordiv %n, %none in (t) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %u = sdg.random uniform id 0 : tensor<f32>
  %scaled = sdg.mul %u, %zero : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %product = sdg.mul %x[t], %zero in (t) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  sdg.output "infinite" %infinite : tensor<4xf32>
  sdg.output "table" %table : tensor<4x4xf32>
  sdg.output "wrong" %wrong[t] in (t) : tensor<i64>
  sdg.output "scaled" %scaled : tensor<f32>
  sdg.output "product" %product[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @left
// CHECK:         %infinite = sdg.div %list, %zero
// CHECK-NEXT:    %table = sdg.contract "a,b->ab" %list, %list
// CHECK:         %wrong = sdg.floordiv %n, %none in (t)
// CHECK-NEXT:    %u = sdg.random uniform id 0
// CHECK-NEXT:    %scaled = sdg.mul %u, %zero
// CHECK-NEXT:    %product = sdg.mul %x[t], %zero in (t)
