// Gradients become ops: through recurrences, by inverse reads, with contributions added up.
// RUN: tempo-opt %s --split-input-file --pass-pipeline='sdg-autodiff,sdg-dce' | filecheck %s

sdg.program @rnn dims(i: I, t: T) where T >= 1 {
  %x = sdg.input "x" in (i, t) : tensor<16x64xf32>
  %y = sdg.input "y" in (i, t) : tensor<16x64xf32>
  %w = sdg.input "w" in (i) : tensor<64x64xf32>
  %zero = sdg.constant 0.0 : tensor<16x64xf32>
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[i, t - 1]} in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %sw = sdg.contract "bk,kn->bn" %s[i, t], %w[i] in (i, t) : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %a = sdg.add %x[i, t], %sw[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %h = sdg.tanh %a[i, t] in (i, t) : (tensor<16x64xf32>) -> tensor<16x64xf32>
  %d = sdg.sub %h[i, t], %y[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %d2 = sdg.mul %d[i, t], %d[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %loss = sdg.mean %d2[i, t] axes [0, 1] in (i, t) : (tensor<16x64xf32>) -> tensor<f32>
  %dw = sdg.grad %loss wrt %w in (i) : (tensor<f32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  sdg.output "dw" %dw[i] in (i) : tensor<64x64xf32>
}

// CHECK-LABEL: sdg.program @rnn dims(i: I, t: T) where T >= 1 {
// CHECK-NEXT:    %x = sdg.input "x" in (i, t) : tensor<16x64xf32>
// CHECK-NEXT:    %y = sdg.input "y" in (i, t) : tensor<16x64xf32>
// CHECK-NEXT:    %w = sdg.input "w" in (i) : tensor<64x64xf32>
// CHECK-NEXT:    %zero = sdg.constant 0.0 : tensor<16x64xf32>
// CHECK-NEXT:    %s = sdg.merge {t = 0 : %zero, t > 0 : %h[i, t - 1]} in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %sw = sdg.contract "bk,kn->bn" %s[i, t], %w[i] in (i, t) : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %a = sdg.add %x[i, t], %sw[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %h = sdg.tanh %a[i, t] in (i, t) : (tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %d = sdg.sub %h[i, t], %y[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %gloss = sdg.constant 1.0 : tensor<f32>
// CHECK-NEXT:    %0 = sdg.constant 0.001953125 : tensor<f32>
// CHECK-NEXT:    %gd = sdg.mul %d[i, t], %0 in (i, t) : (tensor<16x64xf32>, tensor<f32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %1 = sdg.constant 0.0 : tensor<16x64xf32>
// CHECK-NEXT:    %2 = sdg.merge {t < T - 1 : %gs[i, t + 1], t >= T - 1 : %1} in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %gh = sdg.add %gd[i, t], %2[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %3 = sdg.mul %h[i, t], %h[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %4 = sdg.sub %gloss, %3[i, t] in (i, t) : (tensor<f32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %ga = sdg.mul %gh[i, t], %4[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %gs = sdg.contract "bn,kn->bk" %ga[i, t], %w[i] in (i, t) : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %5 = sdg.contract "bk,bn->kn" %s[i, t], %ga[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    %dw = sdg.sum %5[i, 0:T] axes [0] in (i) : (tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    sdg.output "dw" %dw[i] in (i) : tensor<64x64xf32>
// CHECK-NEXT:  }

// -----

sdg.program @causal dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %w = sdg.input "w" in (t) : tensor<f32>
  %s = sdg.sum %x[0:t + 1] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  %y = sdg.mul %s[t], %w[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %dx = sdg.grad %y wrt %x in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "dx" %dx[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @causal dims(t: T) {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<f32>
// CHECK-NEXT:    %w = sdg.input "w" in (t) : tensor<f32>
// CHECK-NEXT:    %dx = sdg.sum %w[t:T] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    sdg.output "dx" %dx[t] in (t) : tensor<f32>
// CHECK-NEXT:  }

// -----

sdg.program @clamped dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %w = sdg.input "w" in (t) : tensor<f32>
  %y = sdg.mul %w[t], %x[max(t - 2, 0)] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %dx = sdg.grad %y wrt %x in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "dx" %dx[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @clamped dims(t: T) {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<f32>
// CHECK-NEXT:    %w = sdg.input "w" in (t) : tensor<f32>
// CHECK-NEXT:    %0 = sdg.sum %w[0:min(T, 3)] axes [0] in (t where t = 0) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    %1 = sdg.constant 0.0 : tensor<f32>
// CHECK-NEXT:    %dx = sdg.merge {t = 0 : %0[t], t < T - 2 and t >= 1 : %w[t + 2], true : %1} in (t) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    sdg.output "dx" %dx[t] in (t) : tensor<f32>
// CHECK-NEXT:  }

// -----

// an unselected side stays masked, so that 0 * inf does not leak
sdg.program @masked {
  %x = sdg.input "x" : tensor<4xf32>
  %zero = sdg.constant 0.0 : tensor<4xf32>
  %c = sdg.gt %x, %zero : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %l = sdg.log %x : (tensor<4xf32>) -> tensor<4xf32>
  %y = sdg.select %c, %l, %zero : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = sdg.sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  %dx = sdg.grad %loss wrt %x : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "dx" %dx : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @masked {
// CHECK-NEXT:    %x = sdg.input "x" : tensor<4xf32>
// CHECK-NEXT:    %zero = sdg.constant 0.0 : tensor<4xf32>
// CHECK-NEXT:    %c = sdg.gt %x, %zero : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK-NEXT:    %gloss = sdg.constant 1.0 : tensor<f32>
// CHECK-NEXT:    %0 = sdg.constant 0.0 : tensor<f32>
// CHECK-NEXT:    %gl = sdg.select %c, %gloss, %0 : (tensor<4xi1>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:    %1 = sdg.div %gl, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %dx = sdg.select %c, %1, %0 : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:    sdg.output "dx" %dx : tensor<4xf32>
// CHECK-NEXT:  }

// -----

sdg.program @unused {
  %x = sdg.input "x" : tensor<f32>
  %z = sdg.input "z" : tensor<4xf32>
  %y = sdg.exp %x : (tensor<f32>) -> tensor<f32>
  %dz = sdg.grad %y wrt %z allow_unused : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "dz" %dz : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @unused {
// CHECK-NEXT:    %x = sdg.input "x" : tensor<f32>
// CHECK-NEXT:    %z = sdg.input "z" : tensor<4xf32>
// CHECK-NEXT:    %0 = sdg.constant 0.0 : tensor<f32>
// CHECK-NEXT:    %dz = sdg.broadcast %0 : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:    sdg.output "dz" %dz : tensor<4xf32>
// CHECK-NEXT:  }

// -----

// readers that are no range: every one is asked, at every point
sdg.program @skew dims(i: I, t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %w = sdg.input "w" in (i, t) : tensor<f32>
  %y = sdg.mul %w[i, t], %x[min(i + t, T - 1)] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %dx = sdg.grad %y wrt %x in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "dx" %dx[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @skew dims(i: I, t: T) {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<f32>
// CHECK-NEXT:    %w = sdg.input "w" in (i, t) : tensor<f32>
// CHECK-NEXT:    %0 = sdg.arange [0:I] : tensor<?xi64, #sdg.size<I>>
// CHECK-NEXT:    %1 = sdg.reshape %0 : (tensor<?xi64, #sdg.size<I>>) -> tensor<?x1xi64, #sdg.size<I>>
// CHECK-NEXT:    %2 = sdg.arange [0:T] : tensor<?xi64, #sdg.size<T>>
// CHECK-NEXT:    %3 = sdg.index t - call.start.t in (t) : tensor<i64>
// CHECK-NEXT:    %4 = sdg.index T - 1 : tensor<i64>
// CHECK-NEXT:    %5 = sdg.add %1, %2 : (tensor<?x1xi64, #sdg.size<I>>, tensor<?xi64, #sdg.size<T>>) -> tensor<?x?xi64, #sdg.size<I, T>>
// CHECK-NEXT:    %6 = sdg.minimum %4, %5 : (tensor<i64>, tensor<?x?xi64, #sdg.size<I, T>>) -> tensor<?x?xi64, #sdg.size<I, T>>
// CHECK-NEXT:    %7 = sdg.eq %6, %3[t] in (t) : (tensor<?x?xi64, #sdg.size<I, T>>, tensor<i64>) -> tensor<?x?xi1, #sdg.size<I, T>>
// CHECK-NEXT:    %8 = sdg.constant 0.0 : tensor<f32>
// CHECK-NEXT:    %9 = sdg.select %7[t], %w[0:I, 0:T], %8 in (t) : (tensor<?x?xi1, #sdg.size<I, T>>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32, #sdg.size<I, T>>
// CHECK-NEXT:    %dx = sdg.sum %9[t] axes [0, 1] in (t) : (tensor<?x?xf32, #sdg.size<I, T>>) -> tensor<f32>
// CHECK-NEXT:    sdg.output "dx" %dx[t] in (t) : tensor<f32>
// CHECK-NEXT:    }

// -----

// a reader over a part of the points is zero at the others
sdg.program @stripes dims(t: T) {
  %x = sdg.input "x" : tensor<f32>
  %w = sdg.input "w" in (t) : tensor<f32>
  %y = sdg.mul %w[t], %x in (t where t mod 2 = 0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %dx = sdg.grad %y wrt %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "dx" %dx : tensor<f32>
}

// CHECK-LABEL: sdg.program @stripes dims(t: T) {
// CHECK-NEXT:    %x = sdg.input "x" : tensor<f32>
// CHECK-NEXT:    %w = sdg.input "w" in (t) : tensor<f32>
// CHECK-NEXT:    %dx = sdg.sum %w[0:2 * ((T + 1) floordiv 2) - 1:2] axes [0] : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    sdg.output "dx" %dx : tensor<f32>
// CHECK-NEXT:    }
