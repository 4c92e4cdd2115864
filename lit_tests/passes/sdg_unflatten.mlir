// What is done to rows of steps that a reshape put together is done to the steps' rows.
// RUN: tempo-opt %s --split-input-file --check-each=interp -p sdg-unflatten | filecheck %s

!w = tensor<4x4xf32>
!flat = tensor<?x4xf32, #sdg.size<3 * T>>

// products, elementwise ops with what is the same in all rows, a number for each, and a sum of all
sdg.program @learn dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : tensor<3x4xf32>
  %w = sdg.input "w" in (i) : !w
  %b = sdg.input "b" in (i) : tensor<4xf32>
  %ones = sdg.constant 1.0 : !flat
  %f = sdg.reshape %x[i, 0:T] in (i) : (tensor<3x4xf32>) -> !flat
  %p = sdg.contract "bk,nk->bn" %f[i], %w[i] in (i) : (!flat, !w) -> !flat
  %q = sdg.add %p[i], %b[i] in (i) : (!flat, tensor<4xf32>) -> !flat
  %r = sdg.mul %q[i], %ones in (i) : (!flat, !flat) -> !flat
  %m = sdg.max %r[i] axes [1] in (i) : (!flat) -> tensor<?xf32, #sdg.size<3 * T>>
  %c = sdg.reshape %m[i] in (i) : (tensor<?xf32, #sdg.size<3 * T>>) -> tensor<?x1xf32, #sdg.size<3 * T>>
  %d = sdg.sub %r[i], %c[i] in (i) : (!flat, tensor<?x1xf32, #sdg.size<3 * T>>) -> !flat
  %g = sdg.contract "bk,bn->kn" %f[i], %d[i] in (i) : (!flat, !flat) -> !w
  %s = sdg.sum %d[i] axes [0, 1] in (i) : (!flat) -> tensor<f32>
  sdg.output "g" %g[i] in (i) : !w
  sdg.output "s" %s[i] in (i) : tensor<f32>
}

// CHECK-LABEL: sdg.program @learn
// CHECK-NOT:     reshape %x
// CHECK:         %p = sdg.contract "abk,nk->abn" %x[i, 0:T], %w[i] in (i) : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<?x3x4xf32, #sdg.size<T>>
// CHECK-NEXT:    %q = sdg.add %p[i], %b[i] in (i)
// CHECK-NEXT:    %[[ONES:.*]] = sdg.constant 1.0 : tensor<?x3x4xf32, #sdg.size<T>>
// CHECK-NEXT:    %r = sdg.mul %q[i], %[[ONES]] in (i)
// CHECK-NEXT:    %m = sdg.max %r[i] axes [2] in (i) : ({{.*}}) -> tensor<?x3xf32, #sdg.size<T>>
// CHECK-NEXT:    %c = sdg.reshape %m[i] in (i) : ({{.*}}) -> tensor<?x3x1xf32, #sdg.size<T>>
// CHECK-NEXT:    %d = sdg.sub %r[i], %c[i] in (i)
// CHECK-NEXT:    %g = sdg.contract "abk,abn->kn" %x[i, 0:T], %d[i] in (i)
// CHECK-NEXT:    %s = sdg.sum %d[i] axes [0, 1, 2] in (i)
// CHECK-NEXT:    sdg.output "g" %g[i]

// -----

// moves of other axes, ids, and a reshape that cuts the rows of a step
!rows = tensor<?x2x2xf32, #sdg.size<3 * T>>
sdg.program @moves dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3x4xf32>
  %k = sdg.input "k" in (t) : tensor<3xi64>
  %table = sdg.input "table" : tensor<5x2xf32>
  %f = sdg.reshape %x[0:T] : (tensor<3x4xf32>) -> !rows
  %a = sdg.transpose %f permutation [0, 2, 1] : (!rows) -> !rows
  %b = sdg.cumsum %a axis 1 reverse : (!rows) -> !rows
  %c = sdg.slice %b take [0:3 * T, 1, 0:2] : (!rows) -> tensor<?x2xf32, #sdg.size<3 * T>>
  %ids = sdg.reshape %k[0:T] : (tensor<3xi64>) -> tensor<?xi64, #sdg.size<3 * T>>
  %e = sdg.one_hot %ids depth 2 : (tensor<?xi64, #sdg.size<3 * T>>) -> tensor<?x2xf32, #sdg.size<3 * T>>
  %g = sdg.add %c, %e : (tensor<?x2xf32, #sdg.size<3 * T>>, tensor<?x2xf32, #sdg.size<3 * T>>) -> tensor<?x2xf32, #sdg.size<3 * T>>
  sdg.output "g" %g : tensor<?x2xf32, #sdg.size<3 * T>>
}

// CHECK-LABEL: sdg.program @moves
// CHECK:         %[[X:.*]] = sdg.reshape %x[0:T] : (tensor<3x4xf32>) -> tensor<?x3x2x2xf32, #sdg.size<T>>
// CHECK-NEXT:    %a = sdg.transpose %[[X]] permutation [0, 1, 3, 2]
// CHECK-NEXT:    %b = sdg.cumsum %a axis 2 reverse
// CHECK-NEXT:    %c = sdg.slice %b take [0:T, 0:3, 1, 0:2]
// CHECK-NEXT:    %e = sdg.one_hot %k[0:T] depth 2
// CHECK-NEXT:    %g = sdg.add %c, %e
// CHECK-NEXT:    %[[G:.*]] = sdg.reshape %g
// CHECK-NEXT:    sdg.output "g" %[[G]]
