// What the program does not keep, or not by points, is not asked about; what is not known to be read last, is said.
// RUN: tempo-opt %s --check-each -p sdg-insert-dealloc | filecheck %s
// RUN: tempo-opt %s --remarks -p sdg-insert-dealloc,sdg-schedule,loop-plan-storage 2>&1 | filecheck %s --check-prefix=REMARK

sdg.program @left_alone dims(t: T) where T >= 1 {
  %x = sdg.input "x" in (t) : tensor<f32>
  %two = sdg.constant 2.0 : tensor<f32>
  %n = sdg.index t in (t) : tensor<i64>
  %y = sdg.mul %x[t], %two in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %last = sdg.exp %y[T - 1] : (tensor<f32>) -> tensor<f32>
  %kept = sdg.neg %x[t] in (t) : (tensor<f32>) -> tensor<f32>
  %r = sdg.gather %kept[0:T], %n[t] axis 0 in (t) : (tensor<f32>, tensor<i64>) -> tensor<f32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
  sdg.output "last" %last : tensor<f32>
  sdg.output "r" %r[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @left_alone
// CHECK-NOT:     sdg.dealloc
// CHECK:         %r = sdg.gather
// CHECK-NEXT:    sdg.dealloc %kept : tensor<f32>
// CHECK-NOT:     sdg.dealloc
// REMARK: remark: its rows are given back with the whole buffer: no iteration is known to read one last
