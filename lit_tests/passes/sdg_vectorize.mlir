// A dim along which nothing recurs becomes an axis of what is connected to a contraction.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-vectorize | filecheck %s

sdg.program @projection dims(b: B, t: T) {
  %x = sdg.input "x" in (b, t) : tensor<4xf32>
  %w = sdg.input "w" : tensor<4x4xf32>
  %zero = sdg.constant 0.0 : tensor<4xf32>
  %p = sdg.contract "a,ac->c" %x[b, t], %w in (b, t) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[b, t - 1]} in (b, t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %h = sdg.add %s[b, t], %p[b, t] in (b, t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = sdg.sum %h[0:B, t] axes [0] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @projection dims(b: B, t: T) {
// CHECK-NEXT:    %x = sdg.input "x" in (b, t) : tensor<4xf32>
// CHECK-NEXT:    %w = sdg.input "w" : tensor<4x4xf32>
// CHECK-NEXT:    %zero = sdg.constant 0.0 : tensor<4xf32>
// CHECK-NEXT:    %p = sdg.contract "bta,ac->btc" %x[0:B, 0:T], %w : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<?x?x4xf32, #sdg.size<B, T>>
// CHECK-NEXT:    %0 = sdg.broadcast %zero : (tensor<4xf32>) -> tensor<?x4xf32, #sdg.size<B>>
// CHECK-NEXT:    %s = sdg.merge {t = 0 : %0, t > 0 : %h[t - 1]} in (t) : (tensor<?x4xf32, #sdg.size<B>>, tensor<?x4xf32, #sdg.size<B>>) -> tensor<?x4xf32, #sdg.size<B>>
// CHECK-NEXT:    %1 = sdg.slice %p take [0:B, t, 0:4] in (t) : (tensor<?x?x4xf32, #sdg.size<B, T>>) -> tensor<?x4xf32, #sdg.size<B>>
// CHECK-NEXT:    %h = sdg.add %s[t], %1[t] in (t) : (tensor<?x4xf32, #sdg.size<B>>, tensor<?x4xf32, #sdg.size<B>>) -> tensor<?x4xf32, #sdg.size<B>>
// CHECK-NEXT:    %y = sdg.sum %h[t] axes [0] in (t) : (tensor<?x4xf32, #sdg.size<B>>) -> tensor<4xf32>
// CHECK-NEXT:    sdg.output "y" %y[t] in (t) : tensor<4xf32>
// CHECK-NEXT:  }

// -----

// no contraction gains by it
sdg.program @chain dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %y = sdg.exp %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @chain dims(t: T) {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<4xf32>
// CHECK-NEXT:    %y = sdg.exp %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    sdg.output "y" %y[t] in (t) : tensor<4xf32>
// CHECK-NEXT:  }

// -----

// a product of operands that all vary gains nothing, unless a range of its rows is read
sdg.program @outer_products dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %o = sdg.contract "a,c->ac" %x[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %p = sdg.contract "a,c->ac" %x[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %s = sdg.sum %p[0:T] axes [0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  sdg.output "o" %o[t] in (t) : tensor<4x4xf32>
  sdg.output "s" %s : tensor<4x4xf32>
}

// CHECK-LABEL: sdg.program @outer_products
// CHECK:         %o = sdg.contract "a,c->ac" %x[t], %x[t] in (t)
// CHECK-NEXT:    %p = sdg.contract "ta,tc->tac" %x[0:T], %x[0:T] :

// -----

// few rows of many weights gain, many rows of few weights do not
sdg.program @weights dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<2x64xf32>
  %z = sdg.input "z" in (t) : tensor<128x64xf32>
  %w = sdg.input "w" : tensor<64x64xf32>
  %p = sdg.contract "bk,kn->bn" %x[t], %w in (t) : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  %q = sdg.contract "bk,kn->bn" %z[t], %w in (t) : (tensor<128x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32>
  sdg.output "p" %p[t] in (t) : tensor<2x64xf32>
  sdg.output "q" %q[t] in (t) : tensor<128x64xf32>
}

// CHECK-LABEL: sdg.program @weights
// CHECK:         %p = sdg.contract "tbk,kn->tbn" %x[0:T], %w :
// CHECK-NEXT:    %q = sdg.contract "bk,kn->bn" %z[t], %w in (t)

// -----

// the step before is read across the dim
sdg.program @across dims(b: B, t: T) {
  %x = sdg.input "x" in (b, t) : tensor<4xf32>
  %w = sdg.input "w" : tensor<4x4xf32>
  %s = sdg.merge {t = 0 : %x[b, 0], t > 0 : %m[t]} in (b, t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %p = sdg.contract "a,ac->c" %s[b, t], %w in (b, t) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %h = sdg.add %p[b, t], %x[b, t] in (b, t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %m = sdg.sum %h[0:B, t - 1] axes [0] in (t: 1 to T) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "h" %h[b, t] in (b, t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @across
// CHECK:         %p = sdg.contract "ba,ac->bc" %s[t], %w in (t)
// CHECK-NEXT:    %h = sdg.add %p[t], %x[0:B, t] in (t)
// CHECK-NEXT:    %m = sdg.sum %h[t - 1] axes [0] in (t: 1 to T)

// -----

sdg.program @gathered dims(b: B) {
  %table = sdg.input "table" : tensor<8x4xf32>
  %ids = sdg.input "ids" in (b) : tensor<i64>
  %w = sdg.input "w" : tensor<4x4xf32>
  %row = sdg.gather %table, %ids[b] axis 0 in (b) : (tensor<8x4xf32>, tensor<i64>) -> tensor<4xf32>
  %y = sdg.contract "a,ac->c" %row[b], %w in (b) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  sdg.output "y" %y[b] in (b) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @gathered
// CHECK:         %row = sdg.gather %table, %ids[0:B] axis 0 :
// CHECK-NEXT:    %y = sdg.contract "ba,ac->bc" %row, %w :

// -----

sdg.program @shifted dims(t: T) where T >= 2 {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %w = sdg.input "w" : tensor<4x4xf32>
  %n = sdg.contract "a,ac->c" %x[t + 1], %w in (t: 0 to T - 1) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %p = sdg.contract "a,ac->c" %x[t - 1], %w in (t: 1 to T) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  sdg.output "n" %n[t] in (t: 0 to T - 1) : tensor<4xf32>
  sdg.output "p" %p[t] in (t: 1 to T) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @shifted
// CHECK:         %n = sdg.contract "ta,ac->tc" %x[1:T], %w :
// CHECK-NEXT:    %p = sdg.contract "ta,ac->tc" %x[0:T - 1], %w :

// -----

// activations that learning reads at all steps are made at all steps at once, though no product reads whole rows
sdg.program @read_whole dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<8x4xf32>
  %w = sdg.parameter "w" : tensor<4x4xf32>
  %p = sdg.contract "bk,kn->bn" %x[t], %w in (t) : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %a = sdg.tanh %p[t] in (t) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %g = sdg.contract "tbk,tbn->kn" %x[0:T], %a[0:T] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  sdg.output "a" %a[t] in (t) : tensor<8x4xf32>
  sdg.output "g" %g : tensor<4x4xf32>
}

// CHECK-LABEL: sdg.program @read_whole
// CHECK:         %p = sdg.contract "tbk,kn->tbn" %x[0:T], %w
// CHECK-NEXT:    %a = sdg.tanh %p
// CHECK-NEXT:    %g = sdg.contract "tbk,tbn->kn" %x[0:T], %a
