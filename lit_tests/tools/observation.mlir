// Remarks, statistics, times and failures of passes; the passes come from a plug-in.
// RUN: tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py -p 'test-report{label="a remark"}' --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py -p test-report --remarks --verify-diagnostics
// RUN: tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py -p test-report,test-report --pass-statistics 2>&1 | filecheck %s --check-prefix=STATISTICS
// RUN: tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py -p test-report,dce --timing 2>&1 | filecheck %s --check-prefix=TIMING
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py -p test-fail --print-ir-after 2>&1 | filecheck %s --check-prefix=FAIL
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py -p test-break,dce 2>&1 | filecheck %s --check-prefix=BREAK
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py -p test-break,dce --verify-each=false 2>&1 | filecheck %s --check-prefix=LATE
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py -p test-crash 2>&1 | filecheck %s --check-prefix=CRASH

// REMARK: observation.mlir:[[# @LINE + 23]]:3: remark: a remark [test-report]
// REMARK-NEXT: {{^}}  "test.op"()

// STATISTICS: Pass statistics report
// STATISTICS: {{^}}test-report
// STATISTICS-NEXT: {{^}}  (S) 2 operations

// TIMING: Execution time report
// TIMING: Total Execution Time: {{[0-9.]+}} seconds
// TIMING: Parser
// TIMING: Verifier
// TIMING: test-report
// TIMING: dce
// TIMING: Output
// TIMING: (100.0%) Total

// FAIL: IR Dump After test-fail Failed
// FAIL: observation.mlir:[[# @LINE + 6]]:3: error: this op cannot be lowered
// FAIL: note: write something else
// FAIL-NOT: Traceback

func.func @f() {
  // expected-remark@+1 {{seen}}
  "test.op"() : () -> ()
  func.return
}

// BREAK: observation.mlir:[[# @LINE - 6]]:1: error:
// BREAK: note: the IR does not verify after pass 'test-break'
// LATE: observation.mlir:[[# @LINE - 8]]:1: error:
// LATE-NOT: after pass
// CRASH: KeyError: 'a bug'
