// A program is made small while a command finds it interesting.
// RUN: tempo-reduce %s --test 'grep -q sdg.exp' 2>&1 | filecheck %s
// RUN: tempo-reduce %s --test 'not grep -q sdg.neg {}' --tries 1 2>&1 | filecheck %s --check-prefix=NOT
// RUN: not tempo-reduce %s --test 'grep -q sdg.tanh' 2>&1 | filecheck %s --check-prefix=BORING
// RUN: not tempo-reduce %s --test no-such-command 2>&1 | filecheck %s --check-prefix=COMMAND
// RUN: echo 'sdg.nothing' | not tempo-reduce - --test true 2>&1 | filecheck %s --check-prefix=PARSE
// RUN: echo 'builtin.module {}' | not tempo-reduce - --test true 2>&1 | filecheck %s --check-prefix=NONE

// CHECK: 13 ops, then 3; {{[0-9]+}} programs tested
// CHECK:      sdg.program @scan dims(t: 1) {
// CHECK-NEXT:   %0 = sdg.constant 0.0 : tensor<1xf32>
// CHECK-NEXT:   %1 = sdg.exp %0 in (t) : (tensor<1xf32>) -> tensor<1xf32>
// CHECK-NEXT:   sdg.output "s" %1[0] in (t) : tensor<1xf32>
// CHECK-NEXT: }

// NOT: 13 ops, then {{[0-9]+}}; 1 programs tested
// BORING: error: {{.*}}reduce.mlir: the test says no to the program as it is: `grep -q sdg.tanh {{.*}}program.mlir` must exit with 0
// COMMAND: error: --test no-such-command: No such file or directory: no-such-command
// PARSE: error: unknown operation 'sdg.nothing'
// NONE: error: <stdin>: tempo-reduce shrinks a module with one sdg.program

sdg.program @scan dims(i: I, t: T) where T >= 1 {
  %half = sdg.constant 0.5 : tensor<4xf32>
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %w = sdg.input "w" : tensor<4x4xf32>
  %h = sdg.merge {t = 0 : %half, t > 0 : %s[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %m = sdg.contract "a,ab->b" %h[t], %w in (t) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %e = sdg.exp %m[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.mul %e[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a = sdg.sum %s[0:t + 1] axes [0] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %p = sdg.max %a[t] axes [0] in (t) : (tensor<4xf32>) -> tensor<f32>
  sdg.output "a" %a[t] in (t) : tensor<4xf32>
  sdg.output "p" %p[t] in (t) : tensor<f32>
  sdg.output "x" %x[T - 1 - t] in (t) : tensor<4xf32>
  sdg.output "s" %s[t] in (t) : tensor<4xf32>
}
