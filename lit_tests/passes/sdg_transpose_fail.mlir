// What a product reads as it lies.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-transpose | filecheck %s

// few rows, few columns, and what varies with the product
// CHECK-LABEL: sdg.program @small
// CHECK-NOT:     sdg.transpose
sdg.program @small dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<31x2xf32>
  %y = sdg.input "y" in (t) : tensor<32x2xf32>
  %u = sdg.input "u" : tensor<20x2xf32>
  %v = sdg.input "v" : tensor<15x2xf32>
  %w = sdg.input "w" in (t) : tensor<20x2xf32>
  %0 = sdg.contract "bk,nk->bn" %x[t], %u in (t) : (tensor<31x2xf32>, tensor<20x2xf32>) -> tensor<31x20xf32>
  %1 = sdg.contract "bk,nk->bn" %y[t], %v in (t) : (tensor<32x2xf32>, tensor<15x2xf32>) -> tensor<32x15xf32>
  %2 = sdg.contract "bk,nk->bn" %y[t], %w[t] in (t) : (tensor<32x2xf32>, tensor<20x2xf32>) -> tensor<32x20xf32>
  sdg.output "0" %0[t] in (t) : tensor<31x20xf32>
  sdg.output "1" %1[t] in (t) : tensor<32x15xf32>
  sdg.output "2" %2[t] in (t) : tensor<32x20xf32>
}

// -----

// a matrix that lies along the columns of the result, one of another place in the loop, a batch of them, bf16
// CHECK-LABEL: sdg.program @others
// CHECK-NOT:     sdg.transpose
sdg.program @others dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<32x2xf32>
  %a = sdg.input "a" : tensor<2x20xf32>
  %b = sdg.input "b" in (t) : tensor<20x2xf32>
  %c = sdg.input "c" : tensor<32x20x2xf32>
  %d = sdg.input "d" : tensor<20x2xbf16>
  %0 = sdg.contract "bk,kn->bn" %x[t], %a in (t) : (tensor<32x2xf32>, tensor<2x20xf32>) -> tensor<32x20xf32>
  %1 = sdg.contract "bk,nk->bn" %x[t], %b[t - 1] in (t: 1 to T) : (tensor<32x2xf32>, tensor<20x2xf32>) -> tensor<32x20xf32>
  %2 = sdg.contract "bk,bnk->bn" %x[t], %c in (t) : (tensor<32x2xf32>, tensor<32x20x2xf32>) -> tensor<32x20xf32>
  %3 = sdg.contract "bk,nk->bn" %x[t], %d in (t) : (tensor<32x2xf32>, tensor<20x2xbf16>) -> tensor<32x20xf32>
  sdg.output "0" %0[t] in (t) : tensor<32x20xf32>
  sdg.output "1" %1[t] in (t: 1 to T) : tensor<32x20xf32>
  sdg.output "2" %2[t] in (t) : tensor<32x20xf32>
  sdg.output "3" %3[t] in (t) : tensor<32x20xf32>
}

// -----

// as many rows as a call says, a matrix whose rows are columns of the result, and a large one
// CHECK-LABEL: sdg.program @rows
// CHECK-NOT:     sdg.transpose
sdg.program @rows dims(t: T, n: N) {
  %x = sdg.input "x" in (t, n) : tensor<2xf32>
  %y = sdg.input "y" in (t) : tensor<32x2xf32>
  %w = sdg.input "w" : tensor<20x2xf32>
  %0 = sdg.contract "bk,nk->bn" %x[t, 0:N], %w in (t) : (tensor<2xf32>, tensor<20x2xf32>) -> tensor<?x20xf32, #sdg.size<N>>
  %1 = sdg.contract "bk,nk->nb" %y[t], %w in (t) : (tensor<32x2xf32>, tensor<20x2xf32>) -> tensor<20x32xf32>
  %u = sdg.input "u" in (t) : tensor<32x128xf32>
  %v = sdg.input "v" : tensor<513x128xf32>
  %2 = sdg.contract "bk,nk->bn" %u[t], %v in (t) : (tensor<32x128xf32>, tensor<513x128xf32>) -> tensor<32x513xf32>
  sdg.output "0" %0[t] in (t) : tensor<?x20xf32, #sdg.size<N>>
  sdg.output "1" %1[t] in (t) : tensor<20x32xf32>
  sdg.output "2" %2[t] in (t) : tensor<32x513xf32>
}
