// What stays in one pass.
// RUN: tempo-opt %s -p loop-split-softmax{target=sm_90} --split-input-file | filecheck %s
// RUN: tempo-opt %s -p loop-split-softmax{target=cpu} --split-input-file | filecheck %s --check-prefix=CPU
// RUN: not tempo-opt %s -p loop-split-softmax{target=sm_10} --split-input-file 2>&1 | filecheck %s --check-prefix=TARGET

// TARGET: unknown target 'sm_10'; use one of cpu, gfx942, sm_80, sm_90, triton-interpret
// CPU-NOT: loop.shares

// A window that leaves no two shares four blocks each.

// CHECK-LABEL: loop.program @window
// CHECK-NOT:     loop.shares
loop.program @window dims(t: T) {
  %q = loop.input "q" : !loop.buffer<(t: full) 2x8xf32>
  %k = loop.input "k" : !loop.buffer<(t: full) 8xf32>
  %o = loop.output "o" : !loop.buffer<(t: full) 2x8xf32>
  loop.for t = 0 to T {
    loop.kernel at (t = t) ins(%0 = %q[t], %1 = %k[max(0, t - 510):t + 1]) outs(%o[t]) {
      %s = sdg.contract "gd,nd->gn" %0, %1 : (tensor<2x8xf32>, tensor<?x8xf32, #sdg.size<min(t + 1, 511)>>) -> tensor<2x?xf32, #sdg.size<min(t + 1, 511)>>
      %p = sdg.softmax %s axis 1 : (tensor<2x?xf32, #sdg.size<min(t + 1, 511)>>) -> tensor<2x?xf32, #sdg.size<min(t + 1, 511)>>
      %m = sdg.contract "gn,nd->gd" %p, %1 : (tensor<2x?xf32, #sdg.size<min(t + 1, 511)>>, tensor<?x8xf32, #sdg.size<min(t + 1, 511)>>) -> tensor<2x8xf32>
      loop.yield %m : tensor<2x8xf32>
    }
  }
}

// -----

// 133 heads are programs enough for 132 multiprocessors.

// CHECK-LABEL: loop.program @heads
// CHECK-NOT:     loop.shares
loop.program @heads dims(t: T) {
  %q = loop.input "q" : !loop.buffer<(t: full) 133x2x8xf32>
  %k = loop.input "k" : !loop.buffer<(t: full) 133x8xf32>
  %o = loop.output "o" : !loop.buffer<(t: full) 133x2x8xf32>
  loop.for t = 0 to T {
    loop.kernel at (t = t) ins(%0 = %q[t], %1 = %k[0:t + 1]) outs(%o[t]) {
      %s = sdg.contract "hgd,nhd->hgn" %0, %1 : (tensor<133x2x8xf32>, tensor<?x133x8xf32, #sdg.size<t + 1>>) -> tensor<133x2x?xf32, #sdg.size<t + 1>>
      %p = sdg.softmax %s axis 2 : (tensor<133x2x?xf32, #sdg.size<t + 1>>) -> tensor<133x2x?xf32, #sdg.size<t + 1>>
      %m = sdg.contract "hgn,nhd->hgd" %p, %1 : (tensor<133x2x?xf32, #sdg.size<t + 1>>, tensor<?x133x8xf32, #sdg.size<t + 1>>) -> tensor<133x2x8xf32>
      loop.yield %m : tensor<133x2x8xf32>
    }
  }
}

// -----

// The sum goes into another product, whose kernel it is; and weights that are needed themselves are no weights of a pass.

// CHECK-LABEL: loop.program @after
// CHECK-NOT:     loop.shares
loop.program @after dims(t: T) {
  %q = loop.input "q" : !loop.buffer<(t: full) 2x8xf32>
  %k = loop.input "k" : !loop.buffer<(t: full) 8xf32>
  %w = loop.parameter "w" : !loop.buffer<8x8xf32>
  %o = loop.output "o" : !loop.buffer<(t: full) 2x8xf32>
  %e = loop.output "e" : !loop.buffer<(t: full) 2x8xf32>
  loop.for t = 0 to T {
    loop.kernel at (t = t) ins(%0 = %q[t], %1 = %k[0:t + 1], %2 = %w) outs(%o[t]) {
      %s = sdg.contract "gd,nd->gn" %0, %1 : (tensor<2x8xf32>, tensor<?x8xf32, #sdg.size<t + 1>>) -> tensor<2x?xf32, #sdg.size<t + 1>>
      %p = sdg.softmax %s axis 1 : (tensor<2x?xf32, #sdg.size<t + 1>>) -> tensor<2x?xf32, #sdg.size<t + 1>>
      %m = sdg.contract "gn,nd->gd" %p, %1 : (tensor<2x?xf32, #sdg.size<t + 1>>, tensor<?x8xf32, #sdg.size<t + 1>>) -> tensor<2x8xf32>
      %x = sdg.contract "gd,de->ge" %m, %2 : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
      loop.yield %x : tensor<2x8xf32>
    }
    loop.kernel at (t = t) ins(%0 = %q[t], %1 = %k[0:t + 1]) outs(%e[t]) {
      %s = sdg.contract "gd,nd->gn" %0, %1 : (tensor<2x8xf32>, tensor<?x8xf32, #sdg.size<t + 1>>) -> tensor<2x?xf32, #sdg.size<t + 1>>
      %p = sdg.softmax %s axis 1 : (tensor<2x?xf32, #sdg.size<t + 1>>) -> tensor<2x?xf32, #sdg.size<t + 1>>
      %m = sdg.contract "gn,nd->gd" %p, %1 : (tensor<2x?xf32, #sdg.size<t + 1>>, tensor<?x8xf32, #sdg.size<t + 1>>) -> tensor<2x8xf32>
      %t = sdg.sum %p axes [1] : (tensor<2x?xf32, #sdg.size<t + 1>>) -> tensor<2xf32>
      %c = sdg.reshape %t : (tensor<2xf32>) -> tensor<2x1xf32>
      %x = sdg.add %m, %c : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
      loop.yield %x : tensor<2x8xf32>
    }
  }
}
