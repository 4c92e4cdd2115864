// `--verify-diagnostics` with MLIR's meaning: every message is expected, and every expectation is met.
// RUN: tempo-opt %s --split-input-file --verify-diagnostics | filecheck %s

// expected-error@+1 {{unknown operation 'foo.bar'}}
foo.bar

// -----

func.func @wrong(%a: i32) -> i64 {
  // expected-error@+1 {{type}}
  func.return %a : i32
}

// -----

func.func @syntax( { // expected-error {{Expected argument}}
}

// -----

// a part without a mistake is printed
// CHECK: func.func private @right()
func.func private @right() -> ()

// -----

func.func @wrong(%a: i32) -> i64 {
  func.return %a : i32
  // expected-error-re@-1 {{Expected {{.*}}types}}
}

// -----

func.func @wrong(%a: i32) -> i64 {
  // expected-error@below {{types}}
  func.return %a : i32
}
