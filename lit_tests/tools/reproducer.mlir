// A failing pipeline leaves a file that runs it again; a crash does too.
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py -p 'cse,test-fail,dce' --mlir-pass-pipeline-crash-reproducer=%t.mlir 2>&1 | filecheck %s --check-prefix=FAIL
// RUN: filecheck %s --check-prefix=FILE --input-file=%t.mlir
// RUN: not tempo-opt %t.mlir --load-pass-plugin=%S/Inputs/plugin.py --run-reproducer 2>&1 | filecheck %s --check-prefix=AGAIN
// RUN: tempo-opt %t.mlir | filecheck %s --check-prefix=PLAIN
// RUN: echo "" | not tempo-opt --run-reproducer 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py -p 'test-report{label="a b" limit=3},test-crash' --mlir-pass-pipeline-crash-reproducer=%t.crash.mlir 2>&1 | filecheck %s --check-prefix=CRASH
// RUN: not tempo-opt %t.crash.mlir --load-pass-plugin=%S/Inputs/plugin.py --run-reproducer --remarks 2>&1 | filecheck %s --check-prefix=CRASH-AGAIN

// FAIL: reproducer.mlir:[[# @LINE + 30]]:3: error: this op cannot be lowered
// FAIL: note: a reproducer is in {{.*}}.mlir: tempo-opt --run-reproducer

// FILE: func.func @f
// FILE: "test.op"() : () -> () loc({{.*}}reproducer.mlir":[[# @LINE + 26]]:3)
// FILE: {-#
// FILE-NEXT: external_resources: {
// FILE-NEXT: mlir_reproducer: {
// FILE-NEXT: pipeline: "builtin.module(cse,test-fail)",
// FILE-NEXT: disable_threading: true,
// FILE-NEXT: verify_each: true
// FILE-NEXT: }
// FILE-NEXT: }
// FILE-NEXT: #-}

// the message is still about the first file
// AGAIN: reproducer.mlir:[[# @LINE + 14]]:3: error: this op cannot be lowered

// PLAIN: func.func @f
// PLAIN-NOT: external_resources

// NONE: error: <stdin>: no mlir_reproducer section with a pipeline at its end

// CRASH: KeyError
// CRASH: a reproducer is in

// CRASH-AGAIN: remark: a b [test-report]
// CRASH-AGAIN: KeyError

func.func @f() {
  "test.op"() : () -> ()
  func.return
}
