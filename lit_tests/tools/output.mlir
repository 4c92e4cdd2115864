// Where the result goes and how it is printed.
// RUN: tempo-opt %s -o %t.mlir
// RUN: filecheck %s --check-prefix=CUSTOM --input-file=%t.mlir
// RUN: echo "foo.bar" | not tempo-opt -o %t.mlir
// RUN: filecheck %s --check-prefix=CUSTOM --input-file=%t.mlir
// RUN: cat %s | tempo-opt | filecheck %s --check-prefix=CUSTOM
// RUN: cat %s | tempo-opt - | filecheck %s --check-prefix=CUSTOM
// RUN: tempo-opt %s | tempo-opt | filecheck %s --check-prefix=CUSTOM
// RUN: tempo-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: tempo-opt %s --print-op-generic | tempo-opt | filecheck %s --check-prefix=CUSTOM
// RUN: tempo-opt %s --print-debuginfo | filecheck %s --check-prefix=LOCATION
// RUN: echo "foo.bar" | not tempo-opt 2>&1 | filecheck %s --check-prefix=STDIN
// RUN: echo "// no op" | tempo-opt | filecheck %s --check-prefix=EMPTY
// RUN: tempo-opt --version | filecheck %s --check-prefix=VERSION
// RUN: tempo-opt --help | filecheck %s --check-prefix=HELP

// CUSTOM: func.func @f(%a: i32) -> i32 {
// CUSTOM-NEXT: %b = arith.addi %a, %a : i32
// GENERIC: %b = "arith.addi"(%a, %a)
// LOCATION: %b = arith.addi %a, %a : i32 loc("{{.*}}output.mlir":[[# @LINE + 9]]:3)
// LOCATION: func.return %b : i32 loc("user.py":7:1)
// STDIN: {{^}}<stdin>:1:1: error: unknown operation 'foo.bar'
// STDIN-NEXT: {{^}}foo.bar
// EMPTY: builtin.module {
// EMPTY-NEXT: }
// VERSION: tempo-opt on xDSL 0.75.0
// HELP: usage: tempo-opt [options] [INPUT]
func.func @f(%a: i32) -> i32 {
  %b = arith.addi %a, %a : i32
  func.return %b : i32 loc("user.py":7:1)
}
