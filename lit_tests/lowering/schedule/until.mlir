// The loop over a dim that ends by data does in each iteration what comes with the step, and no more: %next of a step is
// there only if another follows, so it is computed in that one. What needs T waits for the end; what needs no step stands
// before.
// RUN: tempo-opt %s --check-each -p sdg-schedule | filecheck %s
// RUN: tempo-opt %s --check-each -p sdg-default,sdg-schedule,loop-form-kernels,loop-plan-storage

// CHECK-LABEL: loop.program @decode dims(t: T) {
// CHECK:         loop.compute ins({{.*}} = %start) outs(%begin) {
// CHECK:         loop.for t = 0 to T until %done[t] giving T {
// CHECK-NEXT:      loop.if t >= 1 {
// CHECK-NEXT:        loop.compute at (t = t - 1) ins({{.*}}%token[t - 1]{{.*}}) outs(%next[t - 1]) {
// CHECK:           loop.if t = 0 {
// CHECK-NEXT:        loop.compute at (t = t) ins({{.*}}%begin) outs(%token[t]) {
// CHECK:           } else {
// CHECK-NEXT:        loop.compute at (t = t) ins({{.*}}%next[t - 1]) outs(%token[t]) {
// CHECK:           loop.compute at (t = t) ins({{.*}}%token[t]{{.*}}) outs(%done[t]) {
// CHECK:         }
// CHECK:         loop.compute ins({{.*}}%token[0:T]) outs(%sum) {
sdg.program @decode dims(t: T) {
  %start = sdg.input "start" : tensor<i64>
  %end = sdg.constant 4 : tensor<i64>
  %one = sdg.constant 1 : tensor<i64>
  %begin = sdg.add %start, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %token = sdg.merge {t = 0 : %begin, t > 0 : %next[t - 1]} in (t) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %next = sdg.add %token[t], %one in (t: 0 to T - 1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %done = sdg.ge %token[t], %end in (t) : (tensor<i64>, tensor<i64>) -> tensor<i1>
  sdg.until %done[t] in (t) : tensor<i1>
  %sum = sdg.sum %token[0:T] axes [0] : (tensor<i64>) -> tensor<i64>
  sdg.output "token" %token[t] in (t) : tensor<i64>
  sdg.output "sum" %sum : tensor<i64>
}
