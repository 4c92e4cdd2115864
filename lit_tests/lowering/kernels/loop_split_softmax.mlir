// RUN: tempo-opt %s --check-each=interp -p loop-split-softmax{target=sm_90} --split-input-file | filecheck %s

// Two heads are two programs: 64 shares of the keys give each multiprocessor of an sm_90 nearly one. What comes after the
// sum is computed by the kernel that combines them; a row of scores of -inf alone gives zeros.

// CHECK-LABEL: loop.program @attention
// CHECK-DAG:     %sums = loop.alloc : !loop.buffer<64x2x3x8xf32>
// CHECK-DAG:     %greatest = loop.alloc : !loop.buffer<64x2x3xf32>
// CHECK-DAG:     %totals = loop.alloc : !loop.buffer<64x2x3xf32>
// CHECK:         loop.kernel at (t = t) ins(%{{.*}} = %q[t], %{{.*}} = %k[0:t + 1], %{{.*}} = %v[0:t + 1]) outs(%sums, %greatest, %totals) {
// CHECK-NEXT:      %s = sdg.contract "hgd,nhd->hgn"
// CHECK-NEXT:      %[[SUM:.*]], %[[GREATEST:.*]], %[[TOTAL:.*]] = loop.shares "hgn,nhd->hgd" %s, %{{.*}} into 64 of 64 :
// CHECK-NEXT:      loop.yield %[[SUM]], %[[GREATEST]], %[[TOTAL]]
// CHECK:         loop.kernel at (t = t) ins(%[[R:.*]] = %r[t], %[[S:.*]] = %sums, %[[G:.*]] = %greatest, %[[T:.*]] = %totals) outs(%o[t]) {
// CHECK:           %[[MOST:.*]] = sdg.max %[[G]] axes [0]
// CHECK-NEXT:      %[[NONE:.*]] = sdg.eq %[[MOST]]
// CHECK-NEXT:      %[[SHIFT:.*]] = sdg.select %[[NONE]]
// CHECK-NEXT:      %[[DIFFERENCE:.*]] = sdg.sub %[[G]], %[[SHIFT]]
// CHECK-NEXT:      %[[FACTOR:.*]] = sdg.exp %[[DIFFERENCE]]
// CHECK-NEXT:      sdg.contract "shg,shg->hg" %[[FACTOR]], %[[T]]
// CHECK-NEXT:      sdg.contract "shg,shgd->hgd" %[[FACTOR]], %[[S]]
// CHECK:           sdg.div
// CHECK-NEXT:      sdg.add {{.*}}%[[R]]
loop.program @attention dims(t: T) {
  %q = loop.input "q" : !loop.buffer<(t: full) 2x3x8xf32>
  %k = loop.input "k" : !loop.buffer<(t: full) 2x8xf32>
  %v = loop.input "v" : !loop.buffer<(t: full) 2x8xf32>
  %r = loop.input "r" : !loop.buffer<(t: full) 2x3x8xf32>
  %o = loop.output "o" : !loop.buffer<(t: full) 2x3x8xf32>
  loop.for t = 0 to T {
    loop.kernel at (t = t) ins(%0 = %q[t], %1 = %k[0:t + 1], %2 = %v[0:t + 1], %3 = %r[t]) outs(%o[t]) {
      %s = sdg.contract "hgd,nhd->hgn" %0, %1 : (tensor<2x3x8xf32>, tensor<?x2x8xf32, #sdg.size<t + 1>>) -> tensor<2x3x?xf32, #sdg.size<t + 1>>
      %p = sdg.softmax %s axis 2 : (tensor<2x3x?xf32, #sdg.size<t + 1>>) -> tensor<2x3x?xf32, #sdg.size<t + 1>>
      %m = sdg.contract "hgn,nhd->hgd" %p, %2 : (tensor<2x3x?xf32, #sdg.size<t + 1>>, tensor<?x2x8xf32, #sdg.size<t + 1>>) -> tensor<2x3x8xf32>
      %x = sdg.add %3, %m : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
      loop.yield %x : tensor<2x3x8xf32>
    }
  }
}
