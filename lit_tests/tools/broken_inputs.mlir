// Twelve mistakes, each with one clean message: file, line, column, the line, a caret, and how to mend it.
// The Python twins are in broken_programs.py; a pipeline's mistakes are in pass_pipeline.mlir too.
// RUN: not tempo-opt %s --split-input-file 2>&1 | filecheck %s
// RUN: not tempo-opt %s --split-input-file --pass-pipeline='sdg-simplifi' 2>&1 | filecheck %s --check-prefix=PASS
// RUN: not tempo-opt %s --split-input-file --pass-pipeline='sdg-schedule{speed=fast}' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not tempo-run %S/Inputs/scan.mlir --target reference --set T=-1 2>&1 | filecheck %s --check-prefix=NEGATIVE
// RUN: not tempo-run %S/Inputs/scan.mlir --target reference --set T=0 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not tempo-run %S/Inputs/scan.mlir --target reference --input x=%S/Inputs/absent.npy 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not tempo-run %S/Inputs/scan.mlir --target reference 2>&1 | filecheck %s --check-prefix=UNKNOWN

// PASS: {{^}}<pass-pipeline>:1:1: error: unknown pass 'sdg-simplifi'
// PASS-NOT: Traceback
// OPTION: {{^}}<pass-pipeline>:1:1: error: pass 'sdg-schedule' has no option 'speed'
// OPTION-NOT: Traceback
// NEGATIVE: {{^}}error: --set T=-1: a bound is a number of steps, 0 or more
// NEGATIVE-NOT: Traceback
// NONE: {{^}}error: 'scan' needs T >= 1, got T = 0
// NONE-NOT: Traceback
// MISSING: {{^}}error: --input x={{.*}}absent.npy: No such file or directory
// MISSING-NOT: Traceback
// UNKNOWN: {{^}}error: the bound T is not known: give --set T=16, or an input that has it

// 1. syntax
// CHECK-NOT: Traceback
// CHECK: broken_inputs.mlir:[[# @LINE + 5]]:22: error: identifier expected
// CHECK-NEXT: {{^}}  %z = sdg.exp %x[t +* 1]
// CHECK-NEXT: {{^}}                     ^
sdg.program @p dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %z = sdg.exp %x[t +* 1] in (t) : (tensor<4xf32>) -> tensor<4xf32>
}

// -----

// CHECK: broken_inputs.mlir:[[# @LINE + 3]]:8: error: unknown operation 'sdg.epx'; did you mean 'sdg.exp'?
sdg.program @p dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %z = sdg.epx %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
}

// -----

// 2. arity
// CHECK: broken_inputs.mlir:[[# @LINE + 3]]:3: error: operand #0 %x varies over (t) {{.*}}[t, 0]
sdg.program @p dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %z = sdg.exp %x[t, 0] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "z" %z[t] in (t) : tensor<4xf32>
}

// -----

// 3. a read out of range
// CHECK: broken_inputs.mlir:[[# @LINE + 3]]:3: error: operand #0 %x[t - 1] reads at t = -1
sdg.program @p dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %z = sdg.exp %x[t - 1] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "z" %z[t] in (t) : tensor<4xf32>
}

// -----

// 4. a gap in the cases
// CHECK: broken_inputs.mlir:[[# @LINE + 3]]:3: error: no case holds at t = 0
sdg.program @p dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %z = sdg.merge {t > 0 : %x[t]} in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "z" %z[t] in (t) : tensor<4xf32>
}

// -----

// 5. a dtype clash
// CHECK: broken_inputs.mlir:[[# @LINE + 4]]:3: error: sdg.add needs operands of one dtype, got f32 and f64: cast one of them
sdg.program @p dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %y = sdg.input "y" in (t) : tensor<4xf64>
  %z = sdg.add %x[t], %y[t] in (t) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  sdg.output "z" %z[t] in (t) : tensor<4xf32>
}

// -----

// 6. a shape clash
// CHECK: broken_inputs.mlir:[[# @LINE + 4]]:3: error: sdg.add, axis 0: extents 4 and 5 differ
sdg.program @p dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %y = sdg.input "y" in (t) : tensor<5xf32>
  %z = sdg.add %x[t], %y[t] in (t) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  sdg.output "z" %z[t] in (t) : tensor<4xf32>
}

// -----

// 7. a value that needs itself
// CHECK: broken_inputs.mlir:[[# @LINE + 3]]:3: error: %a needs itself: %a {{.*}} at t = 0 needs %b {{.*}} at t = 0 needs %a
sdg.program @p dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %a = sdg.add %b[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = sdg.exp %a[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "a" %a[t] in (t) : tensor<4xf32>
}
// CHECK-NOT: Traceback
