// RUN: tempo-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: an index read uses 's', neither a bound of the program nor the iterator of an enclosing loop
loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<(t: full) 4xf32>
  loop.for t = 0 to T {
    loop.compute ins(%a = %x[s]) outs(%x[t]) { loop.yield %a : tensor<4xf32> }
  }
}

// -----

// CHECK: iterator 't' is taken by an enclosing loop or a bound
loop.program @p dims(t: T) {
  loop.for t = 0 to T { loop.for t = 0 to T { } }
}

// -----

// CHECK: index has 0 entries, the buffer stores 1 dims (t)
loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<(t: full) 4xf32>
  loop.free %x
}

// -----

// CHECK: body yields (tensor<4xf32>), outs are (tensor<8xf32>)
loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<4xf32>
  %y = loop.alloc : !loop.buffer<8xf32>
  loop.compute ins(%a = %x) outs(%y) { loop.yield %a : tensor<4xf32> }
}

// -----

// CHECK: tensor<8xf32> does not fit tensor<4xf32>, which is what the index accesses
loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<4xf32>
  loop.compute ins(%a = %x : tensor<8xf32>) outs(%x) { loop.yield %a : tensor<8xf32> }
}

// -----

// CHECK: body does not end in loop.yield
loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<4xf32>
  loop.compute ins(%a = %x) { %b = sdg.exp %a : (tensor<4xf32>) -> tensor<4xf32> }
}

// -----

// CHECK: until reads tensor<4xf32>, expected tensor<i1>
loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<4xf32>
  loop.for t = 0 to T until %x { }
}

// -----

// CHECK: dim 's' is not declared by the program and has no extent
loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<(s: full) 4xf32>
}

// -----

// CHECK: ring of dim 't' has 0 slots, expected at least 1
loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<(t: ring 0) 4xf32>
}

// -----

// CHECK: a buffer stores a dim twice: (t, t)
loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<(t: full, t: full) 4xf32>
}

// -----

// CHECK: buffer %y is not defined above
loop.program @p dims(t: T) {
  loop.free %y
}

// -----

// CHECK: expected 1 sizes, one for each '?'
loop.program @p dims(t: T) {
  %x = loop.alloc : !loop.buffer<?xf32>
}

// -----

// CHECK: @env is not of the form @object::@method
loop.program @p dims(t: T) {
  loop.host @env
}
