// Casts stay that may change a value, that something else reads too, or that give the result its type.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-absorb-casts | filecheck %s

sdg.program @inexact dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xbf16>
  %w = sdg.parameter "w" : tensor<8x4xf32>
  %n = sdg.parameter "n" : tensor<8x8xi32>
  %w16 = sdg.cast %w : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  %y = sdg.contract "k,nk->n" %x[t], %w16 in (t) : (tensor<4xbf16>, tensor<8x4xbf16>) -> tensor<8xbf16>
  %y32 = sdg.cast %y[t] in (t) : (tensor<8xbf16>) -> tensor<8xf32>
  %n32 = sdg.cast %n : (tensor<8x8xi32>) -> tensor<8x8xf32>
  %z = sdg.contract "k,nk->n" %y32[t], %n32 in (t) : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
  sdg.output "z" %z[t] in (t) : tensor<8xf32>
}

// f32 has more values than bf16, i32 some that f32 lacks; of y alone the cast goes
// CHECK-LABEL: sdg.program @inexact
// CHECK:         %w16 = sdg.cast %w
// CHECK-NEXT:    %y = sdg.contract "k,nk->n" %x[t], %w16
// CHECK-NEXT:    %n32 = sdg.cast %n
// CHECK-NEXT:    %z = sdg.contract "k,nk->n" %y[t], %n32 in (t) : (tensor<8xbf16>, tensor<8x8xf32>) -> tensor<8xf32>

// -----

sdg.program @read_elsewhere dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<8xf32>
  %w = sdg.parameter "w" : tensor<8x8xf16>
  %m = sdg.input "m" in (t) : tensor<8xi1>
  %w32 = sdg.cast %w : (tensor<8x8xf16>) -> tensor<8x8xf32>
  %m32 = sdg.cast %m[t] in (t) : (tensor<8xi1>) -> tensor<8xf32>
  %y = sdg.contract "k,nk->n" %x[t], %w32 in (t) : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
  %d = sdg.contract "k,k->" %x[t], %m32[t] in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  %z = sdg.add %y[t], %d[t] in (t) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %e = sdg.exp %w32 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  sdg.output "z" %z[t] in (t) : tensor<8xf32>
  sdg.output "e" %e : tensor<8x8xf32>
}

// the exponential needs the cast anyway; booleans are no numbers
// CHECK-LABEL: sdg.program @read_elsewhere
// CHECK:         %w32 = sdg.cast %w
// CHECK-NEXT:    %m32 = sdg.cast %m[t]
// CHECK-NEXT:    %y = sdg.contract "k,nk->n" %x[t], %w32
// CHECK-NEXT:    %d = sdg.contract "k,k->" %x[t], %m32[t]

// -----

sdg.program @only_one dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xbf16>
  %x32 = sdg.cast %x[t] in (t) : (tensor<4xbf16>) -> tensor<4xf32>
  %y = sdg.contract "k,k->" %x32[t], %x32[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
}

// a sum of products of bf16 would be rounded to bf16
// CHECK-LABEL: sdg.program @only_one
// CHECK:         %x32 = sdg.cast %x[t]
// CHECK-NEXT:    %y = sdg.contract "k,k->" %x32[t], %x32[t]
