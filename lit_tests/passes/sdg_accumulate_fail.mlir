// Sums stay whose rows wait for the last step, come without a loop, or are kept anyway; by default also those that are
// more than their rows.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-accumulate{memory=0} | filecheck %s
// RUN: tempo-opt %s --split-input-file --remarks -p sdg-accumulate{memory=0} 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: tempo-opt %S/Inputs/outer_product.mlir --remarks -p sdg-accumulate 2>&1 | filecheck %s --check-prefix=LARGE
// RUN: tempo-opt %S/Inputs/outer_product.mlir -p sdg-accumulate{memory=16383} | filecheck %s --check-prefix=BUDGET

// LARGE: remark: not accumulated over t: its rows are 64 bytes a step, the sums 1024 [sdg-accumulate]
// LARGE: sdg.contract "tk,tn->kn" %x[0:T], %x[0:T]
// BUDGET: sdg.contract "k,n->kn" %x[t], %x[t] in (t)

// a return to the end: all rows have to be there when the first is learnt from
sdg.program @to_the_end dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<16x8xf32>
  %x = sdg.merge {t = 0 : %a[t], t > 0 : %x1[t - 1]} in (t) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %x1 = sdg.tanh %x[t] in (t) : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %r = sdg.sum %x[t:T] axes [0, 2] in (t) : (tensor<16x8xf32>) -> tensor<16xf32>
  %s = sdg.contract "tbk,tb->k" %x[0:T], %r[0:T] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<8xf32>
  sdg.output "s" %s : tensor<8xf32>
}

// REMARK: remark: not accumulated over t: what it reduces waits for the last step [sdg-accumulate]
// CHECK-LABEL: sdg.program @to_the_end
// CHECK:         %s = sdg.contract "tbk,tb->k" %x[0:T], %r[0:T]

// -----

// a recurrence that reads the future makes rows from the last to the first, and each is summed with the one before it
sdg.program @backwards dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<16x8xf32>
  %x = sdg.merge {t = 0 : %a[t], t > 0 : %x1[t - 1]} in (t) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %x1 = sdg.tanh %x[t] in (t) : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %r = sdg.merge {t = T - 1 : %x[t], t < T - 1 : %r1[t + 1]} in (t) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %r1 = sdg.sin %r[t] in (t) : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %q = sdg.mul %r[t], %r[max(0, t - 1)] in (t) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %s = sdg.sum %q[0:T] axes [0, 1] : (tensor<16x8xf32>) -> tensor<8xf32>
  sdg.output "s" %s : tensor<8xf32>
}

// REMARK: remark: not accumulated over t: what it reduces waits for the last step [sdg-accumulate]
// CHECK-LABEL: sdg.program @backwards
// CHECK:         %s = sdg.sum %q[0:T] axes [0, 1]

// -----

// nothing recurs along t, and a step has less of rows than of the sum: one large product is better
sdg.program @no_loop dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<4x8xf32>
  %x = sdg.tanh %a[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = sdg.contract "tbk,tbn->kn" %x[0:T], %a[0:T] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  sdg.output "s" %s : tensor<8x8xf32>
}

// CHECK-LABEL: sdg.program @no_loop
// CHECK:         %s = sdg.contract "tbk,tbn->kn" %x[0:T], %a[0:T]

// -----

// a row would need all rows that the other letter stands for
sdg.program @two_letters dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<8xf32>
  %x = sdg.merge {t = 0 : %a[t], t > 0 : %x1[t - 1]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %x1 = sdg.tanh %x[t] in (t) : (tensor<8xf32>) -> tensor<8xf32>
  %s = sdg.contract "tk,sk->" %x[0:T], %x1[0:T] : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  sdg.output "s" %s : tensor<f32>
}

// CHECK-LABEL: sdg.program @two_letters
// CHECK:         %s = sdg.contract "tk,sk->" %x[0:T], %x1[0:T]

// -----

// the caller has all rows
sdg.program @output_too dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<16x8xf32>
  %x = sdg.merge {t = 0 : %a[t], t > 0 : %x1[t - 1]} in (t) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %x1 = sdg.tanh %x[t] in (t) : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %s = sdg.sum %x[0:T] axes [0, 1] : (tensor<16x8xf32>) -> tensor<8xf32>
  sdg.output "s" %s : tensor<8xf32>
  sdg.output "x" %x[t] in (t) : tensor<16x8xf32>
}

// REMARK: remark: not accumulated over t: its rows are 0 bytes a step, the sums 32 [sdg-accumulate]
// CHECK-LABEL: sdg.program @output_too
// CHECK:         %s = sdg.sum %x[0:T] axes [0, 1]

// -----

// how many steps there are is known after the last
sdg.program @ends_by_data dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<16x8xf32>
  %x = sdg.merge {t = 0 : %a[t], t > 0 : %x1[t - 1]} in (t) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %x1 = sdg.tanh %x[t] in (t) : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %limit = sdg.constant 0.0 : tensor<f32>
  %m = sdg.max %x[t] axes [0, 1] in (t) : (tensor<16x8xf32>) -> tensor<f32>
  %done = sdg.lt %m[t], %limit in (t) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  sdg.until %done[t] in (t) : tensor<i1>
  %s = sdg.sum %x[0:T] axes [0, 1] : (tensor<16x8xf32>) -> tensor<8xf32>
  sdg.output "s" %s : tensor<8xf32>
}

// CHECK-LABEL: sdg.program @ends_by_data
// CHECK:         %s = sdg.sum %x[0:T] axes [0, 1]
