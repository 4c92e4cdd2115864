// What is copied before the loop all the same.
// RUN: tempo-opt %s --check-each=interp -p 'loop-peel-starts{least=16}' --split-input-file | filecheck %s

// Fewer bytes than are asked for.

// CHECK-LABEL: loop.program @few
// CHECK-NOT:     loop.if
loop.program @few dims(i: I) {
  %x = loop.input "x" : !loop.buffer<(i: full) 3xf32>
  %w0 = loop.parameter "w" : !loop.buffer<3xf32>
  %w = loop.output "w" {donates} : !loop.buffer<3xf32>
  loop.compute ins(%a = %w0) outs(%w) {
    loop.yield %a : tensor<3xf32>
  }
  loop.for i = 0 to I {
    loop.compute ins(%a = %w, %b = %x[i]) outs(%w) {
      %0 = sdg.add %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      loop.yield %0 : tensor<3xf32>
    }
  }
}

// -----

// Two operations of a step read the state.

// CHECK-LABEL: loop.program @twice
// CHECK-NOT:     loop.if
loop.program @twice dims(i: I) {
  %x = loop.input "x" : !loop.buffer<(i: full) 4xf32>
  %w0 = loop.parameter "w" : !loop.buffer<4xf32>
  %w = loop.output "w" {donates} : !loop.buffer<4xf32>
  %y = loop.output "y" : !loop.buffer<(i: full) 4xf32>
  loop.compute ins(%a = %w0) outs(%w) {
    loop.yield %a : tensor<4xf32>
  }
  loop.for i = 0 to I {
    loop.compute ins(%a = %w, %b = %x[i]) outs(%y[i]) {
      %0 = sdg.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      loop.yield %0 : tensor<4xf32>
    }
    loop.compute ins(%a = %w, %b = %x[i]) outs(%w) {
      %0 = sdg.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      loop.yield %0 : tensor<4xf32>
    }
  }
}

// -----

// The parameter's array may be that of an output that another operation has written by then.

// CHECK-LABEL: loop.program @exchanged
// CHECK-NOT:     loop.if
loop.program @exchanged dims(i: I) {
  %x = loop.input "x" : !loop.buffer<(i: full) 4xf32>
  %w0 = loop.parameter "w" : !loop.buffer<4xf32>
  %w = loop.output "w" {donates} : !loop.buffer<4xf32>
  %s = loop.alloc : !loop.buffer<4xf32>
  %y = loop.output "y" : !loop.buffer<4xf32>
  loop.compute ins(%a = %w0) outs(%s) {
    loop.yield %a : tensor<4xf32>
  }
  loop.compute outs(%w) {
    %0 = sdg.constant 0.0 : tensor<4xf32>
    loop.yield %0 : tensor<4xf32>
  }
  loop.for i = 0 to I {
    loop.compute ins(%a = %s, %b = %x[i]) outs(%s) {
      %0 = sdg.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      loop.yield %0 : tensor<4xf32>
    }
  }
  loop.compute ins(%a = %s) outs(%y) {
    loop.yield %a : tensor<4xf32>
  }
}

// -----

// A product, beside which a copy is little; a guard, which some steps do not pass.

// CHECK-LABEL: loop.program @product
// CHECK-NOT:     loop.if i = 0
loop.program @product dims(i: I) {
  %x = loop.input "x" : !loop.buffer<(i: full) 4x4xf32>
  %w0 = loop.parameter "w" : !loop.buffer<4x4xf32>
  %v0 = loop.parameter "v" : !loop.buffer<4x4xf32>
  %w = loop.output "w" {donates} : !loop.buffer<4x4xf32>
  %v = loop.output "v" {donates} : !loop.buffer<4x4xf32>
  loop.compute ins(%a = %w0) outs(%w) {
    loop.yield %a : tensor<4x4xf32>
  }
  loop.compute ins(%a = %v0) outs(%v) {
    loop.yield %a : tensor<4x4xf32>
  }
  loop.for i = 0 to I {
    loop.compute ins(%a = %w, %b = %x[i]) outs(%w) {
      %0 = sdg.contract "mk,kn->mn" %b, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %1 = sdg.add %a, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      loop.yield %1 : tensor<4x4xf32>
    }
    loop.if i > 1 {
      loop.compute ins(%a = %v, %b = %x[i]) outs(%v) {
        %0 = sdg.add %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
        loop.yield %0 : tensor<4x4xf32>
      }
    }
  }
}
