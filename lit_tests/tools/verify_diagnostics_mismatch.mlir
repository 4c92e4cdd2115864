// A message that is not expected, and an expectation that is not met, are errors and give status 1.
// RUN: not tempo-opt %s --split-input-file --verify-diagnostics 2>&1 | filecheck %s

// CHECK: verify_diagnostics_mismatch.mlir:[[# @LINE + 3]]:1: error: unexpected error: unknown operation 'foo.bar'
// CHECK: verify_diagnostics_mismatch.mlir:[[# @LINE + 1]]:1: error: expected error "something else" was not produced
// expected-error@+1 {{something else}}
foo.bar

// -----

// CHECK: verify_diagnostics_mismatch.mlir:[[# @LINE + 1]]:1: error: expected warning "never" was not produced
// expected-warning@+1 {{never}}
func.func private @right() -> ()

// -----

// CHECK: verify_diagnostics_mismatch.mlir:[[# @LINE + 4]]:1: error: unexpected error: unknown operation 'foo.bar'
// CHECK: verify_diagnostics_mismatch.mlir:[[# @LINE + 1]]:1: error: expected error "unknown operation" was not produced
// expected-error@+3 {{unknown operation}}
// the line that it names is the one after this op
foo.bar
