// RUN: tempo-opt %s --split-input-file --verify-diagnostics

tile.kernel @k(%x: f32) grid [] {
  %y = tile.splat %x : f32 -> !tile.tile<4xf32>
  %z = tile.splat %x : f32 -> !tile.tile<4x2xf32>
  // expected-error@+1 {{operands of shapes 4, 4x2 differ in rank; use tile.expand}}
  %w = tile.add %y, %z : (!tile.tile<4xf32>, !tile.tile<4x2xf32>) -> !tile.tile<4x2xf32>
}

// -----

tile.kernel @k(%x: !tile.tile<4xf32>) grid [] {}
// expected-error@-1 {{arguments are pointers and scalars, not !tile.tile<4xf32>}}

// -----

tile.kernel @k(%x: f32, %i: i32) grid [] {
  // expected-error@+1 {{element types f32, i32 differ; use tile.cast}}
  %w = tile.add %x, %i : (f32, i32) -> f32
}

// -----

tile.kernel @k(%i: i32) grid [] {
  // expected-error@+1 {{takes floats, not i32}}
  %w = tile.exp %i : (i32) -> i32
}

// -----

tile.kernel @k(%i: i32) grid [] {
  // expected-error@+1 {{takes floats, not i32}}
  %w = tile.div %i, %i : (i32, i32) -> i32
}

// -----

tile.kernel @k(%b: i1) grid [] {
  // expected-error@+1 {{takes integers or floats, not i1}}
  %w = tile.add %b, %b : (i1, i1) -> i1
}

// -----

tile.kernel @k(%x: f32) grid [] {
  // expected-error@+1 {{result holds f32, expected i1}}
  %w = tile.lt %x, %x : (f32, f32) -> f32
}

// -----

tile.kernel @k() grid [2] {
  // expected-error@+1 {{axis 1 of a grid of 1 axes}}
  %p = tile.program_id 1
}

// -----

tile.kernel @k(%p: !tile.ptr<f32>) grid [] {
  // expected-error@+1 {{the type has 1 dynamic sizes and strides, 0 are given}}
  %v = tile.view %p[] : !tile.ptr<f32> -> !tile.view<?xf32, [1]>
}

// -----

tile.kernel @k(%p: !tile.ptr<f32>) grid [] {
  // expected-error@+1 {{a view of i32 through a pointer to f32}}
  %v = tile.view %p[] : !tile.ptr<f32> -> !tile.view<4xi32, [1]>
}

// -----

tile.kernel @k(%p: !tile.ptr<f32>, %i: index) grid [] {
  %v = tile.view %p[] : !tile.ptr<f32> -> !tile.view<4x4xf32, [4, 1]>
  // expected-error@+1 {{a view of rank 2 takes 2 indices and block extents, not 1 and 1}}
  %x = tile.load %v[%i] block [4] : !tile.view<4x4xf32, [4, 1]> -> !tile.tile<4xf32>
}

// -----

tile.kernel @k(%p: !tile.ptr<f32>, %i: index) grid [] {
  %v = tile.view %p[] : !tile.ptr<f32> -> !tile.view<4x4x4xf32, [16, 4, 1]>
  // expected-error@+1 {{block [4, 4, 4] has 3 ranges; a tile has at most 2 axes}}
  %x = tile.load %v[%i, %i, %i] block [4, 4, 4] : !tile.view<4x4x4xf32, [16, 4, 1]> -> !tile.tile<4x4xf32>
}

// -----

tile.kernel @k(%p: !tile.ptr<f32>, %i: index) grid [] {
  %v = tile.view %p[] : !tile.ptr<f32> -> !tile.view<4x4xf32, [4, 1]>
  // expected-error@+1 {{the block holds !tile.tile<4xf32>, not f32}}
  %x = tile.load %v[%i, %i] block [0, 4] : !tile.view<4x4xf32, [4, 1]> -> f32
}

// -----

tile.kernel @k(%p: !tile.ptr<f32>, %i: index) grid [] {
  %v = tile.view %p[] : !tile.ptr<f32> -> !tile.view<4xf32, [1]>
  // expected-error@+1 {{other is of type i32, the view holds f32}}
  %x = tile.load %v[%i] block [4] other 1 : i32 : !tile.view<4xf32, [1]> -> !tile.tile<4xf32>
}

// -----

tile.kernel @k(%p: !tile.ptr<f32>, %i: index) grid [] {
  %v = tile.view %p[] : !tile.ptr<f32> -> !tile.view<4xf32, [1]>
  %at = tile.iota %i : !tile.tile<8xi32>
  // expected-error@+1 {{positions are 4 integers in a tile, not !tile.tile<8xi32>}}
  %x = tile.gather %v[%i] at %at axis 0 block [4] : !tile.view<4xf32, [1]>, !tile.tile<8xi32> -> !tile.tile<4xf32>
}

// -----

tile.kernel @k(%p: !tile.ptr<i1>, %b: i1, %i: index) grid [] {
  %v = tile.view %p[] : !tile.ptr<i1> -> !tile.view<4xi1, [1]>
  // expected-error@+1 {{i1 cannot be added; use tile.cast}}
  tile.atomic_add %b, %v[%i] block [0] : i1, !tile.view<4xi1, [1]>
}

// -----

tile.kernel @k(%x: f32) grid [] {
  %a = tile.splat %x : f32 -> !tile.tile<2x3xf32>
  // expected-error@+1 {{shapes are MxK, KxN and MxN, not [2, 3], [2, 3] and [2, 3]}}
  %d = tile.dot %a, %a, %a : !tile.tile<2x3xf32>, !tile.tile<2x3xf32>, !tile.tile<2x3xf32> -> !tile.tile<2x3xf32>
}

// -----

tile.kernel @k(%x: f16) grid [] {
  %a = tile.splat %x : f16 -> !tile.tile<2x2xf16>
  // expected-error@+1 {{a product of f16 does not accumulate in f16}}
  %d = tile.dot %a, %a, %a : !tile.tile<2x2xf16>, !tile.tile<2x2xf16>, !tile.tile<2x2xf16> -> !tile.tile<2x2xf16>
}

// -----

tile.kernel @k(%x: f32) grid [] {
  %a = tile.splat %x : f32 -> !tile.tile<2x3xf32>
  // expected-error@+1 {{argmax gives i32 or i64, not f32}}
  %d = tile.reduce argmax %a axis 1 : !tile.tile<2x3xf32> -> !tile.tile<2xf32>
}

// -----

tile.kernel @k(%x: f32) grid [] {
  %a = tile.splat %x : f32 -> !tile.tile<2x3xf32>
  // expected-error@+1 {{a scan is of sum or prod, not of max}}
  %d = tile.scan max %a axis 1 : !tile.tile<2x3xf32> -> !tile.tile<2x3xf32>
}

// -----

tile.kernel @k(%x: f32, %n: index) grid [] {
  // expected-error@+1 {{yielded values are (index), carried are (f32)}}
  %r = tile.for %i = %n to %n step 1 init(%y = %x) : f32 {
    tile.yield %i : index
  }
}

// -----

tile.kernel @k(%n: index) grid [] {
  // expected-error@+1 {{step 0 is not positive}}
  tile.for %i = %n to %n step 0 {
  }
}
