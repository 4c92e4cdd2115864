// What mixes rows, large products, and what nobody takes a row of, keep the axis.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-devectorize | filecheck %s
// RUN: not tempo-opt %s --split-input-file -p 'sdg-devectorize{dims=q}' 2>&1 | filecheck %s --check-prefix=DIM

// DIM: sdg-devectorize: @scan has no dim `q`; it declares t

sdg.program @scan dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %c = sdg.cumsum %x[0:T] axis 0 : (tensor<4xf32>) -> tensor<?x4xf32, #sdg.size<T>>
  %s = sdg.slice %c take [t, 0:4] in (t) : (tensor<?x4xf32, #sdg.size<T>>) -> tensor<4xf32>
  sdg.output "s" %s[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @scan
// CHECK:         sdg.cumsum %x[0:T] axis 0

// -----

// one product of all rows with the weights
sdg.program @weights dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %w = sdg.input "w" : tensor<4x4xf32>
  %p = sdg.contract "tk,kn->tn" %x[0:T], %w : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32, #sdg.size<T>>
  %s = sdg.slice %p take [t, 0:4] in (t) : (tensor<?x4xf32, #sdg.size<T>>) -> tensor<4xf32>
  sdg.output "s" %s[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @weights
// CHECK:         sdg.contract "tk,kn->tn" %x[0:T], %w

// -----

// nobody takes a row
sdg.program @whole dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %p = sdg.exp %x[0:T] : (tensor<4xf32>) -> tensor<?x4xf32, #sdg.size<T>>
  %m = sdg.sum %p axes [0] : (tensor<?x4xf32, #sdg.size<T>>) -> tensor<4xf32>
  sdg.output "m" %m : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @whole
// CHECK:         sdg.exp %x[0:T]

// -----

// no twins: other weights, another op
sdg.program @strangers dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : tensor<3x4xf32>
  %w = sdg.input "w" in (i, t) : tensor<4xf32>
  %v = sdg.input "v" in (i) : tensor<4xf32>
  %p = sdg.mul %x[i, t], %w[i, t] in (i, t) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %s = sdg.add %x[i, t], %v[i] in (i, t) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %q = sdg.mul %x[i, 0:T], %v[i] in (i) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<?x3x4xf32, #sdg.size<T>>
  sdg.output "p" %p[i, t] in (i, t) : tensor<3x4xf32>
  sdg.output "s" %s[i, t] in (i, t) : tensor<3x4xf32>
  sdg.output "q" %q[i] in (i) : tensor<?x3x4xf32, #sdg.size<T>>
}

// CHECK-LABEL: sdg.program @strangers
// CHECK:         %q = sdg.mul %x[i, 0:T], %v[i] in (i)
