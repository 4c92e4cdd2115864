// A loop whose last values alone are needed runs inside of a kernel; one whose iterations are read stays.
// RUN: tempo-opt %s --check-each -p loop-form-kernels --split-input-file | filecheck %s

// CHECK-LABEL: loop.program @prefix
// CHECK:         loop.for t = 0 to T {
// CHECK-NEXT:      loop.kernel at (t = t) ins(%x_1 = %x[4 * (t floordiv 4):t + 1], %x_2 = %x[0:4 * (t floordiv 4)]) outs(%y[t]) {
// CHECK-NEXT:        %first = sdg.max %x_1 axes [0] : (tensor<?x8xf32, #sdg.size<t mod 4 + 1>>) -> tensor<8xf32>
// CHECK-NEXT:        %y_1 = loop.fold m = 0 to t floordiv 4 carry(%first_1 = %first) reads(%x_3 = %x_2) {
// CHECK-NEXT:          %x_4 = sdg.slice %x_3 take [4 * m:4 * m + 4, 0:8] : (tensor<?x8xf32, #sdg.size<4 * (t floordiv 4)>>) -> tensor<4x8xf32>
// CHECK-NEXT:          %r = sdg.max %x_4 axes [0] : (tensor<4x8xf32>) -> tensor<8xf32>
// CHECK-NEXT:          %r_1 = sdg.maximum %first_1, %r : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:          loop.yield %r_1 : tensor<8xf32>
// CHECK-NEXT:        }
// CHECK-NEXT:        loop.yield %y_1 : tensor<8xf32>
// CHECK-NEXT:      }
// CHECK-NEXT:    }
loop.program @prefix dims(t: T, m: T floordiv 4 + 1) {
  %x = loop.input "x" : !loop.buffer<(t: full) 8xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 8xf32>
  %first = loop.alloc : !loop.buffer<(t: full) 8xf32>
  %total = loop.alloc : !loop.buffer<(t: full, m: full) 8xf32>
  %tile = loop.alloc : !loop.buffer<(t: full, m: full) 8xf32>
  %next = loop.alloc : !loop.buffer<(t: full, m: full) 8xf32>
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%a = %x[4 * (t floordiv 4):t + 1]) outs(%first[t]) {
      %r = sdg.max %a axes [0] : (tensor<?x8xf32, #sdg.size<t mod 4 + 1>>) -> tensor<8xf32>
      loop.yield %r : tensor<8xf32>
    }
    loop.for m = 0 to t floordiv 4 + 1 {
      loop.if m = 0 {
        loop.compute at (t = t, m = m) ins(%a = %first[t]) outs(%total[t, m]) { loop.yield %a : tensor<8xf32> }
      } else {
        loop.compute at (t = t, m = m) ins(%a = %next[t, m - 1]) outs(%total[t, m]) { loop.yield %a : tensor<8xf32> }
      }
      loop.if t > 4 * m + 3 {
        loop.compute at (t = t, m = m) ins(%a = %x[4 * m:4 * m + 4]) outs(%tile[t, m]) {
          %r = sdg.max %a axes [0] : (tensor<4x8xf32>) -> tensor<8xf32>
          loop.yield %r : tensor<8xf32>
        }
        loop.compute at (t = t, m = m) ins(%a = %total[t, m], %b = %tile[t, m]) outs(%next[t, m]) {
          %r = sdg.maximum %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
          loop.yield %r : tensor<8xf32>
        }
      }
    }
    loop.compute at (t = t) ins(%a = %total[t, t floordiv 4]) outs(%y[t]) { loop.yield %a : tensor<8xf32> }
  }
}

// -----

// the caller sees the value of every iteration
// CHECK-LABEL: loop.program @sums
// CHECK:         loop.for m = 0 to M {
loop.program @sums dims(m: M) {
  %x = loop.input "x" : !loop.buffer<(m: full) 8xf32>
  %y = loop.output "y" : !loop.buffer<(m: full) 8xf32>
  %zero = loop.alloc : !loop.buffer<8xf32>
  %before = loop.alloc : !loop.buffer<(m: full) 8xf32>
  loop.compute outs(%zero) {
    %r = sdg.constant 0.0 : tensor<8xf32>
    loop.yield %r : tensor<8xf32>
  }
  loop.for m = 0 to M {
    loop.if m = 0 {
      loop.compute at (m = m) ins(%a = %zero) outs(%before[m]) { loop.yield %a : tensor<8xf32> }
    } else {
      loop.compute at (m = m) ins(%a = %y[m - 1]) outs(%before[m]) { loop.yield %a : tensor<8xf32> }
    }
    loop.compute at (m = m) ins(%a = %before[m], %b = %x[m]) outs(%y[m]) {
      %r = sdg.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      loop.yield %r : tensor<8xf32>
    }
  }
}

// -----

// the step that is left out has no last iteration
// CHECK-LABEL: loop.program @left_out
// CHECK:         loop.for m = 0 to t + 1 {
// CHECK-LABEL: loop.program @all_steps
// CHECK:         loop.fold m = 0 to t carry
loop.program @left_out dims(t: T, m: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 8xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 8xf32>
  %total = loop.alloc : !loop.buffer<(t: full, m: full) 8xf32>
  %next = loop.alloc : !loop.buffer<(t: full, m: full) 8xf32>
  loop.for t = 0 to T {
    loop.for m = 0 to t + 1 {
      loop.if t >= 2 or t = 0 {
        loop.if m = 0 {
          loop.compute at (t = t, m = m) ins(%a = %x[t]) outs(%total[t, m]) { loop.yield %a : tensor<8xf32> }
        } else {
          loop.compute at (t = t, m = m) ins(%a = %next[t, m - 1]) outs(%total[t, m]) { loop.yield %a : tensor<8xf32> }
        }
      }
      loop.if t >= 2 and m < t {
        loop.compute at (t = t, m = m) ins(%a = %total[t, m], %b = %x[m]) outs(%next[t, m]) {
          %r = sdg.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
          loop.yield %r : tensor<8xf32>
        }
      }
    }
    loop.if t >= 2 or t = 0 {
      loop.compute at (t = t) ins(%a = %total[t, t]) outs(%y[t]) { loop.yield %a : tensor<8xf32> }
    }
  }
}
loop.program @all_steps dims(t: T, m: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 8xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 8xf32>
  %total = loop.alloc : !loop.buffer<(t: full, m: full) 8xf32>
  %next = loop.alloc : !loop.buffer<(t: full, m: full) 8xf32>
  loop.for t = 0 to T {
    loop.for m = 0 to t + 1 {
      loop.if m = 0 {
        loop.compute at (t = t, m = m) ins(%a = %x[t]) outs(%total[t, m]) { loop.yield %a : tensor<8xf32> }
      } else {
        loop.compute at (t = t, m = m) ins(%a = %next[t, m - 1]) outs(%total[t, m]) { loop.yield %a : tensor<8xf32> }
      }
      loop.if m < t {
        loop.compute at (t = t, m = m) ins(%a = %total[t, m], %b = %x[m]) outs(%next[t, m]) {
          %r = sdg.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
          loop.yield %r : tensor<8xf32>
        }
      }
    }
    loop.compute at (t = t) ins(%a = %total[t, t]) outs(%y[t]) { loop.yield %a : tensor<8xf32> }
  }
}

// -----

// what only iterations read is there in all steps, or there are iterations in all of them
// CHECK-LABEL: loop.program @not_made
// CHECK:         loop.for m = 0 to t + 1 {
// CHECK-LABEL: loop.program @made
// CHECK:         loop.fold m = 0 to t carry
loop.program @not_made dims(t: T, m: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 8xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 8xf32>
  %e = loop.alloc : !loop.buffer<(t: full) 8xf32>
  %total = loop.alloc : !loop.buffer<(t: full, m: full) 8xf32>
  %next = loop.alloc : !loop.buffer<(t: full, m: full) 8xf32>
  loop.for t = 1 to T {
    loop.compute at (t = t) ins(%a = %x[t]) outs(%e[t]) {
      %r = sdg.exp %a : (tensor<8xf32>) -> tensor<8xf32>
      loop.yield %r : tensor<8xf32>
    }
  }
  loop.for t = 0 to T {
    loop.for m = 0 to t + 1 {
      loop.if m = 0 {
        loop.compute at (t = t, m = m) ins(%a = %x[t]) outs(%total[t, m]) { loop.yield %a : tensor<8xf32> }
      } else {
        loop.compute at (t = t, m = m) ins(%a = %next[t, m - 1]) outs(%total[t, m]) { loop.yield %a : tensor<8xf32> }
      }
      loop.if m < t {
        loop.compute at (t = t, m = m) ins(%a = %total[t, m], %b = %e[t]) outs(%next[t, m]) {
          %r = sdg.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
          loop.yield %r : tensor<8xf32>
        }
      }
    }
    loop.compute at (t = t) ins(%a = %total[t, t]) outs(%y[t]) { loop.yield %a : tensor<8xf32> }
  }
}
loop.program @made dims(t: T, m: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 8xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 8xf32>
  %e = loop.alloc : !loop.buffer<(t: full) 8xf32>
  %total = loop.alloc : !loop.buffer<(t: full, m: full) 8xf32>
  %next = loop.alloc : !loop.buffer<(t: full, m: full) 8xf32>
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%a = %x[t]) outs(%e[t]) {
      %r = sdg.exp %a : (tensor<8xf32>) -> tensor<8xf32>
      loop.yield %r : tensor<8xf32>
    }
  }
  loop.for t = 0 to T {
    loop.for m = 0 to t + 1 {
      loop.if m = 0 {
        loop.compute at (t = t, m = m) ins(%a = %x[t]) outs(%total[t, m]) { loop.yield %a : tensor<8xf32> }
      } else {
        loop.compute at (t = t, m = m) ins(%a = %next[t, m - 1]) outs(%total[t, m]) { loop.yield %a : tensor<8xf32> }
      }
      loop.if m < t {
        loop.compute at (t = t, m = m) ins(%a = %total[t, m], %b = %e[t]) outs(%next[t, m]) {
          %r = sdg.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
          loop.yield %r : tensor<8xf32>
        }
      }
    }
    loop.compute at (t = t) ins(%a = %total[t, t]) outs(%y[t]) { loop.yield %a : tensor<8xf32> }
  }
}
