// Contractions read weights and rows of a cache as they are stored, and widen them as they read; the loop has no copy
// of them in f32.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-absorb-casts | filecheck %s

sdg.program @weights dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %w = sdg.parameter "w" : tensor<8x4xbf16>
  %q = sdg.parameter "q" : tensor<8x8xi8>
  %w32 = sdg.cast %w : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  %y = sdg.contract "k,nk->n" %x[t], %w32 in (t) : (tensor<4xf32>, tensor<8x4xf32>) -> tensor<8xf32>
  %q32 = sdg.cast %q : (tensor<8x8xi8>) -> tensor<8x8xf32>
  %z = sdg.contract "k,nk->n" %y[t], %q32 in (t) : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
  sdg.output "z" %z[t] in (t) : tensor<8xf32>
}

// CHECK-LABEL: sdg.program @weights
// CHECK-NEXT:    %x = sdg.input
// CHECK-NEXT:    %w = sdg.parameter
// CHECK-NEXT:    %q = sdg.parameter
// CHECK-NEXT:    %y = sdg.contract "k,nk->n" %x[t], %w in (t) : (tensor<4xf32>, tensor<8x4xbf16>) -> tensor<8xf32>
// CHECK-NEXT:    %z = sdg.contract "k,nk->n" %y[t], %q in (t) : (tensor<8xf32>, tensor<8x8xi8>) -> tensor<8xf32>
// CHECK-NEXT:    sdg.output "z" %z[t]

// -----

// a range of a cast is a range of what is cast; the index of the cast goes into that of the read
sdg.program @cache dims(t: T) {
  %q = sdg.input "q" in (t) : tensor<4xf32>
  %k = sdg.input "k" in (t) : tensor<4xf16>
  %k32 = sdg.cast %k[t - 1] in (t: 1 to T) : (tensor<4xf16>) -> tensor<4xf32>
  %s = sdg.contract "d,nd->n" %q[t], %k32[1:t + 1] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<?xf32, #sdg.size<t>>
  %total = sdg.sum %s[t] axes [0] in (t) : (tensor<?xf32, #sdg.size<t>>) -> tensor<f32>
  sdg.output "total" %total[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @cache
// CHECK-NEXT:    %q = sdg.input
// CHECK-NEXT:    %k = sdg.input
// CHECK-NEXT:    %s = sdg.contract "d,nd->n" %q[t], %k[0:t] in (t) : (tensor<4xf32>, tensor<4xf16>)
// CHECK-NEXT:    %total = sdg.sum %s[t]

// -----

// of two casts the greater one goes: one operand keeps the type of the result
sdg.program @both dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xbf16>
  %w = sdg.parameter "w" : tensor<8x4xbf16>
  %x32 = sdg.cast %x[t] in (t) : (tensor<4xbf16>) -> tensor<4xf32>
  %w32 = sdg.cast %w : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  %y = sdg.contract "k,nk->n" %x32[t], %w32 in (t) : (tensor<4xf32>, tensor<8x4xf32>) -> tensor<8xf32>
  sdg.output "y" %y[t] in (t) : tensor<8xf32>
}

// CHECK-LABEL: sdg.program @both
// CHECK:         %x32 = sdg.cast %x[t] in (t)
// CHECK-NEXT:    %y = sdg.contract "k,nk->n" %x32[t], %w in (t) : (tensor<4xf32>, tensor<8x4xbf16>) -> tensor<8xf32>
