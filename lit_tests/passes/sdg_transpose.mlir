// A matrix that is the same in all steps, read along what they sum over, is transposed once before the loop.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-transpose | filecheck %s

// whichever operand it is; two products of one matrix read it transposed once
sdg.program @layers dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<40x3xf32>
  %w = sdg.input "w" : tensor<17x3xf32>
  %y = sdg.contract "bk,nk->bn" %x[t], %w in (t) : (tensor<40x3xf32>, tensor<17x3xf32>) -> tensor<40x17xf32>
  %z = sdg.contract "nk,bk->bn" %w, %x[t] in (t) : (tensor<17x3xf32>, tensor<40x3xf32>) -> tensor<40x17xf32>
  sdg.output "y" %y[t] in (t) : tensor<40x17xf32>
  sdg.output "z" %z[t] in (t) : tensor<40x17xf32>
}

// CHECK-LABEL: sdg.program @layers
// CHECK:         %0 = sdg.transpose %w permutation [1, 0] : (tensor<17x3xf32>) -> tensor<3x17xf32>
// CHECK-NEXT:    %y = sdg.contract "bk,kn->bn" %x[t], %0 in (t) :
// CHECK-NEXT:    %z = sdg.contract "kn,bk->bn" %0, %x[t] in (t) :

// -----

// of each iteration once, for the steps of it; rows of two axes; of the first of several updates
sdg.program @iterations dims(i: I, t: T, e: 3) {
  %x = sdg.input "x" in (i, t) : tensor<4x9x3xf64>
  %w = sdg.input "w" in (i) : tensor<16x3xf64>
  %y = sdg.contract "abk,nk->abn" %x[i, t], %w[i] in (i, t: 1 to T) : (tensor<4x9x3xf64>, tensor<16x3xf64>) -> tensor<4x9x16xf64>
  %v = sdg.input "v" in (i, e) : tensor<16x3xf64>
  %z = sdg.contract "abk,nk->abn" %x[i, t], %v[i, 0] in (i, t) : (tensor<4x9x3xf64>, tensor<16x3xf64>) -> tensor<4x9x16xf64>
  sdg.output "y" %y[i, t] in (i, t: 1 to T) : tensor<4x9x16xf64>
  sdg.output "z" %z[i, t] in (i, t) : tensor<4x9x16xf64>
}

// CHECK-LABEL: sdg.program @iterations
// CHECK:         %0 = sdg.transpose %w[i] permutation [1, 0] in (i) : (tensor<16x3xf64>) -> tensor<3x16xf64>
// CHECK-NEXT:    %y = sdg.contract "abk,kn->abn" %x[i, t], %0[i] in (i, t: 1 to T) :
// CHECK:         %1 = sdg.transpose %v[i, 0] permutation [1, 0] in (i) : (tensor<16x3xf64>) -> tensor<3x16xf64>
// CHECK-NEXT:    %z = sdg.contract "abk,kn->abn" %x[i, t], %1[i] in (i, t) :
