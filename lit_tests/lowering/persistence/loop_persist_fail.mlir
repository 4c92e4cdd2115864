// RUN: tempo-opt %s --split-input-file -p loop-persist | filecheck %s
// RUN: tempo-opt %s --split-input-file -p loop-persist --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// A step is a great product, whose columns many programs share, and its rows are few.

// REMARK: remark: its kernels are launched in each iteration: 16777216 multiplications in an iteration are too many for a program
// CHECK-LABEL: @large
// CHECK: loop.for t = 1 to T {
loop.program @large dims(t: T) {
  %w = loop.parameter "w" : !loop.buffer<2048x2048xf32>
  %h = loop.output "h" : !loop.buffer<(t: full) 4x2048xf32>
  loop.for t = 1 to T {
    loop.compute at (t = t) ins(%a = %h[t - 1], %b = %w) outs(%h[t]) {
      %0 = sdg.contract "bk,kn->bn" %a, %b : (tensor<4x2048xf32>, tensor<2048x2048xf32>) -> tensor<4x2048xf32>
      loop.yield %0 : tensor<4x2048xf32>
    }
  }
}

// -----

// Every row is made of all rows, and one program has too much of them.

// REMARK: remark: its kernels are launched in each iteration: sdg.sum mixes the rows of %a, and 8388608 bytes read and written in an iteration are too many for a program
// CHECK-LABEL: @mixed
// CHECK: loop.for t = 0 to T {
loop.program @mixed dims(t: T) {
  %h = loop.output "h" : !loop.buffer<1048576xf32>
  loop.for t = 0 to T {
    loop.kernel at (t = t) ins(%a = %h) outs(%h) {
      %0 = sdg.sum %a axes [0] : (tensor<1048576xf32>) -> tensor<f32>
      %1 = sdg.add %a, %0 : (tensor<1048576xf32>, tensor<f32>) -> tensor<1048576xf32>
      loop.yield %1 : tensor<1048576xf32>
    }
  }
}

// -----

// REMARK: remark: its kernels are launched in each iteration: it holds loop.host
// CHECK-LABEL: @hosted
// CHECK: loop.for t = 0 to T {
loop.program @hosted dims(t: T) {
  %h = loop.output "h" : !loop.buffer<(t: full) 4xf32>
  %g = loop.alloc : !loop.buffer<4xf32>
  loop.for t = 0 to T {
    loop.host @env::@step at (t = t) outs(%g)
    loop.compute at (t = t) ins(%a = %g) outs(%h[t]) {
      loop.yield %a : tensor<4xf32>
    }
  }
}

// -----

// REMARK: remark: its kernels are launched in each iteration: a step of it may fail
// CHECK-LABEL: @failing
// CHECK: loop.for t = 0 to T {
loop.program @failing dims(t: T) {
  %a = loop.input "a" : !loop.buffer<(t: full) 4xi64>
  %h = loop.output "h" : !loop.buffer<(t: full) 4xi64>
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%x = %a[t]) outs(%h[t]) {
      %0 = sdg.floordiv %x, %x : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
      loop.yield %0 : tensor<4xi64>
    }
  }
}

// -----

// REMARK: remark: its kernels are launched in each iteration: data ends it
// CHECK-LABEL: @ends
// CHECK: loop.for t = 0 to T until %done[t] giving T {
loop.program @ends dims(t: T) {
  %done = loop.input "done" : !loop.buffer<(t: full) i1>
  %h = loop.output "h" : !loop.buffer<(t: full) i1>
  loop.for t = 0 to T until %done[t] giving T {
    loop.compute at (t = t) ins(%x = %done[t]) outs(%h[t]) {
      loop.yield %x : tensor<i1>
    }
  }
}

// -----

// Attention over the steps so far: more work in each iteration.

// REMARK: remark: its kernels are launched in each iteration: %a has t + 1 rows, and may have many
// CHECK-LABEL: @growing
// CHECK: loop.for t = 0 to T {
loop.program @growing dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 4xf32>
  %s = loop.output "s" : !loop.buffer<(t: full) 4xf32>
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%a = %x[0:t + 1]) outs(%s[t]) {
      %0 = sdg.sum %a axes [0] : (tensor<?x4xf32, #sdg.size<t + 1>>) -> tensor<4xf32>
      loop.yield %0 : tensor<4xf32>
    }
  }
}

// -----

// The state is read and written in the array of the caller, under two names.

// REMARK: remark: its kernels are launched in each iteration: it reads and writes the memory of the state 's'
// CHECK-LABEL: @donated
// CHECK: loop.for t = 0 to T {
loop.program @donated dims(t: T) {
  %first = loop.parameter "s" : !loop.buffer<4xf32>
  %last = loop.output "s" {donates} : !loop.buffer<4xf32>
  loop.for t = 0 to T {
    loop.if t = 0 {
      loop.compute at (t = t) ins(%a = %first) outs(%last) {
        %0 = sdg.exp %a : (tensor<4xf32>) -> tensor<4xf32>
        loop.yield %0 : tensor<4xf32>
      }
    }
  }
}
