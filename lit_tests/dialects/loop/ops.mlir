// RUN: tempo-opt %s --split-input-file | tempo-opt --split-input-file | filecheck %s
// RUN: tempo-opt %s --split-input-file --print-op-generic | tempo-opt --split-input-file | filecheck %s

// CHECK-LABEL: loop.program @rnn dims(i: I, t: T) where T >= 1 {
// CHECK-NEXT:    %x = loop.input "x" : !loop.buffer<(i: full, t: full) 16x64xf32>
// CHECK-NEXT:    %w = loop.parameter "w" : !loop.buffer<64x64xf32>
// CHECK-NEXT:    %h = loop.alloc : !loop.buffer<(t: full) 16x64xf32>
// CHECK-NEXT:    %y = loop.output "y" : !loop.buffer<(i: full, t: full to T + 1) 16x64xf32>
// CHECK-NEXT:    loop.for i = 0 to I {
// CHECK-NEXT:      loop.for t = 0 to T {
// CHECK-NEXT:        loop.if t = 0 {
// CHECK-NEXT:          loop.compute at (i = i, t = t) ins(%a = %x[i, t]) outs(%h[t]) {
// CHECK-NEXT:            loop.yield %a : tensor<16x64xf32>
// CHECK-NEXT:          }
// CHECK-NEXT:        } else {
// CHECK-NEXT:          loop.compute at (i = i, t = t) ins(%a = %h[t - 1], %b = %w) outs(%h[t]) {
// CHECK-NEXT:            %r = sdg.contract "bk,kn->bn" %a, %b : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:            loop.yield %r : tensor<16x64xf32>
// CHECK-NEXT:          }
// CHECK-NEXT:        }
// CHECK-NEXT:      }
// CHECK-NEXT:      loop.for t = T - 1 down to 0 {
// CHECK-NEXT:        loop.compute at (i = i, t = t) ins(%a = %h[t]) outs(%y[i, t]) {
// CHECK-NEXT:          loop.yield %a : tensor<16x64xf32>
// CHECK-NEXT:        }
// CHECK-NEXT:        loop.free %h[t]
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:  }
loop.program @rnn dims(i: I, t: T) where T >= 1 {
  %x = loop.input "x" : !loop.buffer<(i: full, t: full) 16x64xf32>
  %w = loop.parameter "w" : !loop.buffer<64x64xf32>
  %h = loop.alloc : !loop.buffer<(t: full) 16x64xf32>
  %y = loop.output "y" : !loop.buffer<(i: full, t: full to T + 1) 16x64xf32>
  loop.for i = 0 to I {
    loop.for t = 0 to T {
      loop.if t = 0 {
        loop.compute at (i = i, t = t) ins(%a = %x[i, t]) outs(%h[t]) {
          loop.yield %a : tensor<16x64xf32>
        }
      } else {
        loop.compute at (i = i, t = t) ins(%a = %h[t - 1], %b = %w) outs(%h[t]) {
          %r = sdg.contract "bk,kn->bn" %a, %b : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
          loop.yield %r : tensor<16x64xf32>
        }
      }
    }
    loop.for t = T - 1 down to 0 {
      loop.compute at (i = i, t = t) ins(%a = %h[t]) outs(%y[i, t]) {
        loop.yield %a : tensor<16x64xf32>
      }
      loop.free %h[t]
    }
  }
}

// -----

// CHECK-LABEL: loop.program @window dims(t: T) {
// CHECK-NEXT:    %k = loop.alloc : !loop.buffer<(t: ring 64) 4xf32>
// CHECK-NEXT:    %heads = loop.alloc : !loop.buffer<(t: full to T + 1 inside 1) 4x8xf32>
// CHECK-NEXT:    %ring = loop.alloc : !loop.buffer<(t: ring 8 inside 2) 4x8x2xf32>
// CHECK-NEXT:    %s = loop.alloc : !loop.buffer<?xf32, [min(T, 64)]>
// CHECK-NEXT:    %all = loop.alloc : !loop.buffer<(t: growing) ?xf32, [t + 1]>
// CHECK-NEXT:    %action = loop.alloc : !loop.buffer<i64>
// CHECK-NEXT:    %done = loop.alloc : !loop.buffer<(t: full) i1>
// CHECK-NEXT:    loop.for t = 0 to T step 2 until %done[t] {
// CHECK-NEXT:      loop.host @env::@step at (t = t) ins(%action) outs(%done[t])
// CHECK-NEXT:      loop.host @env::@score vectorized @scores along (t) over (t: 0 to t + 1) ins(%k[0:t + 1])
// CHECK-NEXT:      loop.host @env::@close
// CHECK-NEXT:      loop.kernel ins(%a = %k[max(0, t - 63):t + 1]) outs(%s : tensor<?xf32, #sdg.size<min(t + 1, 64)>>, %all[t]) {
// CHECK:             loop.yield %0, %1 : tensor<?xf32, #sdg.size<min(t + 1, 64)>>, tensor<?xf32, #sdg.size<t + 1>>
// CHECK-NEXT:      }
// CHECK-NEXT:      loop.launch @attention(%k, %s)[t, T - 1]
// CHECK-NEXT:      loop.launch @plain(%k)
// CHECK-NEXT:      loop.free %k[t - 63]
// CHECK-NEXT:    }
// CHECK-NEXT:  }
loop.program @window dims(t: T) {
  %k = loop.alloc : !loop.buffer<(t: ring 64) 4xf32>
  %heads = loop.alloc : !loop.buffer<(t: full to T + 1 inside 1) 4x8xf32>
  %ring = loop.alloc : !loop.buffer<(t: ring 8 inside 2) 4x8x2xf32>
  %s = loop.alloc : !loop.buffer<?xf32, [min(T, 64)]>
  %all = loop.alloc : !loop.buffer<(t: growing) ?xf32, [t + 1]>
  %action = loop.alloc : !loop.buffer<i64>
  %done = loop.alloc : !loop.buffer<(t: full) i1>
  loop.for t = 0 to T step 2 until %done[t] {
    loop.host @env::@step at (t = t) ins(%action) outs(%done[t])
    loop.host @env::@score vectorized @scores along (t) over (t: 0 to t + 1) ins(%k[0:t + 1])
    loop.host @env::@close
    loop.kernel ins(%a = %k[max(0, t - 63):t + 1]) outs(%s : tensor<?xf32, #sdg.size<min(t + 1, 64)>>, %all[t]) {
      %0 = sdg.constant 0.0 : tensor<?xf32, #sdg.size<min(t + 1, 64)>>
      %1 = sdg.constant 0.0 : tensor<?xf32, #sdg.size<t + 1>>
      loop.yield %0, %1 : tensor<?xf32, #sdg.size<min(t + 1, 64)>>, tensor<?xf32, #sdg.size<t + 1>>
    }
    loop.launch @attention(%k, %s)[t, T - 1]
    loop.launch @plain(%k)
    loop.free %k[t - 63]
  }
}

// -----

// rows that are not needed for now lie in the memory of the host
loop.program @swapped dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 4xf32>
  %h = loop.alloc {dealloc, swap = 4 : i64} : !loop.buffer<(t: ring 2) 4xf32>
  %h_host = loop.alloc {host} : !loop.buffer<(t: full) 4xf32>
  %h_back = loop.alloc : !loop.buffer<(t: ring 2) 4xf32>
  loop.for t = 0 to T {
    loop.compute ins(%a = %x[t]) outs(%h[t]) { loop.yield %a : tensor<4xf32> }
    loop.offload %h[t] to %h_host[t]
  }
  loop.for t = T - 1 down to 0 {
    loop.fetch %h_host[t] to %h_back[t]
    loop.launch @both(%h, %h_back)[t] reads(%h_back[t], %h_back[0:t]) writes(%h[t])
    loop.launch @one(%h) writes(%h[t])
    loop.free %h_host[t]
  }
}

// CHECK-LABEL: loop.program @swapped
// CHECK:         %h = loop.alloc {dealloc, swap = 4 : i64} : !loop.buffer<(t: ring 2) 4xf32>
// CHECK-NEXT:    %h_host = loop.alloc {host} : !loop.buffer<(t: full) 4xf32>
// CHECK:         loop.offload %h[t] to %h_host[t]
// CHECK:         loop.fetch %h_host[t] to %h_back[t]
// CHECK-NEXT:      loop.launch @both(%h, %h_back)[t] reads(%h_back[t], %h_back[0:t]) writes(%h[t])
// CHECK-NEXT:      loop.launch @one(%h) writes(%h[t])

// -----

// CHECK-LABEL: loop.program @persistent dims(t: T) {
// CHECK-NEXT:    %h = loop.alloc
// CHECK-NEXT:    loop.for t = 0 to T in programs of 16 rows {
// CHECK-NEXT:      loop.free %h[t]
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.for t = T - 1 down to 0 in one program {
// CHECK-NEXT:      loop.free %h[t]
loop.program @persistent dims(t: T) {
  %h = loop.alloc : !loop.buffer<(t: full) 64xf32>
  loop.for t = 0 to T in programs of 16 rows {
    loop.free %h[t]
  }
  loop.for t = T - 1 down to 0 in one program {
    loop.free %h[t]
  }
}

// -----

// CHECK-LABEL: loop.program @parts
// CHECK:         loop.kernel ins(%a = %x) outs(%y) {
// CHECK-NEXT:      %s = sdg.sum %a axes [0] : (tensor<64x4xf32>) -> tensor<4xf32>
// CHECK-NEXT:      %p = loop.parts %s into 8 : tensor<4xf32>
// CHECK-NEXT:      loop.yield %p : tensor<8x4xf32>
loop.program @parts dims() {
  %x = loop.input "x" : !loop.buffer<64x4xf32>
  %y = loop.output "y" : !loop.buffer<8x4xf32>
  loop.kernel ins(%a = %x) outs(%y) {
    %s = sdg.sum %a axes [0] : (tensor<64x4xf32>) -> tensor<4xf32>
    %p = loop.parts %s into 8 : tensor<4xf32>
    loop.yield %p : tensor<8x4xf32>
  }
}
