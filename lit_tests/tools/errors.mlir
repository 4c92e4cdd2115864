// Messages of the driver: file:line:col, the line, a caret; the other parts are still processed.
// RUN: not tempo-opt %s --split-input-file 2>&1 | filecheck %s
// RUN: not tempo-opt %S/no_such_file.mlir 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not tempo-opt %S 2>&1 | filecheck %s --check-prefix=DIRECTORY
// RUN: not tempo-opt %s -t fortran 2>&1 | filecheck %s --check-prefix=TARGET
// RUN: not tempo-opt %s -t mlir,llvm 2>&1 | filecheck %s --check-prefix=TARGETS
// RUN: not tempo-opt %s -t 'triton{warps=4}' 2>&1 | filecheck %s --check-prefix=TARGET-OPTION
// RUN: not tempo-opt %s --set width=3 2>&1 | filecheck %s --check-prefix=SET
// RUN: not tempo-opt %s --print-ir-after=nothing 2>&1 | filecheck %s --check-prefix=DUMP

// MISSING: {{^}}error: {{.*}}no_such_file.mlir: No such file or directory
// DIRECTORY: {{^}}error: {{.*}}: Is a directory
// TARGET: invalid choice: 'fortran' (choose from mlir, llvm, triton)
// TARGETS: {{^}}<target>:1:1: error: one target is needed
// TARGET-OPTION: {{^}}<target>:1:1: error: target 'triton' has no option 'warps'; its options: machine: str = sm_80
// SET: {{^}}error: --set gives settings to a program in a Python file; the input is IR text
// DUMP: {{^}}error: cannot print the IR around 'nothing': no pass has this name

// CHECK-NOT: Traceback
// CHECK: errors.mlir:[[# @LINE + 3]]:3: error: unknown operation 'foo.bar'
// CHECK-NEXT: {{^}}  foo.bar
// CHECK-NEXT: {{^}}  ^
  foo.bar

// -----

// CHECK: func.func private @right()
func.func private @right() -> ()

// -----

func.func @wrong(%a: i32) -> i64 {
// CHECK: errors.mlir:[[# @LINE + 2]]:3: error: {{.*}}type
// CHECK-NEXT: {{^}}  func.return %a : i32
  func.return %a : i32
}

// -----

// CHECK: errors.mlir:[[# @LINE + 3]]:23: error: value %b is used but not defined
// CHECK-NEXT: %c = arith.addi %a, %b : i32
func.func @undefined(%a: i32) {
  %c = arith.addi %a, %b : i32
  func.return
}
// CHECK-NOT: Traceback
