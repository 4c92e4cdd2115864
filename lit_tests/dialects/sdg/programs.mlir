// The programs of the documentation: each prints as it is written, in custom and in generic form.
// RUN: TEMPO_ROUNDTRIP
// RUN: TEMPO_GENERIC_ROUNDTRIP

sdg.program @rnn dims(i: I, t: T) where T >= 1 {
  %x = sdg.input "x" in (i, t) : tensor<16x64xf32>
  %y = sdg.input "y" in (i, t) : tensor<16x64xf32>
  %zero = sdg.constant 0.0 : tensor<16x64xf32>
  %one = sdg.constant 1.0 : tensor<16x64xf32>
  %c = sdg.constant 0.5 : tensor<f32>
  %w0 = sdg.parameter "w" : tensor<64x64xf32>
  %w = sdg.merge {i = 0 : %w0, i > 0 : %w1[i - 1]} in (i) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[i, t - 1]} in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %sw = sdg.contract "bk,kn->bn" %s[i, t], %w[i] in (i, t) : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %a = sdg.add %x[i, t], %sw[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %h = sdg.tanh %a[i, t] in (i, t) : (tensor<16x64xf32>) -> tensor<16x64xf32>
  %d = sdg.sub %h[i, t], %y[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %d2 = sdg.mul %d[i, t], %d[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %loss = sdg.mean %d2[i, t] axes [0, 1] in (i, t) : (tensor<16x64xf32>) -> tensor<f32>
  %mean = sdg.mean %loss[i, 0:T] axes [0] in (i) : (tensor<f32>) -> tensor<f32>
  %gd = sdg.mul %d[i, t], %c in (i, t) : (tensor<16x64xf32>, tensor<f32>) -> tensor<16x64xf32>
  %gn = sdg.merge {t < T - 1 : %gs[i, t + 1], t = T - 1 : %zero} in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %hh = sdg.mul %h[i, t], %h[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %u = sdg.sub %one, %hh[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %gh = sdg.add %gd[i, t], %gn[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %ga = sdg.mul %gh[i, t], %u[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %gs = sdg.contract "bn,kn->bk" %ga[i, t], %w[i] in (i, t) : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %gw = sdg.contract "bk,bn->kn" %s[i, t], %ga[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<64x64xf32>
  %dw = sdg.sum %gw[i, 0:T] axes [0] in (i) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %w1 = sdg.sub %w[i], %dw[i] in (i) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %wI = sdg.merge {I = 0 : %w0, I > 0 : %w1[I - 1]} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  sdg.output "w" %wI : tensor<64x64xf32>
  sdg.output "loss" %mean[i] in (i) : tensor<f32>
}

// CHECK-LABEL: sdg.program @rnn dims(i: I, t: T) where T >= 1 {
// CHECK-NEXT:    %x = sdg.input "x" in (i, t) : tensor<16x64xf32>
// CHECK-NEXT:    %y = sdg.input "y" in (i, t) : tensor<16x64xf32>
// CHECK-NEXT:    %zero = sdg.constant 0.0 : tensor<16x64xf32>
// CHECK-NEXT:    %one = sdg.constant 1.0 : tensor<16x64xf32>
// CHECK-NEXT:    %c = sdg.constant 0.5 : tensor<f32>
// CHECK-NEXT:    %w0 = sdg.parameter "w" : tensor<64x64xf32>
// CHECK-NEXT:    %w = sdg.merge {i = 0 : %w0, i > 0 : %w1[i - 1]} in (i) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    %s = sdg.merge {t = 0 : %zero, t > 0 : %h[i, t - 1]} in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %sw = sdg.contract "bk,kn->bn" %s[i, t], %w[i] in (i, t) : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %a = sdg.add %x[i, t], %sw[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %h = sdg.tanh %a[i, t] in (i, t) : (tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %d = sdg.sub %h[i, t], %y[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %d2 = sdg.mul %d[i, t], %d[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %loss = sdg.mean %d2[i, t] axes [0, 1] in (i, t) : (tensor<16x64xf32>) -> tensor<f32>
// CHECK-NEXT:    %mean = sdg.mean %loss[i, 0:T] axes [0] in (i) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    %gd = sdg.mul %d[i, t], %c in (i, t) : (tensor<16x64xf32>, tensor<f32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %gn = sdg.merge {t < T - 1 : %gs[i, t + 1], t = T - 1 : %zero} in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %hh = sdg.mul %h[i, t], %h[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %u = sdg.sub %one, %hh[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %gh = sdg.add %gd[i, t], %gn[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %ga = sdg.mul %gh[i, t], %u[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %gs = sdg.contract "bn,kn->bk" %ga[i, t], %w[i] in (i, t) : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
// CHECK-NEXT:    %gw = sdg.contract "bk,bn->kn" %s[i, t], %ga[i, t] in (i, t) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    %dw = sdg.sum %gw[i, 0:T] axes [0] in (i) : (tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    %w1 = sdg.sub %w[i], %dw[i] in (i) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    %wI = sdg.merge {I = 0 : %w0, I > 0 : %w1[I - 1]} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    sdg.output "w" %wI : tensor<64x64xf32>
// CHECK-NEXT:    sdg.output "loss" %mean[i] in (i) : tensor<f32>
// CHECK-NEXT:    }

// -----

!kv = tensor<4x32xf32>
!q = tensor<4x2x32xf32>
!score = tensor<4x2x?xf32, #sdg.size<min(t + 1, 64)>>
!tok = tensor<i64>
sdg.program @decode dims(t: T, p: P) where 1 <= P <= T {
  %prompt = sdg.input "prompt" in (p) : !tok
  %token = sdg.merge {t < P : %prompt[t], t > 0 : %next[t - 1]} in (t) : (!tok, !tok) -> !tok
  %table = sdg.parameter "model.embed_tokens.weight" : tensor<1000x256xf32>
  %x0 = sdg.gather %table, %token[t] axis 0 in (t) : (tensor<1000x256xf32>, !tok) -> tensor<256xf32>
  %q0 = sdg.reshape %x0[t] in (t) : (tensor<256xf32>) -> !q
  %k0 = sdg.slice %x0[t] take [0:128] in (t) : (tensor<256xf32>) -> tensor<128xf32>
  %k = sdg.reshape %k0[t] in (t) : (tensor<128xf32>) -> !kv
  %v = sdg.reshape %k0[t] in (t) : (tensor<128xf32>) -> !kv
  %sc = sdg.contract "hgd,nhd->hgn" %q0[t], %k[max(0, t - 63):t + 1] in (t) : (!q, !kv) -> !score
  %pr = sdg.softmax %sc[t] axis 2 in (t) : (!score) -> !score
  %o = sdg.contract "hgn,nhd->hgd" %pr[t], %v[max(0, t - 63):t + 1] in (t) : (!score, !kv) -> !q
  %flat = sdg.reshape %o[t] in (t) : (!q) -> tensor<256xf32>
  %logits = sdg.contract "vd,d->v" %table, %flat[t] in (t: P - 1 to T - 1) : (tensor<1000x256xf32>, tensor<256xf32>) -> tensor<1000xf32>
  %next = sdg.argmax %logits[t] axis 0 in (t: P - 1 to T - 1) : (tensor<1000xf32>) -> !tok
  sdg.output "token" %token[t] in (t) : !tok
}

// CHECK-LABEL: sdg.program @decode dims(t: T, p: P) where 1 <= P <= T {
// CHECK-NEXT:    %prompt = sdg.input "prompt" in (p) : tensor<i64>
// CHECK-NEXT:    %token = sdg.merge {t < P : %prompt[t], t > 0 : %next[t - 1]} in (t) : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:    %table = sdg.parameter "model.embed_tokens.weight" : tensor<1000x256xf32>
// CHECK-NEXT:    %x0 = sdg.gather %table, %token[t] axis 0 in (t) : (tensor<1000x256xf32>, tensor<i64>) -> tensor<256xf32>
// CHECK-NEXT:    %q0 = sdg.reshape %x0[t] in (t) : (tensor<256xf32>) -> tensor<4x2x32xf32>
// CHECK-NEXT:    %k0 = sdg.slice %x0[t] take [0:128] in (t) : (tensor<256xf32>) -> tensor<128xf32>
// CHECK-NEXT:    %k = sdg.reshape %k0[t] in (t) : (tensor<128xf32>) -> tensor<4x32xf32>
// CHECK-NEXT:    %v = sdg.reshape %k0[t] in (t) : (tensor<128xf32>) -> tensor<4x32xf32>
// CHECK-NEXT:    %sc = sdg.contract "hgd,nhd->hgn" %q0[t], %k[max(0, t - 63):t + 1] in (t) : (tensor<4x2x32xf32>, tensor<4x32xf32>) -> tensor<4x2x?xf32, #sdg.size<min(t + 1, 64)>>
// CHECK-NEXT:    %pr = sdg.softmax %sc[t] axis 2 in (t) : (tensor<4x2x?xf32, #sdg.size<min(t + 1, 64)>>) -> tensor<4x2x?xf32, #sdg.size<min(t + 1, 64)>>
// CHECK-NEXT:    %o = sdg.contract "hgn,nhd->hgd" %pr[t], %v[max(0, t - 63):t + 1] in (t) : (tensor<4x2x?xf32, #sdg.size<min(t + 1, 64)>>, tensor<4x32xf32>) -> tensor<4x2x32xf32>
// CHECK-NEXT:    %flat = sdg.reshape %o[t] in (t) : (tensor<4x2x32xf32>) -> tensor<256xf32>
// CHECK-NEXT:    %logits = sdg.contract "vd,d->v" %table, %flat[t] in (t: P - 1 to T - 1) : (tensor<1000x256xf32>, tensor<256xf32>) -> tensor<1000xf32>
// CHECK-NEXT:    %next = sdg.argmax %logits[t] axis 0 in (t: P - 1 to T - 1) : (tensor<1000xf32>) -> tensor<i64>
// CHECK-NEXT:    sdg.output "token" %token[t] in (t) : tensor<i64>
// CHECK-NEXT:    }

// -----

sdg.program @host dims(i: I, t: T) where T >= 1 {
  %iteration = sdg.index i in (i) : tensor<i64>
  %env = sdg.host_state @cartpoles : !sdg.token
  %e0 = sdg.merge {i = 0 : %env, i > 0 : %e2[i - 1, T - 1]} in (i) : (!sdg.token, !sdg.token) -> !sdg.token
  %first, %e1 = sdg.host @cartpoles::@reset(%iteration[i]) after %e0[i] in (i) : (tensor<i64>, !sdg.token) -> (tensor<8x4xf32>, !sdg.token)
  %et = sdg.merge {t = 0 : %e1[i], t > 0 : %e2[i, t - 1]} in (i, t) : (!sdg.token, !sdg.token) -> !sdg.token
  %u = sdg.random uniform id 3 in (i, t) : tensor<8xf32>
  %action = sdg.cast %u[i, t] in (i, t) : (tensor<8xf32>) -> tensor<8xi64>
  %after, %reward, %terminated, %truncated, %e2 = sdg.host @cartpoles::@step(%action[i, t]) after %et[i, t] in (i, t) : (tensor<8xi64>, !sdg.token) -> (tensor<8x4xf32>, tensor<8xf64>, tensor<8xi1>, tensor<8xi1>, !sdg.token)
}

// CHECK-LABEL: sdg.program @host dims(i: I, t: T) where T >= 1 {
// CHECK-NEXT:    %iteration = sdg.index i in (i) : tensor<i64>
// CHECK-NEXT:    %env = sdg.host_state @cartpoles : !sdg.token
// CHECK-NEXT:    %e0 = sdg.merge {i = 0 : %env, i > 0 : %e2[i - 1, T - 1]} in (i) : (!sdg.token, !sdg.token) -> !sdg.token
// CHECK-NEXT:    %first, %e1 = sdg.host @cartpoles::@reset(%iteration[i]) after %e0[i] in (i) : (tensor<i64>, !sdg.token) -> (tensor<8x4xf32>, !sdg.token)
// CHECK-NEXT:    %et = sdg.merge {t = 0 : %e1[i], t > 0 : %e2[i, t - 1]} in (i, t) : (!sdg.token, !sdg.token) -> !sdg.token
// CHECK-NEXT:    %u = sdg.random uniform id 3 in (i, t) : tensor<8xf32>
// CHECK-NEXT:    %action = sdg.cast %u[i, t] in (i, t) : (tensor<8xf32>) -> tensor<8xi64>
// CHECK-NEXT:    %after, %reward, %terminated, %truncated, %e2 = sdg.host @cartpoles::@step(%action[i, t]) after %et[i, t] in (i, t) : (tensor<8xi64>, !sdg.token) -> (tensor<8x4xf32>, tensor<8xf64>, tensor<8xi1>, tensor<8xi1>, !sdg.token)
// CHECK-NEXT:    }
