// RUN: tempo-opt %s --split-input-file --verify-diagnostics

loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<(t: full) 4xf32>
  loop.for t = 0 to T {
    // expected-error@+1 {{an index read uses 's', neither a bound of the program nor the iterator of an enclosing loop}}
    loop.compute ins(%a = %x[s]) outs(%x[t]) { loop.yield %a : tensor<4xf32> }
  }
}

// -----

loop.program @p dims(t: T) {
  // expected-error@+1 {{iterator 't' is taken by an enclosing loop or a bound}}
  loop.for t = 0 to T { loop.for t = 0 to T { } }
}

// -----

loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<(t: full) 4xf32>
  // expected-error@+1 {{index has 0 entries, the buffer stores 1 dims (t)}}
  loop.free %x
}

// -----

loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<4xf32>
  %y = loop.alloc : !loop.buffer<8xf32>
  // expected-error@+1 {{body yields (tensor<4xf32>), outs are (tensor<8xf32>)}}
  loop.compute ins(%a = %x) outs(%y) { loop.yield %a : tensor<4xf32> }
}

// -----

loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<4xf32>
  // expected-error@+1 {{tensor<8xf32> does not fit tensor<4xf32>, which is what the index accesses}}
  loop.compute ins(%a = %x : tensor<8xf32>) outs(%x : tensor<8xf32>) { loop.yield %a : tensor<8xf32> }
}

// -----

loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<4xf32>
  // expected-error@+1 {{terminates block in single-block region but is not a terminator}}
  loop.compute ins(%a = %x) { %b = sdg.exp %a : (tensor<4xf32>) -> tensor<4xf32> }
}

// -----

loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<4xf32>
  // expected-error@+1 {{until reads tensor<4xf32>, expected tensor<i1>}}
  loop.for t = 0 to T until %x { }
}

// -----

loop.program @p dims(t: T) {
  // expected-error@+1 {{dim 's' is not declared by the program and has no extent}}
  %x = loop.alloc : !loop.buffer<(s: full) 4xf32>
}

// -----

loop.program @p dims(t: T) {
  // expected-error@+1 {{ring of dim 't' has 0 slots, expected at least 1}}
  %x = loop.alloc : !loop.buffer<(t: ring 0) 4xf32>
}

// -----

loop.program @p dims(t: T) {
  // expected-error@+1 {{a buffer stores a dim twice: (t, t)}}
  %x = loop.alloc : !loop.buffer<(t: full, t: full) 4xf32>
}

// -----

loop.program @p dims(t: T) {
  // expected-error@+1 {{buffer %y is not defined above}}
  loop.free %y
}

// -----

loop.program @p dims(t: T) {
  // expected-error@+1 {{expected 1 sizes, one for each '?'}}
  %x = loop.alloc : !loop.buffer<?xf32>
}

// -----

loop.program @p dims(t: T) {
  // expected-error@+1 {{@env is not of the form @object::@method}}
  loop.host @env
}

// -----

loop.program @p dims(t: T) {
  // expected-error@+1 {{a call is over the points of b, which is no dim of the program}}
  loop.host @env::@step vectorized @step_all along (b) over (b: 0 to T)
}

// -----

loop.program @p dims(t: T) {
  // expected-error@+1 {{dim 't' lies inside of 2 axes, the row has 1}}
  %x = loop.alloc : !loop.buffer<(t: full inside 2) 4xf32>
}

// -----

loop.program @p dims(t: T) {
  %x = loop.input "x" : !loop.buffer<4xf32>
  %y = loop.output "y" : !loop.buffer<4xf32>
  loop.kernel ins(%a = %x) outs(%y) {
    // expected-error@+1 {{what is carried changes its type}}
    %last = loop.fold m = 0 to 4 carry(%c = %a) {
      %next = sdg.sum %c axes [0] : (tensor<4xf32>) -> tensor<f32>
      loop.yield %next : tensor<f32>
    }
    loop.yield %last : tensor<4xf32>
  }
}

// -----

loop.program @p dims(t: T) {
  %x = loop.input "x" : !loop.buffer<4xf32>
  %y = loop.output "y" : !loop.buffer<4xf32>
  loop.kernel ins(%a = %x) outs(%y) {
    // expected-error@+1 {{a fold counts from 0}}
    %last = loop.fold m = 1 to 4 carry(%c = %a) {
      loop.yield %c : tensor<4xf32>
    }
    loop.yield %last : tensor<4xf32>
  }
}

// -----

loop.program @p dims(t: T) {
  %status = loop.alloc : !loop.buffer<2xi64>
  // expected-error@+1 {{there is no message}}
  loop.check %status []
}

// -----

loop.program @p dims(t: T) {
  %status = loop.alloc : !loop.buffer<2xi64>
  // expected-error@+1 {{the status is a !loop.buffer<2xi64>, expected !loop.buffer<3xi64> or more cells}}
  loop.check %status ["an id {value}", "another"]
}

// -----

loop.program @p dims(t: T) {
  %status = loop.alloc : !loop.buffer<2xi32>
  // expected-error@+1 {{the status is a !loop.buffer<2xi32>, expected !loop.buffer<2xi64> or more cells}}
  loop.check %status ["an id {value}"]
}

// -----

loop.program @not_to_the_host dims(t: T) {
  %h = loop.alloc : !loop.buffer<(t: full) 4xf32>
  %g = loop.alloc : !loop.buffer<(t: full) 4xf32>
  loop.for t = 0 to T {
    // expected-error@+1 {{loop.offload copies from the device to a buffer of the host}}
    loop.offload %h[t] to %g[t]
  }
}

// -----

loop.program @not_from_the_host dims(t: T) {
  %h = loop.alloc : !loop.buffer<(t: full) 4xf32>
  %g = loop.alloc : !loop.buffer<(t: full) 4xf32>
  loop.for t = 0 to T {
    // expected-error@+1 {{loop.fetch copies from a buffer of the host to the device}}
    loop.fetch %h[t] to %g[t]
  }
}

// -----

loop.program @computed_on_the_host dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 4xf32>
  // expected-error@+1 {{memory of the host is used by loop.compute, expected loop.offload, loop.fetch, loop.free only}}
  %h = loop.alloc {host} : !loop.buffer<(t: full) 4xf32>
  loop.for t = 0 to T {
    loop.compute ins(%a = %x[t]) outs(%h[t]) { loop.yield %a : tensor<4xf32> }
  }
}

// -----

loop.program @other_rows dims(t: T) {
  %h = loop.alloc : !loop.buffer<(t: full) 4xf32>
  %g = loop.alloc {host} : !loop.buffer<(t: full) 4xf64>
  loop.for t = 0 to T {
    // expected-error@+1 {{tensor<4xf32> is copied to tensor<4xf64>}}
    loop.offload %h[t] to %g[t]
  }
}

// -----

loop.program @no_parts dims() {
  %x = loop.input "x" : !loop.buffer<4xf32>
  %y = loop.output "y" : !loop.buffer<0x4xf32>
  loop.kernel ins(%a = %x) outs(%y) {
    // expected-error@+1 {{parts are counted from 1}}
    %p = loop.parts %a into 0 : tensor<4xf32>
    loop.yield %p : tensor<0x4xf32>
  }
}
