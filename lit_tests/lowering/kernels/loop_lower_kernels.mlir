// RUN: tempo-opt %s --split-input-file -p loop-lower-kernels | filecheck %s

// Leaves of one kind share a kernel whatever they index; the launch evaluates offsets.

// CHECK-LABEL: loop.program @scan
// CHECK:      loop.if t = 0 {
// CHECK-NEXT:   loop.launch @copy_kernel(%x, %h)[16 * t]
// CHECK-NEXT: } else {
// CHECK-NEXT:   loop.launch @add_kernel(%x, %h)[16 * t, 16 * t - 16]
// CHECK-NEXT:   loop.launch @add_kernel(%x, %y)[16 * t, 16 * t - 16]
// CHECK-NEXT: }
// CHECK:      tile.kernel @copy_kernel(%x: !tile.ptr<f32>, %h: !tile.ptr<f32>, %n0: index) grid [] {
// CHECK:      tile.kernel @add_kernel(
// CHECK-NOT:  tile.kernel
loop.program @scan dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 16xf32>
  %h = loop.output "h" : !loop.buffer<(t: full) 16xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 16xf32>
  loop.for t = 0 to T {
    loop.if t = 0 {
      loop.compute at (t = t) ins(%a = %x[t]) outs(%h[t]) { loop.yield %a : tensor<16xf32> }
    } else {
      loop.compute at (t = t) ins(%a = %x[t], %b = %h[t - 1]) outs(%h[t]) {
        %r = sdg.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
        loop.yield %r : tensor<16xf32>
      }
      loop.compute at (t = t) ins(%a = %x[t], %b = %y[t - 1]) outs(%y[t]) {
        %r = sdg.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
        loop.yield %r : tensor<16xf32>
      }
    }
  }
}

// -----

// A grid axis that is open is given by the launch; a sort is left to numpy; a literal is memory that is filled once; what may
// fail is checked after the launch.

// CHECK-LABEL: loop.program @rest
// CHECK:      %literal = loop.alloc : !loop.buffer<3xf32>
// CHECK-NEXT: %status = loop.alloc : !loop.buffer<2xi64>
// CHECK-NEXT: loop.compute outs(%literal) {
// CHECK:      loop.launch @mul_kernel(%x, %literal, %a)[N, (N + 15) floordiv 16]
// CHECK-NEXT: loop.compute ins(%{{.*}} = %a[0]) outs(%s) {
// CHECK-NEXT:   %{{.*}} = sdg.sort
// CHECK:      loop.launch @gather_kernel(%x, %id, %g, %status)[N, N - 1]
// CHECK-NEXT: loop.check %status ["id {value} is outside of the N rows, 0 to N - 1, in sdg.gather
// CHECK:      tile.kernel @mul_kernel({{.*}}) grid [?]
loop.program @rest dims(n: N) where N >= 1 {
  %x = loop.input "x" : !loop.buffer<(n: full) 3xf32>
  %id = loop.input "id" : !loop.buffer<i64>
  %a = loop.alloc : !loop.buffer<(n: full) 3xf32>
  %s = loop.output "s" : !loop.buffer<3xf32>
  %g = loop.output "g" : !loop.buffer<3xf32>
  loop.compute ins(%b = %x[0:N]) outs(%a[0:N]) {
    %c = sdg.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
    %r = sdg.mul %b, %c : (tensor<?x3xf32, #sdg.size<N>>, tensor<3xf32>) -> tensor<?x3xf32, #sdg.size<N>>
    loop.yield %r : tensor<?x3xf32, #sdg.size<N>>
  }
  loop.compute ins(%b = %a[0]) outs(%s) {
    %r = sdg.sort %b axis 0 : (tensor<3xf32>) -> tensor<3xf32>
    loop.yield %r : tensor<3xf32>
  }
  loop.compute ins(%b = %x[0:N], %i = %id) outs(%g) {
    %r = sdg.gather %b, %i axis 0 : (tensor<?x3xf32, #sdg.size<N>>, tensor<i64>) -> tensor<3xf32>
    loop.yield %r : tensor<3xf32>
  }
}

// -----

// A loop over t reads 16 MB of weights and something: they come from memory, what the inner loop reads from a cache, and
// what runs once, after a loop that reads so much, from memory again.

// CHECK-LABEL: loop.program @large
// CHECK:      tile.kernel @add_kernel({{.*}}) grid [{{[0-9?]+}}] attributes {streams} {
// CHECK:      tile.kernel @mul_kernel({{.*}}) grid [] {
// CHECK:      tile.kernel @exp_kernel({{.*}}) grid [] attributes {streams} {
loop.program @large dims(t: T, u: U) where T >= 1 and U >= 1 {
  %w = loop.parameter "w" : !loop.buffer<4096x1024xf32>
  %b = loop.parameter "b" : !loop.buffer<3xf32>
  %x = loop.output "x" : !loop.buffer<4096x1024xf32>
  %y = loop.output "y" : !loop.buffer<3xf32>
  %z = loop.output "z" : !loop.buffer<3xf32>
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%a = %w) outs(%x) {
      %r = sdg.add %a, %a : (tensor<4096x1024xf32>, tensor<4096x1024xf32>) -> tensor<4096x1024xf32>
      loop.yield %r : tensor<4096x1024xf32>
    }
    loop.for u = 0 to U {
      loop.compute at (t = t, u = u) ins(%a = %b) outs(%y) {
        %r = sdg.mul %a, %a : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
        loop.yield %r : tensor<3xf32>
      }
    }
  }
  loop.compute ins(%a = %b) outs(%z) {
    %r = sdg.exp %a : (tensor<3xf32>) -> tensor<3xf32>
    loop.yield %r : tensor<3xf32>
  }
}

// -----

// What all that an iteration touches is, and no more than 1.25 MB, stays in a cache near by: the weights of a small
// recurrence, of which it takes a row of its inputs each time. Weights of the iteration do not, nor do large ones, nor
// is it known where rows have no fixed number.

// CHECK-LABEL: loop.program @near
// CHECK:      loop.for t = 0 to T {
// CHECK-NEXT:   loop.launch @contract_slice_add({{.*}})[256 * t, t]
// CHECK:      loop.for t = 0 to T {
// CHECK-NEXT:   loop.launch @contract_slice_add_2(
// CHECK:      loop.for t = 0 to T {
// CHECK-NEXT:   loop.launch @contract_kernel(
// CHECK:      loop.for t = 0 to T {
// CHECK-NEXT:   loop.launch @contract_kernel_2(
// CHECK:        loop.launch @sum_kernel(
// CHECK:      tile.kernel @contract_slice_add({{.*}}) grid [] attributes {near, advances = #tile.integers[256], turns} {
// CHECK:      tile.kernel @contract_slice_add_2({{.*}}) grid [] attributes {advances = #tile.integers[65536, 256]} {
// CHECK:      tile.kernel @contract_kernel({{.*}}) grid [16] {
// CHECK:      tile.kernel @contract_kernel_2({{.*}}) grid [] attributes {advances = #tile.integers[256]} {
// CHECK:      tile.kernel @sum_kernel({{.*}}) grid [] attributes {advances = #tile.integers[0, 256]} {
loop.program @near dims(t: T) where T >= 1 {
  %w = loop.parameter "w" : !loop.buffer<256x256xf32>
  %large = loop.parameter "large" : !loop.buffer<1024x1024xf32>
  %many = loop.input "many" : !loop.buffer<(t: full) 256x256xf32>
  %x = loop.input "x" : !loop.buffer<(t: full) 256xf32>
  %h = loop.output "h" : !loop.buffer<(t: full) 256xf32>
  %g = loop.output "g" : !loop.buffer<(t: full) 256xf32>
  %l = loop.output "l" : !loop.buffer<(t: full) 1024xf32>
  %s = loop.output "s" : !loop.buffer<(t: full) 256xf32>
  %o = loop.alloc : !loop.buffer<256xf32>
  %p = loop.alloc : !loop.buffer<1024xf32>
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%a = %o, %b = %w, %xs = %x[0:T]) outs(%o) {
      %m = sdg.contract "k,nk->n" %a, %b : (tensor<256xf32>, tensor<256x256xf32>) -> tensor<256xf32>
      %row = sdg.slice %xs take [t, 0:256] : (tensor<?x256xf32, #sdg.size<T>>) -> tensor<256xf32>
      %r = sdg.add %m, %row : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
      loop.yield %r : tensor<256xf32>
    }
  }
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%a = %o, %b = %many[t], %xs = %x[0:T]) outs(%o) {
      %m = sdg.contract "k,nk->n" %a, %b : (tensor<256xf32>, tensor<256x256xf32>) -> tensor<256xf32>
      %row = sdg.slice %xs take [t, 0:256] : (tensor<?x256xf32, #sdg.size<T>>) -> tensor<256xf32>
      %r = sdg.add %m, %row : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
      loop.yield %r : tensor<256xf32>
    }
  }
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%a = %p, %b = %large) outs(%l[t]) {
      %m = sdg.contract "k,nk->n" %a, %b : (tensor<1024xf32>, tensor<1024x1024xf32>) -> tensor<1024xf32>
      loop.yield %m : tensor<1024xf32>
    }
  }
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%a = %o, %b = %w) outs(%g[t]) {
      %m = sdg.contract "k,nk->n" %a, %b : (tensor<256xf32>, tensor<256x256xf32>) -> tensor<256xf32>
      loop.yield %m : tensor<256xf32>
    }
    loop.compute at (t = t) ins(%xs = %x[0:t + 1]) outs(%s[t]) {
      %m = sdg.sum %xs axes [0] : (tensor<?x256xf32, #sdg.size<t + 1>>) -> tensor<256xf32>
      loop.yield %m : tensor<256xf32>
    }
  }
}

// -----

// Weights that stay near by are read forwards and backwards in turn, as the last scalar says, unless the loop counts by
// twos. Of long rows the kernel knows where those of the next launch lie; of a ring that is no number.

// CHECK-LABEL: loop.program @next
// CHECK:      loop.for t = T - 1 down to 0 {
// CHECK-NEXT:   loop.launch @contract_kernel(%h, %w)[256 * t + 256, 256 * t, t]
// CHECK:      loop.for t = 0 to T step 2 {
// CHECK-NEXT:   loop.launch @contract_kernel_2(%h, %w)[256 * t, 256 * t + 256]
// CHECK:      loop.for t = 0 to T {
// CHECK-NEXT:   loop.launch @exp_kernel(%h, %ring)[256 * t, 256 * (t mod 4)]
// CHECK:      tile.kernel @contract_kernel({{.*}}, %turn: index) {{.*}} {near, advances = #tile.integers[-256, -256], turns} {
// CHECK:      tile.kernel @contract_kernel_2({{.*}}, %n1: index) {{.*}} {near, advances = #tile.integers[512, 512]} {
// CHECK:      tile.kernel @exp_kernel({{.*}}) grid [] attributes {advances = #tile.integers[256, 0]} {
loop.program @next dims(t: T) where T >= 1 {
  %w = loop.parameter "w" : !loop.buffer<256x256xf32>
  %h = loop.output "h" : !loop.buffer<(t: full to T + 1) 256xf32>
  %ring = loop.alloc : !loop.buffer<(t: ring 4) 256xf32>
  loop.for t = T - 1 down to 0 {
    loop.compute at (t = t) ins(%a = %h[t + 1], %b = %w) outs(%h[t]) {
      %m = sdg.contract "k,nk->n" %a, %b : (tensor<256xf32>, tensor<256x256xf32>) -> tensor<256xf32>
      loop.yield %m : tensor<256xf32>
    }
  }
  loop.for t = 0 to T step 2 {
    loop.compute at (t = t) ins(%a = %h[t], %b = %w) outs(%h[t + 1]) {
      %m = sdg.contract "k,nk->n" %a, %b : (tensor<256xf32>, tensor<256x256xf32>) -> tensor<256xf32>
      loop.yield %m : tensor<256xf32>
    }
  }
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%a = %h[t]) outs(%ring[t]) {
      %m = sdg.exp %a : (tensor<256xf32>) -> tensor<256xf32>
      loop.yield %m : tensor<256xf32>
    }
  }
}

// -----

// What is computed element by element and then split into heads is computed of heads: reshapes are of what is read.

// CHECK-LABEL: loop.program @heads
// CHECK:       tile.kernel @reshape_mul_max(
// CHECK-DAG:   tile.view %x offset %n0[] : !tile.ptr<f32> -> !tile.view<4x2x16xf32, [32, 16, 1]>
// CHECK-DAG:   tile.view %scale[] : !tile.ptr<f32> -> !tile.view<2x16xf32, [16, 1]>
loop.program @heads dims(t: T) {
  %scale = loop.input "scale" : !loop.buffer<32xf32>
  %x = loop.input "x" : !loop.buffer<(t: full) 4x32xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 4x2xf32>
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%a = %x[t], %b = %scale) outs(%y[t]) {
      %s = sdg.mul %a, %b : (tensor<4x32xf32>, tensor<32xf32>) -> tensor<4x32xf32>
      %h = sdg.reshape %s : (tensor<4x32xf32>) -> tensor<4x2x16xf32>
      %r = sdg.max %h axes [2] : (tensor<4x2x16xf32>) -> tensor<4x2xf32>
      loop.yield %r : tensor<4x2xf32>
    }
  }
}
