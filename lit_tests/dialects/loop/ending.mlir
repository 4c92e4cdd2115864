// A loop that data ends gives a bound: the number of its iterations.
// RUN: TEMPO_ROUNDTRIP
// RUN: TEMPO_GENERIC_ROUNDTRIP

// CHECK-LABEL: loop.program @sum dims(t: T) {
// CHECK:         loop.for t = 0 to T until %stop[t] giving T {
// CHECK:         loop.compute ins(%a = %x[0:T]) outs(%y) {
loop.program @sum dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) f32>
  %stop = loop.input "stop" : !loop.buffer<(t: full) i1>
  %y = loop.output "y" : !loop.buffer<f32>
  loop.for t = 0 to T until %stop[t] giving T { }
  loop.compute ins(%a = %x[0:T]) outs(%y) {
    %r = sdg.sum %a axes [0] : (tensor<?xf32, #sdg.size<T>>) -> tensor<f32>
    loop.yield %r : tensor<f32>
  }
}
