// What one program sums alone.
// RUN: tempo-opt %s --check-each=interp -p loop-split-rows --split-input-file | filecheck %s

// One program has all of 64 rows: there are no parts. What one kernel writes of one shape, without products in a row, is
// none that is computed by rows.

// CHECK-LABEL: loop.program @few
// CHECK-NOT:     loop.parts
loop.program @few dims() {
  %x = loop.input "x" : !loop.buffer<64x4xf32>
  %w = loop.parameter "w" : !loop.buffer<4x8xf32>
  %y = loop.output "y" : !loop.buffer<64x8xf32>
  %g = loop.output "g" : !loop.buffer<4x8xf32>
  %e = loop.output "e" : !loop.buffer<4x8xf32>
  loop.kernel ins(%0 = %x, %1 = %w) outs(%y, %g) {
    %p = sdg.contract "bk,kn->bn" %0, %1 : (tensor<64x4xf32>, tensor<4x8xf32>) -> tensor<64x8xf32>
    %s = sdg.contract "bk,bn->kn" %0, %p : (tensor<64x4xf32>, tensor<64x8xf32>) -> tensor<4x8xf32>
    loop.yield %p, %s : tensor<64x8xf32>, tensor<4x8xf32>
  }
  loop.kernel ins(%0 = %x, %1 = %y) outs(%e) {
    %s = sdg.contract "bk,bn->kn" %0, %1 : (tensor<64x4xf32>, tensor<64x8xf32>) -> tensor<4x8xf32>
    %r = sdg.exp %s : (tensor<4x8xf32>) -> tensor<4x8xf32>
    loop.yield %r : tensor<4x8xf32>
  }
}
