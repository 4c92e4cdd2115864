// Reductions over ranges that change run over tiles of one length.
// RUN: tempo-opt %s --split-input-file -p 'sdg-tile{tile=4}' | filecheck %s

// a prefix: tiles from the start, what is left beside them first
sdg.program @prefix dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<8xf32>
  %y = sdg.max %a[0:t + 1] axes [0] in (t) : (tensor<8xf32>) -> tensor<8xf32>
  sdg.output "y" %y[t] in (t) : tensor<8xf32>
}

// CHECK-LABEL: sdg.program @prefix dims(t: T, m: (T + 3) floordiv 4) {
// CHECK-NEXT:      %a = sdg.input "a" in (t) : tensor<8xf32>
// CHECK-NEXT:      %0 = sdg.max %a[4 * (t floordiv 4):t + 1] axes [0] in (t) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:      %running = sdg.merge {m = 0 : %0[t], m > 0 : %1[t, m - 1]} in (t, m: 0 to t floordiv 4 + 1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:      %2 = sdg.max %a[4 * m:4 * m + 4] axes [0] in (t, m: 0 to t floordiv 4) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:      %1 = sdg.maximum %running[t, m], %2[t, m] in (t, m: 0 to t floordiv 4) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:      %y = sdg.broadcast %running[t, t floordiv 4] in (t) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:      sdg.output "y" %y[t] in (t) : tensor<8xf32>
// CHECK-NEXT:    }

// -----

// a suffix: tiles from behind; the mean divides by what the range holds
sdg.program @suffix dims(t: T) {
  %r = sdg.input "r" in (t) : tensor<f32>
  %y = sdg.mean %r[t:T] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @suffix dims(t: T, m: (T + 3) floordiv 4) {
// CHECK-NEXT:      %r = sdg.input "r" in (t) : tensor<f32>
// CHECK-NEXT:      %0 = sdg.sum %r[t:(T - t - 1) mod 4 + t + 1] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT:      %running = sdg.merge {m = 0 : %0[t], m > 0 : %1[t, m - 1]} in (t, m: 0 to (T - t + 3) floordiv 4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:      %2 = sdg.sum %r[T - 4 * m - 4:T - 4 * m] axes [0] in (t, m: 0 to (T - t + 3) floordiv 4 - 1) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT:      %1 = sdg.add %running[t, m], %2[t, m] in (t, m: 0 to (T - t + 3) floordiv 4 - 1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:      %3 = sdg.index max(0, T + call.start.t - t) in (t) : tensor<i64>
// CHECK-NEXT:      %4 = sdg.cast %3[t] in (t) : (tensor<i64>) -> tensor<f32>
// CHECK-NEXT:      %y = sdg.div %running[t, (T - t + 3) floordiv 4 - 1], %4[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:      sdg.output "y" %y[t] in (t) : tensor<f32>
// CHECK-NEXT:    }

// -----

// a window of a symbolic length, and the position of an extreme
sdg.program @window dims(t: T) where 1 <= W {
  %a = sdg.input "a" in (t) : tensor<i64>
  %y = sdg.argmax %a[max(0, t - W + 1):t + 1] axis 0 in (t) : (tensor<i64>) -> tensor<i64>
  sdg.output "y" %y[t] in (t) : tensor<i64>
}

// CHECK-LABEL: sdg.program @window dims(t: T, m: min((T + 3) floordiv 4, (W + 3) floordiv 4)) where 1 <= W {
// CHECK-NEXT:      %a = sdg.input "a" in (t) : tensor<i64>
// CHECK-NEXT:      %0 = sdg.max %a[max(4 * (max(0, min(W - 1, t)) floordiv 4), 4 * (max(0, min(W - 1, t)) floordiv 4) + t - W + 1):t + 1] axes [0] in (t) : (tensor<i64>) -> tensor<i64>
// CHECK-NEXT:      %1 = sdg.argmax %a[max(4 * (max(0, min(W - 1, t)) floordiv 4), 4 * (max(0, min(W - 1, t)) floordiv 4) + t - W + 1):t + 1] axis 0 in (t) : (tensor<i64>) -> tensor<i64>
// CHECK-NEXT:      %2 = sdg.index 4 * (max(0, min(W - 1, t - call.start.t)) floordiv 4) in (t) : tensor<i64>
// CHECK-NEXT:      %3 = sdg.add %1[t], %2[t] in (t) : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:      %extreme = sdg.merge {m = 0 : %0[t], m > 0 : %4[t, m - 1]} in (t, m: 0 to max(0, min(W - 1, t)) floordiv 4 + 1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:      %position = sdg.merge {m = 0 : %3[t], m > 0 : %5[t, m - 1]} in (t, m: 0 to max(0, min(W - 1, t)) floordiv 4 + 1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:      %6 = sdg.max %a[max(4 * m, 4 * m + t - W + 1):max(4 * m + 4, 4 * m + t - W + 5)] axes [0] in (t, m: 0 to max(0, min(W - 1, t)) floordiv 4) : (tensor<i64>) -> tensor<i64>
// CHECK-NEXT:      %7 = sdg.argmax %a[max(4 * m, 4 * m + t - W + 1):max(4 * m + 4, 4 * m + t - W + 5)] axis 0 in (t, m: 0 to max(0, min(W - 1, t)) floordiv 4) : (tensor<i64>) -> tensor<i64>
// CHECK-NEXT:      %8 = sdg.index 4 * m - 4 * call.start.m in (t, m: 0 to max(0, min(W - 1, t)) floordiv 4) : tensor<i64>
// CHECK-NEXT:      %9 = sdg.add %7[t, m], %8[t, m] in (t, m: 0 to max(0, min(W - 1, t)) floordiv 4) : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:      %10 = sdg.gt %6[t, m], %extreme[t, m] in (t, m: 0 to max(0, min(W - 1, t)) floordiv 4) : (tensor<i64>, tensor<i64>) -> tensor<i1>
// CHECK-NEXT:      %11 = sdg.eq %6[t, m], %extreme[t, m] in (t, m: 0 to max(0, min(W - 1, t)) floordiv 4) : (tensor<i64>, tensor<i64>) -> tensor<i1>
// CHECK-NEXT:      %12 = sdg.lt %9[t, m], %position[t, m] in (t, m: 0 to max(0, min(W - 1, t)) floordiv 4) : (tensor<i64>, tensor<i64>) -> tensor<i1>
// CHECK-NEXT:      %13 = sdg.and %11[t, m], %12[t, m] in (t, m: 0 to max(0, min(W - 1, t)) floordiv 4) : (tensor<i1>, tensor<i1>) -> tensor<i1>
// CHECK-NEXT:      %14 = sdg.or %10[t, m], %13[t, m] in (t, m: 0 to max(0, min(W - 1, t)) floordiv 4) : (tensor<i1>, tensor<i1>) -> tensor<i1>
// CHECK-NEXT:      %4 = sdg.select %14[t, m], %6[t, m], %extreme[t, m] in (t, m: 0 to max(0, min(W - 1, t)) floordiv 4) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:      %5 = sdg.select %14[t, m], %9[t, m], %position[t, m] in (t, m: 0 to max(0, min(W - 1, t)) floordiv 4) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:      %y = sdg.broadcast %position[t, max(0, min(W - 1, t)) floordiv 4] in (t) : (tensor<i64>) -> tensor<i64>
// CHECK-NEXT:      sdg.output "y" %y[t] in (t) : tensor<i64>
// CHECK-NEXT:    }

// -----

// a contraction; 16-bit sums are carried in f32
sdg.program @contraction dims(t: T) {
  %w = sdg.input "w" in (t) : tensor<bf16>
  %x = sdg.input "x" in (t) : tensor<8xbf16>
  %y = sdg.contract "n,nd->d" %w[0:t + 1], %x[0:t + 1] in (t) : (tensor<bf16>, tensor<8xbf16>) -> tensor<8xbf16>
  sdg.output "y" %y[t] in (t) : tensor<8xbf16>
}

// CHECK-LABEL: sdg.program @contraction dims(t: T, m: (T + 3) floordiv 4) {
// CHECK-NEXT:      %w = sdg.input "w" in (t) : tensor<bf16>
// CHECK-NEXT:      %x = sdg.input "x" in (t) : tensor<8xbf16>
// CHECK-NEXT:      %0 = sdg.cast %w[4 * (t floordiv 4):t + 1] in (t) : (tensor<bf16>) -> tensor<?xf32, #sdg.size<t mod 4 + 1>>
// CHECK-NEXT:      %1 = sdg.cast %x[4 * (t floordiv 4):t + 1] in (t) : (tensor<8xbf16>) -> tensor<?x8xf32, #sdg.size<t mod 4 + 1>>
// CHECK-NEXT:      %2 = sdg.contract "n,nd->d" %0[t], %1[t] in (t) : (tensor<?xf32, #sdg.size<t mod 4 + 1>>, tensor<?x8xf32, #sdg.size<t mod 4 + 1>>) -> tensor<8xf32>
// CHECK-NEXT:      %running = sdg.merge {m = 0 : %2[t], m > 0 : %3[t, m - 1]} in (t, m: 0 to t floordiv 4 + 1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:      %4 = sdg.cast %w[4 * m:4 * m + 4] in (t, m: 0 to t floordiv 4) : (tensor<bf16>) -> tensor<4xf32>
// CHECK-NEXT:      %5 = sdg.cast %x[4 * m:4 * m + 4] in (t, m: 0 to t floordiv 4) : (tensor<8xbf16>) -> tensor<4x8xf32>
// CHECK-NEXT:      %6 = sdg.contract "n,nd->d" %4[t, m], %5[t, m] in (t, m: 0 to t floordiv 4) : (tensor<4xf32>, tensor<4x8xf32>) -> tensor<8xf32>
// CHECK-NEXT:      %3 = sdg.add %running[t, m], %6[t, m] in (t, m: 0 to t floordiv 4) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:      %y = sdg.cast %running[t, t floordiv 4] in (t) : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK-NEXT:      sdg.output "y" %y[t] in (t) : tensor<8xbf16>
// CHECK-NEXT:    }

// -----

// attention: online softmax, no scores but those of a tile
sdg.program @attention dims(t: T) {
  %q = sdg.input "q" in (t) : tensor<2x8xf32>
  %k = sdg.input "k" in (t) : tensor<8xf32>
  %v = sdg.input "v" in (t) : tensor<16xf32>
  %scale = sdg.constant 0.25 : tensor<f32>
  %s = sdg.contract "gd,nd->gn" %q[t], %k[0:t + 1] in (t) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x?xf32, #sdg.size<t + 1>>
  %c = sdg.mul %s[t], %scale in (t) : (tensor<2x?xf32, #sdg.size<t + 1>>, tensor<f32>) -> tensor<2x?xf32, #sdg.size<t + 1>>
  %p = sdg.softmax %c[t] axis 1 in (t) : (tensor<2x?xf32, #sdg.size<t + 1>>) -> tensor<2x?xf32, #sdg.size<t + 1>>
  %o = sdg.contract "gn,nd->gd" %p[t], %v[0:t + 1] in (t) : (tensor<2x?xf32, #sdg.size<t + 1>>, tensor<16xf32>) -> tensor<2x16xf32>
  sdg.output "o" %o[t] in (t) : tensor<2x16xf32>
}

// CHECK-LABEL: sdg.program @attention dims(t: T, m: (T + 3) floordiv 4) {
// CHECK-NEXT:      %q = sdg.input "q" in (t) : tensor<2x8xf32>
// CHECK-NEXT:      %k = sdg.input "k" in (t) : tensor<8xf32>
// CHECK-NEXT:      %v = sdg.input "v" in (t) : tensor<16xf32>
// CHECK-NEXT:      %scale = sdg.constant 0.25 : tensor<f32>
// CHECK-NEXT:      %s = sdg.contract "gd,nd->gn" %q[t], %k[4 * (t floordiv 4):t + 1] in (t) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x?xf32, #sdg.size<t mod 4 + 1>>
// CHECK-NEXT:      %c = sdg.mul %s[t], %scale in (t) : (tensor<2x?xf32, #sdg.size<t mod 4 + 1>>, tensor<f32>) -> tensor<2x?xf32, #sdg.size<t mod 4 + 1>>
// CHECK-NEXT:      %0 = sdg.max %c[t] axes [1] in (t) : (tensor<2x?xf32, #sdg.size<t mod 4 + 1>>) -> tensor<2xf32>
// CHECK-NEXT:      %1 = sdg.constant -inf : tensor<f32>
// CHECK-NEXT:      %2 = sdg.eq %0[t], %1 in (t) : (tensor<2xf32>, tensor<f32>) -> tensor<2xi1>
// CHECK-NEXT:      %3 = sdg.constant 0.0 : tensor<f32>
// CHECK-NEXT:      %4 = sdg.select %2[t], %3, %0[t] in (t) : (tensor<2xi1>, tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:      %5 = sdg.reshape %4[t] in (t) : (tensor<2xf32>) -> tensor<2x1xf32>
// CHECK-NEXT:      %6 = sdg.sub %c[t], %5[t] in (t) : (tensor<2x?xf32, #sdg.size<t mod 4 + 1>>, tensor<2x1xf32>) -> tensor<2x?xf32, #sdg.size<t mod 4 + 1>>
// CHECK-NEXT:      %7 = sdg.exp %6[t] in (t) : (tensor<2x?xf32, #sdg.size<t mod 4 + 1>>) -> tensor<2x?xf32, #sdg.size<t mod 4 + 1>>
// CHECK-NEXT:      %8 = sdg.sum %7[t] axes [1] in (t) : (tensor<2x?xf32, #sdg.size<t mod 4 + 1>>) -> tensor<2xf32>
// CHECK-NEXT:      %9 = sdg.contract "gn,nd->gd" %7[t], %v[4 * (t floordiv 4):t + 1] in (t) : (tensor<2x?xf32, #sdg.size<t mod 4 + 1>>, tensor<16xf32>) -> tensor<2x16xf32>
// CHECK-NEXT:      %greatest = sdg.merge {m = 0 : %0[t], m > 0 : %10[t, m - 1]} in (t, m: 0 to t floordiv 4 + 1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:      %total = sdg.merge {m = 0 : %8[t], m > 0 : %11[t, m - 1]} in (t, m: 0 to t floordiv 4 + 1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:      %running = sdg.merge {m = 0 : %9[t], m > 0 : %12[t, m - 1]} in (t, m: 0 to t floordiv 4 + 1) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
// CHECK-NEXT:      %s_1 = sdg.contract "gd,nd->gn" %q[t], %k[4 * m:4 * m + 4] in (t, m: 0 to t floordiv 4) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:      %c_1 = sdg.mul %s_1[t, m], %scale in (t, m: 0 to t floordiv 4) : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
// CHECK-NEXT:      %13 = sdg.max %c_1[t, m] axes [1] in (t, m: 0 to t floordiv 4) : (tensor<2x4xf32>) -> tensor<2xf32>
// CHECK-NEXT:      %10 = sdg.maximum %greatest[t, m], %13[t, m] in (t, m: 0 to t floordiv 4) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:      %14 = sdg.eq %10[t, m], %1 in (t, m: 0 to t floordiv 4) : (tensor<2xf32>, tensor<f32>) -> tensor<2xi1>
// CHECK-NEXT:      %15 = sdg.select %14[t, m], %3, %10[t, m] in (t, m: 0 to t floordiv 4) : (tensor<2xi1>, tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:      %16 = sdg.reshape %15[t, m] in (t, m: 0 to t floordiv 4) : (tensor<2xf32>) -> tensor<2x1xf32>
// CHECK-NEXT:      %17 = sdg.sub %c_1[t, m], %16[t, m] in (t, m: 0 to t floordiv 4) : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:      %18 = sdg.exp %17[t, m] in (t, m: 0 to t floordiv 4) : (tensor<2x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:      %19 = sdg.sum %18[t, m] axes [1] in (t, m: 0 to t floordiv 4) : (tensor<2x4xf32>) -> tensor<2xf32>
// CHECK-NEXT:      %20 = sdg.contract "gn,nd->gd" %18[t, m], %v[4 * m:4 * m + 4] in (t, m: 0 to t floordiv 4) : (tensor<2x4xf32>, tensor<16xf32>) -> tensor<2x16xf32>
// CHECK-NEXT:      %21 = sdg.sub %greatest[t, m], %15[t, m] in (t, m: 0 to t floordiv 4) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:      %22 = sdg.exp %21[t, m] in (t, m: 0 to t floordiv 4) : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:      %23 = sdg.reshape %22[t, m] in (t, m: 0 to t floordiv 4) : (tensor<2xf32>) -> tensor<2x1xf32>
// CHECK-NEXT:      %24 = sdg.mul %running[t, m], %23[t, m] in (t, m: 0 to t floordiv 4) : (tensor<2x16xf32>, tensor<2x1xf32>) -> tensor<2x16xf32>
// CHECK-NEXT:      %25 = sdg.mul %total[t, m], %22[t, m] in (t, m: 0 to t floordiv 4) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:      %11 = sdg.add %25[t, m], %19[t, m] in (t, m: 0 to t floordiv 4) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:      %12 = sdg.add %24[t, m], %20[t, m] in (t, m: 0 to t floordiv 4) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
// CHECK-NEXT:      %26 = sdg.eq %total[t, t floordiv 4], %3 in (t) : (tensor<2xf32>, tensor<f32>) -> tensor<2xi1>
// CHECK-NEXT:      %27 = sdg.constant 1.0 : tensor<f32>
// CHECK-NEXT:      %28 = sdg.select %26[t], %27, %total[t, t floordiv 4] in (t) : (tensor<2xi1>, tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:      %29 = sdg.reshape %28[t] in (t) : (tensor<2xf32>) -> tensor<2x1xf32>
// CHECK-NEXT:      %o = sdg.div %running[t, t floordiv 4], %29[t] in (t) : (tensor<2x16xf32>, tensor<2x1xf32>) -> tensor<2x16xf32>
// CHECK-NEXT:      sdg.output "o" %o[t] in (t) : tensor<2x16xf32>
// CHECK-NEXT:    }
