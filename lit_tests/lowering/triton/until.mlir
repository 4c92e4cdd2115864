// A loop that data ends gives its bound: memory has room for the most steps that there may be, what follows the loop takes
// the steps that there were, and what the program declares of the bound is asked once more.
// RUN: tempo-opt %s -t triton | filecheck %s

// CHECK:      def until(arrays, *, T, seed=0, start=None, hosts=None, extents=None, graphs=None):
// CHECK:          output x: f32[T]
// CHECK:          most_T = T
// CHECK:          y = torch.zeros((most_T,), dtype=torch.float32, device=device)
// CHECK:          for t in range(T):
// CHECK-NEXT:         next_t[(1,)](scalars)
// CHECK-NEXT:         copy_kernel[(1,)](x, y, scalars, 1)
// CHECK-NEXT:         if stop.view(-1)[t]:
// CHECK-NEXT:             T = t + 1
// CHECK-NEXT:             break
// CHECK-NEXT:     if extents is not None:
// CHECK-NEXT:         extents["T"] = T
// CHECK-NEXT:     if not (T >= 1):
// CHECK-NEXT:         raise ProgramError("the program is declared for `T >= 1`, which data that ended a dim fails", {"T": T})
// CHECK-NEXT:     sum_kernel[(1,)](x, [[SUM:.*]], T)
// CHECK-NEXT:     arena.give(memory)
// CHECK-NEXT:     return {"x": y[:T].contiguous(), "sum": [[SUM]]}
loop.program @until dims(t: T) where T >= 1 {
  %x = loop.input "x" : !loop.buffer<(t: full) f32>
  %stop = loop.input "stop" : !loop.buffer<(t: full) i1>
  %y = loop.output "x" : !loop.buffer<(t: full) f32>
  %sum = loop.output "sum" : !loop.buffer<f32>
  loop.for t = 0 to T until %stop[t] giving T {
    loop.compute at (t = t) ins(%a = %x[t]) outs(%y[t]) { loop.yield %a : tensor<f32> }
  }
  loop.compute ins(%a = %x[0:T]) outs(%sum) {
    %r = sdg.sum %a axes [0] : (tensor<?xf32, #sdg.size<T>>) -> tensor<f32>
    loop.yield %r : tensor<f32>
  }
}
