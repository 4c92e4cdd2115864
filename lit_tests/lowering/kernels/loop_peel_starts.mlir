// RUN: tempo-opt %s --check-each=interp -p 'loop-peel-starts{least=0}' --split-input-file | filecheck %s

// The first step reads the states that the caller gave; where there is no step they are copied.

// CHECK-LABEL: loop.program @momentum
// CHECK-NOT:     loop.compute
// CHECK:         loop.if 0 >= I {
// CHECK-NEXT:      loop.compute ins(%{{.*}} = %m0) outs(%m) {
// CHECK:           loop.compute ins(%{{.*}} = %w0) outs(%w) {
// CHECK:         loop.for i = 0 to I {
// CHECK-NEXT:      loop.if i = 0 {
// CHECK-NEXT:        loop.kernel ins(%{{.*}} = %m0, %{{.*}} = %w0, %{{.*}} = %x[i]) outs(%m, %w) {
// CHECK:           } else {
// CHECK-NEXT:        loop.kernel ins(%{{.*}} = %m, %{{.*}} = %w, %{{.*}} = %x[i]) outs(%m, %w) {
loop.program @momentum dims(i: I) {
  %x = loop.input "x" : !loop.buffer<(i: full) 4xf32>
  %m0 = loop.parameter "m" : !loop.buffer<4xf32>
  %w0 = loop.parameter "w" : !loop.buffer<4xf32>
  %m = loop.output "m" {donates} : !loop.buffer<4xf32>
  %w = loop.output "w" {donates} : !loop.buffer<4xf32>
  loop.compute ins(%a = %m0) outs(%m) {
    loop.yield %a : tensor<4xf32>
  }
  loop.compute ins(%a = %w0) outs(%w) {
    loop.yield %a : tensor<4xf32>
  }
  loop.for i = 0 to I {
    loop.kernel ins(%a = %m, %b = %w, %c = %x[i]) outs(%m, %w) {
      %0 = sdg.add %a, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = sdg.sub %b, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      loop.yield %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
  }
}

// -----

// A loop that always runs needs no copy; one that runs downwards begins with its last row.

// CHECK-LABEL: loop.program @back
// CHECK-NOT:     0 >=
// CHECK:         loop.for t = 2 down to 0 {
// CHECK-NEXT:      loop.if t = 2 {
// CHECK-NEXT:        loop.compute ins(%{{.*}} = %s0, %{{.*}} = %x[t]) outs(%s) {
loop.program @back dims(t: 3) {
  %x = loop.input "x" : !loop.buffer<(t: full) 4xf32>
  %s0 = loop.input "s0" : !loop.buffer<4xf32>
  %s = loop.alloc : !loop.buffer<4xf32>
  %y = loop.output "y" : !loop.buffer<4xf32>
  loop.compute ins(%a = %s0) outs(%s) {
    loop.yield %a : tensor<4xf32>
  }
  loop.for t = 2 down to 0 {
    loop.compute ins(%a = %s, %b = %x[t]) outs(%s) {
      %0 = sdg.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      loop.yield %0 : tensor<4xf32>
    }
  }
  loop.compute ins(%a = %s) outs(%y) {
    loop.yield %a : tensor<4xf32>
  }
}

// -----

// Downwards in steps of two, the first row is the greatest that the steps from the last one reach.

// CHECK-LABEL: loop.program @every_second_row_back
// CHECK-NOT:     loop.compute
// CHECK:         loop.for t = 3 down to 0 step 2 {
// CHECK-NEXT:      loop.if t = 2 {
// CHECK-NEXT:        loop.compute ins(%{{.*}} = %s0, %{{.*}} = %x[t]) outs(%s) {
loop.program @every_second_row_back dims(t: 4) {
  %x = loop.input "x" : !loop.buffer<(t: full) 4xf32>
  %s0 = loop.input "s0" : !loop.buffer<4xf32>
  %s = loop.alloc : !loop.buffer<4xf32>
  %y = loop.output "y" : !loop.buffer<4xf32>
  loop.compute ins(%a = %s0) outs(%s) {
    loop.yield %a : tensor<4xf32>
  }
  loop.for t = 3 down to 0 step 2 {
    loop.compute ins(%a = %s, %b = %x[t]) outs(%s) {
      %0 = sdg.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      loop.yield %0 : tensor<4xf32>
    }
  }
  loop.compute ins(%a = %s) outs(%y) {
    loop.yield %a : tensor<4xf32>
  }
}
