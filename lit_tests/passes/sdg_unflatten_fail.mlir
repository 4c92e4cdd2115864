// Rows that were never apart, that are mixed or cut anew, and axes that no range made, stay as they are.
// RUN: tempo-opt %s --split-input-file --check-each=interp -p sdg-unflatten | filecheck %s

!flat = tensor<?x4xf32, #sdg.size<3 * T>>

sdg.program @rows dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3x4xf32>
  %y = sdg.input "y" : tensor<?x4xf32, #sdg.size<3 * T>>
  %f = sdg.reshape %x[0:T] : (tensor<3x4xf32>) -> !flat
  %own = sdg.add %f, %y : (!flat, !flat) -> !flat
  %scan = sdg.cumsum %f axis 0 : (!flat) -> !flat
  %part = sdg.slice %f take [1:3 * T, 0:4] : (!flat) -> tensor<?x4xf32, #sdg.size<max(0, 3 * T - 1)>>
  %all = sdg.transpose %f permutation [1, 0] : (!flat) -> tensor<4x?xf32, #sdg.size<3 * T>>
  %cut = sdg.reshape %f : (!flat) -> tensor<?xf32, #sdg.size<12 * T>>
  sdg.output "own" %own : !flat
  sdg.output "scan" %scan : !flat
  sdg.output "part" %part : tensor<?x4xf32, #sdg.size<max(0, 3 * T - 1)>>
  sdg.output "all" %all : tensor<4x?xf32, #sdg.size<3 * T>>
  sdg.output "cut" %cut : tensor<?xf32, #sdg.size<12 * T>>
}

// CHECK-LABEL: sdg.program @rows
// CHECK:         %f = sdg.reshape %x[0:T]
// CHECK-NEXT:    %own = sdg.add %f, %y
// CHECK-NEXT:    %scan = sdg.cumsum %f axis 0
// CHECK-NEXT:    %part = sdg.slice %f
// CHECK-NEXT:    %all = sdg.transpose %f
// CHECK-NEXT:    %cut = sdg.reshape %f

// -----

!flat = tensor<?x4xf32, #sdg.size<3 * T>>

// heads of one step; and a letter that another operand has too
sdg.program @heads dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3x4xf32>
  %f = sdg.reshape %x[t] in (t) : (tensor<3x4xf32>) -> tensor<12xf32>
  %e = sdg.exp %f[t] in (t) : (tensor<12xf32>) -> tensor<12xf32>
  sdg.output "e" %e[t] in (t) : tensor<12xf32>
  %y = sdg.input "y" : tensor<?x4xf32, #sdg.size<3 * T>>
  %g = sdg.reshape %x[0:T] : (tensor<3x4xf32>) -> !flat
  %p = sdg.contract "bk,bk->b" %g, %y : (!flat, !flat) -> tensor<?xf32, #sdg.size<3 * T>>
  sdg.output "p" %p : tensor<?xf32, #sdg.size<3 * T>>
}

// CHECK-LABEL: sdg.program @heads
// CHECK:         sdg.exp %f[t] in (t) : (tensor<12xf32>)
// CHECK:         sdg.contract "bk,bk->b" %g, %y

// -----

// steps of one row each are not put together
sdg.program @units dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<1x4xf32>
  %f = sdg.reshape %x[0:T] : (tensor<1x4xf32>) -> tensor<?x4xf32, #sdg.size<T>>
  %e = sdg.exp %f : (tensor<?x4xf32, #sdg.size<T>>) -> tensor<?x4xf32, #sdg.size<T>>
  sdg.output "e" %e : tensor<?x4xf32, #sdg.size<T>>
}

// CHECK-LABEL: sdg.program @units
// CHECK:         sdg.exp %f
