// Nobody knows the bound that a loop gives before the loop is done.
// RUN: tempo-opt %s --split-input-file --verify-diagnostics

loop.program @before dims(t: T) {
  %stop = loop.input "stop" : !loop.buffer<(t: full) i1>
  %y = loop.output "y" : !loop.buffer<i64>
  // expected-error@+1 {{T is known only after the loop that gives it, loop.compute names it before}}
  loop.compute ins(%a = %stop[0:T]) outs(%y) {
    %r = sdg.constant 0 : tensor<i64>
    loop.yield %r : tensor<i64>
  }
  loop.for t = 0 to T until %stop[t] giving T { }
}

// -----

loop.program @inside dims(t: T) {
  %stop = loop.input "stop" : !loop.buffer<(t: full) i1>
  loop.for t = 0 to T until %stop[t] giving T {
    // expected-error@+1 {{T is known only after the loop that gives it, loop.if names it before}}
    loop.if t < T - 1 { }
  }
}

// -----

loop.program @body dims(t: T) {
  %stop = loop.input "stop" : !loop.buffer<(t: full) i1>
  %y = loop.output "y" : !loop.buffer<i64>
  loop.for t = 0 to T until %stop[t] giving T {
    loop.compute outs(%y) {
      // expected-error@+1 {{T is known only after the loop that gives it, sdg.index names it before}}
      %r = sdg.index T : tensor<i64>
      loop.yield %r : tensor<i64>
    }
  }
}

// -----

loop.program @nested dims(i: I, t: T) {
  %stop = loop.input "stop" : !loop.buffer<(t: full) i1>
  loop.for i = 0 to I {
    // expected-error@+1 {{a loop that gives T, a bound of the program, stands in no other loop or guard}}
    loop.for t = 0 to T until %stop[t] giving T { }
  }
}

// -----

loop.program @step dims(t: T) {
  %stop = loop.input "stop" : !loop.buffer<(t: full) i1>
  // expected-error@+1 {{a loop that gives T runs upwards from 0 to T by 1, until something is true}}
  loop.for t = 1 to T until %stop[t] giving T { }
}

// -----

loop.program @twice dims(i: I, t: T) {
  %stop = loop.input "stop" : !loop.buffer<(t: full) i1>
  loop.for t = 0 to T until %stop[t] giving T { }
  // expected-error@+1 {{a second loop gives I: one loop of a program may}}
  loop.for i = 0 to I until %stop[i] giving I { }
}

// -----

loop.program @room dims(t: T, p: P) {
  %stop = loop.input "stop" : !loop.buffer<(t: full) i1>
  // expected-error@+1 {{the extent P - T grows as T falls: no memory can be reserved for it}}
  %x = loop.alloc : !loop.buffer<(p: full to P - T) f32>
  loop.for t = 0 to T until %stop[t] giving T { }
}
