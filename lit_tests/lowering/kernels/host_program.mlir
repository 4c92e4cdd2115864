// RUN: tempo-opt %s -t llvm | filecheck %s

// The loops of the program are one function; a launch is a call, with the programs of the grid from and to, and the scratch.

// CHECK:      define void @add_kernel(
// CHECK:      define i32 @host(ptr %buffers, ptr %scalars, ptr %callbacks) {
// CHECK:      phi i64 [ 0,
// CHECK:      call i64 @llvm.readcyclecounter()
// CHECK:      br i1
// CHECK:      call void @add_kernel(ptr %{{.*}}, ptr %{{.*}}, i64 %{{.*}}, i64 %{{.*}}, ptr %{{.*}})
// CHECK:      ret i32 0
// CHECK-NEXT: stop:
// CHECK-NEXT: ret i32 1
loop.program @scan dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 16xf32>
  %h = loop.output "h" : !loop.buffer<(t: full) 16xf32>
  loop.for t = 0 to T {
    loop.if t = 0 {
      loop.compute at (t = t) ins(%a = %x[t]) outs(%h[t]) { loop.yield %a : tensor<16xf32> }
    } else {
      loop.compute at (t = t) ins(%a = %x[t], %b = %h[t - 1]) outs(%h[t]) {
        %r = sdg.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
        loop.yield %r : tensor<16xf32>
      }
    }
  }
}
