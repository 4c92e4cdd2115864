// RUN: tempo-opt %s --check-each -p sdg-schedule,loop-plan-storage --split-input-file | filecheck %s

// A state is updated in the array of the caller: parameter, merge and update are no memory of their own.

// CHECK-LABEL: loop.program @sgd
// CHECK-NEXT:    %x = loop.input "x" : !loop.buffer<(i: full) 4xf32>
// CHECK-NEXT:    %w0 = loop.parameter "w" : !loop.buffer<4xf32>
// CHECK-NEXT:    %wI = loop.output "w" {donates} : !loop.buffer<4xf32>
// CHECK-NEXT:    loop.compute ins(%a = %w0) outs(%wI) {
// CHECK-NEXT:      loop.yield %a : tensor<4xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.for i = 0 to I {
// CHECK-NEXT:      loop.compute at (i = i) ins(%a = %wI, %b = %x[i]) outs(%wI) {
// CHECK-NEXT:        %0 = sdg.sub %a, %b
// CHECK-NEXT:        loop.yield %0 : tensor<4xf32>
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:  }
sdg.program @sgd dims(i: I) {
  %x = sdg.input "x" in (i) : tensor<4xf32>
  %w0 = sdg.parameter "w" : tensor<4xf32>
  %w = sdg.merge {i = 0 : %w0, i > 0 : %w1[i - 1]} in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %w1 = sdg.sub %w[i], %x[i] in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %wI = sdg.merge {I = 0 : %w0, I > 0 : %w1[I - 1]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "w" %wI : tensor<4xf32>
}

// -----

// An update that reads other elements than it writes needs the old value whole: two slots, and a copy at the end.

// CHECK-LABEL: loop.program @matrix
// CHECK:         %w1 = loop.alloc : !loop.buffer<(i: ring 2 to I + 1) 4x4xf32>
// CHECK:           loop.compute at (i = i) ins(%a = %w1[i]) outs(%w1[i + 1]) {
sdg.program @matrix dims(i: I) {
  %w0 = sdg.parameter "w" : tensor<4x4xf32>
  %w = sdg.merge {i = 0 : %w0, i > 0 : %w1[i - 1]} in (i) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %w1 = sdg.contract "ij,jk->ik" %w[i], %w[i] in (i) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %wI = sdg.merge {I = 0 : %w0, I > 0 : %w1[I - 1]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  sdg.output "w" %wI : tensor<4x4xf32>
}
