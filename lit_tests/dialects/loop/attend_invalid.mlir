// RUN: not tempo-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: 'n' is no axis of rows of loop.attend "tn,nd->td"
loop.program @rows dims(t: T) {
  %s = loop.input "s" : !loop.buffer<4x6xf32>
  %v = loop.input "v" : !loop.buffer<6x8xf32>
  %o = loop.output "o" : !loop.buffer<4x8xf32>
  loop.kernel ins(%a = %s, %b = %v) outs(%o) {
    %r = loop.attend "tn,nd->td" %a, %b rows n to 1 : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
    loop.yield %r : tensor<4x8xf32>
  }
}

// -----

// CHECK: loop.attend "tn,nd->tnd" sums no one axis of both operands
loop.program @kept dims(t: T) {
  %s = loop.input "s" : !loop.buffer<4x6xf32>
  %v = loop.input "v" : !loop.buffer<6x8xf32>
  %o = loop.output "o" : !loop.buffer<4x6x8xf32>
  loop.kernel ins(%a = %s, %b = %v) outs(%o) {
    %r = loop.attend "tn,nd->tnd" %a, %b rows t to 1 : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x6x8xf32>
    loop.yield %r : tensor<4x6x8xf32>
  }
}
