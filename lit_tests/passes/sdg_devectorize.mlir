// An axis that a range of a dim made is that dim again, where a row is taken at a time.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-devectorize | filecheck %s

sdg.program @rows dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %p = sdg.mul %x[0:T], %x[0:T] : (tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32, #sdg.size<T>>
  %m = sdg.sum %p axes [0] : (tensor<?x4xf32, #sdg.size<T>>) -> tensor<4xf32>
  %s = sdg.slice %p take [t, 0:4] in (t) : (tensor<?x4xf32, #sdg.size<T>>) -> tensor<4xf32>
  sdg.output "m" %m : tensor<4xf32>
  sdg.output "s" %s[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @rows
// CHECK:         %p = sdg.mul %x[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %m = sdg.sum %p[0:T] axes [0] : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %s = sdg.slice %p[t] take [0:4] in (t) : (tensor<4xf32>) -> tensor<4xf32>

// -----

// part of a dim, beside another; a product without operands that all rows share
sdg.program @part dims(i: I, t: T) where T >= 2 {
  %x = sdg.input "x" in (i, t) : tensor<4xf32>
  %p = sdg.exp %x[i, 1:T - 1] in (i) : (tensor<4xf32>) -> tensor<?x4xf32, #sdg.size<T - 2>>
  %q = sdg.contract "ta,tb->tab" %p[i], %p[i] in (i) : (tensor<?x4xf32, #sdg.size<T - 2>>, tensor<?x4xf32, #sdg.size<T - 2>>) -> tensor<?x4x4xf32, #sdg.size<T - 2>>
  %s = sdg.slice %q[i] take [t - 1, 0:4, 0] in (i, t: 1 to T - 1) : (tensor<?x4x4xf32, #sdg.size<T - 2>>) -> tensor<4xf32>
  sdg.output "s" %s[i, t] in (i, t: 1 to T - 1) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @part
// CHECK:         %p = sdg.exp %x[i, t] in (i, t: 1 to T - 1) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %q = sdg.contract "a,b->ab" %p[i, t], %p[i, t] in (i, t: 1 to T - 1)
// CHECK-NEXT:    %s = sdg.slice %q[i, t] take [0:4, 0] in (i, t: 1 to T - 1)

// -----

// what computes the rows step by step anyway is read: an action is chosen by what learning needs for all steps
sdg.program @twins dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : tensor<3x4xf32>
  %w = sdg.input "w" in (i) : tensor<4x4xf32>
  %p = sdg.contract "bk,nk->bn" %x[i, t], %w[i] in (i, t) : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %a = sdg.mul %x[i, t], %p[i, t] in (i, t: 1 to T) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %q = sdg.contract "abk,nk->abn" %x[i, 0:T], %w[i] in (i) : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<?x3x4xf32, #sdg.size<T>>
  %b = sdg.mul %q[i], %x[i, 0:T] in (i) : (tensor<?x3x4xf32, #sdg.size<T>>, tensor<3x4xf32>) -> tensor<?x3x4xf32, #sdg.size<T>>
  %e = sdg.exp %b[i] in (i) : (tensor<?x3x4xf32, #sdg.size<T>>) -> tensor<?x3x4xf32, #sdg.size<T>>
  sdg.output "a" %a[i, t] in (i, t: 1 to T) : tensor<3x4xf32>
  sdg.output "e" %e[i] in (i) : tensor<?x3x4xf32, #sdg.size<T>>
}

// CHECK-LABEL: sdg.program @twins
// CHECK:         sdg.contract "bk,nk->bn" %x[i, t], %w[i] in (i, t)
// CHECK-NEXT:    %a = sdg.mul %x[i, t], %p[i, t] in (i, t)
// CHECK-NEXT:    %e = sdg.exp %a[i, 0:T] in (i)
