// Loops whose steps stay one by one, each with the reason.
// RUN: tempo-opt %s --remarks -p loop-block-queries --split-input-file 2>&1 | filecheck %s
// RUN: tempo-opt %s -p loop-lower-kernels{target=sm_90} --split-input-file | filecheck %s --check-prefix=GPU

// GPU-NOT: attend

// A ring holds a window of the keys.

// CHECK: its steps are computed one by one: memory holds a window alone
loop.program @ring dims(t: T) {
  %q = loop.input "q" : !loop.buffer<(t: full) 8xf32>
  %k = loop.alloc : !loop.buffer<(t: ring 4) 8xf32>
  %o = loop.output "o" : !loop.buffer<(t: full) 8xf32>
  loop.for t = 0 to T {
    loop.kernel at (t = t) ins(%0 = %q[t], %1 = %k[max(0, t - 3):t + 1]) outs(%o[t]) {
      %s = sdg.contract "d,nd->n" %0, %1 : (tensor<8xf32>, tensor<?x8xf32, #sdg.size<min(t + 1, 4)>>) -> tensor<?xf32, #sdg.size<min(t + 1, 4)>>
      %p = sdg.softmax %s axis 0 : (tensor<?xf32, #sdg.size<min(t + 1, 4)>>) -> tensor<?xf32, #sdg.size<min(t + 1, 4)>>
      %m = sdg.contract "n,nd->d" %p, %1 : (tensor<?xf32, #sdg.size<min(t + 1, 4)>>, tensor<?x8xf32, #sdg.size<min(t + 1, 4)>>) -> tensor<8xf32>
      loop.yield %m : tensor<8xf32>
    }
  }
}

// -----

// A step reads what the steps before it wrote.

// CHECK: its steps are computed one by one: a step reads what another one writes
loop.program @recurrent dims(t: T) {
  %q = loop.input "q" : !loop.buffer<(t: full) 8xf32>
  %o = loop.output "o" : !loop.buffer<(t: full) 8xf32>
  loop.for t = 0 to T {
    loop.kernel at (t = t) ins(%0 = %q[t], %1 = %o[0:t]) outs(%o[t]) {
      %s = sdg.contract "d,nd->n" %0, %1 : (tensor<8xf32>, tensor<?x8xf32, #sdg.size<t>>) -> tensor<?xf32, #sdg.size<t>>
      %p = sdg.softmax %s axis 0 : (tensor<?xf32, #sdg.size<t>>) -> tensor<?xf32, #sdg.size<t>>
      %m = sdg.contract "n,nd->d" %p, %1 : (tensor<?xf32, #sdg.size<t>>, tensor<?x8xf32, #sdg.size<t>>) -> tensor<8xf32>
      loop.yield %m : tensor<8xf32>
    }
  }
}

// -----

// Keys are a range that grows by two rows a step, which is no shift of it.

// CHECK: its steps are computed one by one: 2 * t is no shift of the step
loop.program @faster dims(t: T) {
  %q = loop.input "q" : !loop.buffer<(t: full) 8xf32>
  %k = loop.input "k" : !loop.buffer<?x8xf32, [2 * T]>
  %o = loop.output "o" : !loop.buffer<(t: full) 8xf32>
  loop.for t = 0 to T {
    loop.kernel at (t = t) ins(%0 = %q[t], %1 = %k) outs(%o[t]) {
      %n = sdg.slice %1 take [0:2 * t, 0:8] : (tensor<?x8xf32, #sdg.size<2 * T>>) -> tensor<?x8xf32, #sdg.size<2 * t>>
      %s = sdg.contract "d,nd->n" %0, %n : (tensor<8xf32>, tensor<?x8xf32, #sdg.size<2 * t>>) -> tensor<?xf32, #sdg.size<2 * t>>
      %p = sdg.softmax %s axis 0 : (tensor<?xf32, #sdg.size<2 * t>>) -> tensor<?xf32, #sdg.size<2 * t>>
      %m = sdg.contract "n,nd->d" %p, %n : (tensor<?xf32, #sdg.size<2 * t>>, tensor<?x8xf32, #sdg.size<2 * t>>) -> tensor<8xf32>
      loop.yield %m : tensor<8xf32>
    }
  }
}

// -----

// The greatest score is needed too, of which a kernel of all steps would have to hold all.

// CHECK: its steps are computed one by one: sdg.max along keys has no form for all steps at once
loop.program @scores dims(t: T) {
  %q = loop.input "q" : !loop.buffer<(t: full) 8xf32>
  %k = loop.input "k" : !loop.buffer<(t: full) 8xf32>
  %o = loop.output "o" : !loop.buffer<(t: full) 8xf32>
  loop.for t = 0 to T {
    loop.kernel at (t = t) ins(%0 = %q[t], %1 = %k[0:t + 1]) outs(%o[t]) {
      %s = sdg.contract "d,nd->n" %0, %1 : (tensor<8xf32>, tensor<?x8xf32, #sdg.size<t + 1>>) -> tensor<?xf32, #sdg.size<t + 1>>
      %p = sdg.softmax %s axis 0 : (tensor<?xf32, #sdg.size<t + 1>>) -> tensor<?xf32, #sdg.size<t + 1>>
      %m = sdg.contract "n,nd->d" %p, %1 : (tensor<?xf32, #sdg.size<t + 1>>, tensor<?x8xf32, #sdg.size<t + 1>>) -> tensor<8xf32>
      %x = sdg.max %s axes [0] : (tensor<?xf32, #sdg.size<t + 1>>) -> tensor<f32>
      %y = sdg.add %m, %x : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
      loop.yield %y : tensor<8xf32>
    }
  }
}
