// A host call is given copies, so what it returns may lie where what it is given lay: one row of the state is kept.
// RUN: tempo-opt %s --check-each -p loop-plan-storage | filecheck %s

// CHECK-LABEL: loop.program @steps
// CHECK-NEXT:    %0 = loop.output "y" : !loop.buffer<4xi64>
// CHECK-NEXT:    %y = loop.alloc : !loop.buffer<4xi64>
// CHECK-NEXT:    loop.for t = 0 to T {
// CHECK:           loop.host @env::@add at (t = t) ins(%y) outs(%y)
loop.program @steps dims(t: T) {
  %0 = loop.output "y" : !loop.buffer<4xi64>
  %x = loop.alloc : !loop.buffer<(t: full) 4xi64>
  %y = loop.alloc : !loop.buffer<(t: full) 4xi64>
  loop.for t = 0 to T {
    loop.if t = 0 {
      loop.compute at (t = t) outs(%x[t]) {
        %1 = sdg.arange [0:4] : tensor<4xi64>
        loop.yield %1 : tensor<4xi64>
      }
    } else {
      loop.compute at (t = t) ins(%a = %y[t - 1]) outs(%x[t]) {
        loop.yield %a : tensor<4xi64>
      }
    }
    loop.host @env::@add at (t = t) ins(%x[t]) outs(%y[t])
    loop.compute at (t = t) ins(%a = %y[t]) outs(%0) {
      %1 = sdg.neg %a : (tensor<4xi64>) -> tensor<4xi64>
      loop.yield %1 : tensor<4xi64>
    }
  }
}
