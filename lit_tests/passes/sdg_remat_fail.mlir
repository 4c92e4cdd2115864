// What there is nothing to compute anew for, or cannot be put into blocks.
// RUN: tempo-opt %s --split-input-file --check-each --remarks -p sdg-remat{block=4} 2>&1 | filecheck %s
// RUN: not tempo-opt %s -p sdg-remat 2>&1 | filecheck %s --check-prefix=NEEDS
// RUN: not tempo-opt %s -p sdg-remat{block=0} 2>&1 | filecheck %s --check-prefix=EMPTY
// RUN: tempo-opt %S/Inputs/there_and_back.mlir --remarks -p 'sdg-remat{budget=100000 steps=100}' 2>&1 | filecheck %s --check-prefix=FITS
// RUN: tempo-opt %S/Inputs/there_and_back.mlir --remarks -p 'sdg-remat{budget=10 steps=100}' 2>&1 | filecheck %s --check-prefix=SMALL
// RUN: not tempo-opt %S/Inputs/there_and_back.mlir -p 'sdg-remat{block=4 dims=u}' 2>&1 | filecheck %s --check-prefix=NAME

// NEEDS: sdg-remat: say what may be kept, budget=BYTES, or in blocks of what, block=STEPS
// EMPTY: sdg-remat: block is a count of 1 to 2**62, got block=0
// FITS: remark: not computed anew along t: all rows are 3200 bytes, within the budget [sdg-remat]
// FITS: dims(t: T) {
// SMALL: remark: over the budget along t: blocks of 10 steps keep 640 bytes [sdg-remat]
// SMALL: dims(t: T, b: (T + 9) floordiv 10, j: 10) attributes {blocks = {t = #sdg.index<[10 * b + j]>}} {
// NAME: has no dim `u`

sdg.program @forward dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<8xf32>
  %h = sdg.merge {t = 0 : %x[t], t > 0 : %h1[t - 1]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %h1 = sdg.sin %h[t] in (t) : (tensor<8xf32>) -> tensor<8xf32>
  sdg.output "h" %h[t] in (t) : tensor<8xf32>
}

// CHECK: remark: not computed anew along t: there is no backward recurrence along it [sdg-remat]
// CHECK: sdg.program @forward dims(t: T) {

// -----

sdg.program @attends dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<8xf32>
  %h = sdg.merge {t = 0 : %x[t], t > 0 : %m[t]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %m = sdg.max %h[0:t] axes [0] in (t: 1 to T) : (tensor<8xf32>) -> tensor<8xf32>
  %g = sdg.merge {t = T - 1 : %h[t], t < T - 1 : %g1[t]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %g1 = sdg.mul %g[t + 1], %h[t] in (t: 0 to T - 1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  sdg.output "g" %g[t] in (t) : tensor<8xf32>
}

// CHECK: remark: not computed anew along t: a recurrence along it reads a range of its steps [sdg-remat]
// CHECK: sdg.program @attends dims(t: T) {

// -----

sdg.program @apart dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<8xf32>
  %h = sdg.merge {t = 0 : %x[t], t > 0 : %h1[t - 1]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %h1 = sdg.sin %h[t] in (t) : (tensor<8xf32>) -> tensor<8xf32>
  %g = sdg.merge {t = T - 1 : %x[t], t < T - 1 : %g1[t + 1]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %g1 = sdg.sin %g[t] in (t) : (tensor<8xf32>) -> tensor<8xf32>
  sdg.output "h" %h[t] in (t) : tensor<8xf32>
  sdg.output "g" %g[t] in (t) : tensor<8xf32>
}

// CHECK: remark: not computed anew along t: the backward recurrence reads nothing of the forward one [sdg-remat]
// CHECK: sdg.program @apart dims(t: T) {

// -----

sdg.program @to_and_fro dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<8xf32>
  %h = sdg.merge {t = 0 : %x[t], t > 0 : %h1[t - 1]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %h1 = sdg.sin %h[t] in (t) : (tensor<8xf32>) -> tensor<8xf32>
  %g = sdg.merge {t = T - 1 : %h[t], t < T - 1 : %g1[t + 1]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %g1 = sdg.sin %g[t] in (t) : (tensor<8xf32>) -> tensor<8xf32>
  %k = sdg.merge {t = 0 : %g[t], t > 0 : %k1[t - 1]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %k1 = sdg.mul %k[t], %g[t] in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  sdg.output "k" %k[t] in (t) : tensor<8xf32>
}

// CHECK: remark: not computed anew along t: a forward recurrence along it needs what a backward one makes [sdg-remat]
// CHECK: sdg.program @to_and_fro dims(t: T) {

// -----

sdg.program @ends_by_data dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<i1>
  sdg.until %x[t] in (t) : tensor<i1>
  sdg.output "x" %x[t] in (t) : tensor<i1>
}

// CHECK: remark: not computed anew along t: data ends it [sdg-remat]
