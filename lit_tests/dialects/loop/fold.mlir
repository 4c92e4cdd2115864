// A loop inside of a kernel: only the last values are seen outside.
// RUN: tempo-opt %s | tempo-opt | filecheck %s
// RUN: tempo-opt %s --print-op-generic | tempo-opt | filecheck %s

// CHECK-LABEL: loop.program @fold dims(t: T) {
// CHECK:           loop.kernel at (t = t) ins(%a = %x[t], %b = %x[0:4 * (t floordiv 4)]) outs(%y[t]) {
// CHECK-NEXT:        %last = loop.fold m = 0 to t floordiv 4 carry(%c = %a) reads(%d = %b) {
// CHECK-NEXT:          %tile = sdg.slice %d take [4 * m:4 * m + 4, 0:8] : (tensor<?x8xf32, #sdg.size<4 * (t floordiv 4)>>) -> tensor<4x8xf32>
// CHECK-NEXT:          %total = sdg.sum %tile axes [0] : (tensor<4x8xf32>) -> tensor<8xf32>
// CHECK-NEXT:          %next = sdg.add %c, %total : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:          loop.yield %next : tensor<8xf32>
// CHECK-NEXT:        }
// CHECK-NEXT:        loop.yield %last : tensor<8xf32>
loop.program @fold dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 8xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 8xf32>
  loop.for t = 0 to T {
    loop.kernel at (t = t) ins(%a = %x[t], %b = %x[0:4 * (t floordiv 4)]) outs(%y[t]) {
      %last = loop.fold m = 0 to t floordiv 4 carry(%c = %a) reads(%d = %b) {
        %tile = sdg.slice %d take [4 * m:4 * m + 4, 0:8] : (tensor<?x8xf32, #sdg.size<4 * (t floordiv 4)>>) -> tensor<4x8xf32>
        %total = sdg.sum %tile axes [0] : (tensor<4x8xf32>) -> tensor<8xf32>
        %next = sdg.add %c, %total : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
        loop.yield %next : tensor<8xf32>
      }
      loop.yield %last : tensor<8xf32>
    }
  }
}
