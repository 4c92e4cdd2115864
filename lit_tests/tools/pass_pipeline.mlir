// The pipeline in MLIR's spelling, plain or anchored on builtin.module.
// RUN: tempo-opt %s --pass-pipeline='cse,dce' | filecheck %s
// RUN: tempo-opt %s --pass-pipeline='builtin.module( cse , dce )' | filecheck %s
// RUN: tempo-opt %s -p cse,dce | filecheck %s
// RUN: tempo-opt %s | filecheck %s --check-prefix=NONE
// RUN: tempo-opt %s -p cse,sdg-default --print-ir-after 2>&1 | filecheck %s --check-prefix=DEFAULT
// RUN: not tempo-opt %s -p 'sdg-default{fast=true}' 2>&1 | filecheck %s --check-prefix=DEFAULT-OPTION
// RUN: not tempo-opt %s --pass-pipeline='func.func(cse)' 2>&1 | filecheck %s --check-prefix=ANCHOR
// RUN: not tempo-opt %s --pass-pipeline='builtin.module(func.func(cse))' 2>&1 | filecheck %s --check-prefix=ANCHOR
// RUN: not tempo-opt %s -p cse,dec 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not tempo-opt %s -p 'cse{fast=true}' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not tempo-opt %s -p 'cse{fast' 2>&1 | filecheck %s --check-prefix=SYNTAX
// RUN: not tempo-opt %s -p 'cse dce' 2>&1 | filecheck %s --check-prefix=COMMA

// CHECK-LABEL: func.func @twice
// CHECK-NEXT:    %[[SUM:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    %[[PRODUCT:.*]] = arith.muli %[[SUM]], %[[SUM]] : i32
// CHECK-NEXT:    func.return %[[PRODUCT]] : i32
// NONE-COUNT-2: arith.addi
func.func @twice(%a: i32) -> i32 {
  %b = arith.addi %a, %a : i32
  %c = arith.addi %a, %a : i32
  %d = arith.muli %b, %c : i32
  func.return %d : i32
}

// DEFAULT: IR Dump After cse
// DEFAULT: IR Dump After sdg-autodiff
// DEFAULT: IR Dump After sdg-simplify
// DEFAULT: IR Dump After sdg-dce
// DEFAULT-OPTION: error: 'sdg-default' stands for several passes and has no options: give them one by one

// ANCHOR: {{^}}error: a pass pipeline runs on builtin.module, not on 'func.func': write 'builtin.module(...)' or the bare passes
// ANCHOR-NOT: Traceback

// UNKNOWN: {{^}}<pass-pipeline>:1:5: error: unknown pass 'dec'; did you mean 'dce'? `tempo-opt --list-passes` lists them
// UNKNOWN-NEXT: {{^}}cse,dec
// UNKNOWN-NEXT: {{^}}    ^

// OPTION: {{^}}<pass-pipeline>:1:1: error: pass 'cse' has no option 'fast'; it has no options

// SYNTAX: {{^}}<pass-pipeline>:1:9: error:
// COMMA: {{^}}<pass-pipeline>:1:4: error: Expected a comma
