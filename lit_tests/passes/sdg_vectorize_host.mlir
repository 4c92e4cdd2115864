// The calls of a host object along a dim become one call, of the vectorised form that they name.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-vectorize | filecheck %s
// RUN: tempo-opt %s --split-input-file --check-each -p 'sdg-vectorize{dims=t}' | filecheck %s --check-prefix=ONE
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-vectorize,sdg-simplify,sdg-devectorize,sdg-schedule | filecheck %s --check-prefix=LOOP

// where there is no point there is no call, and no row of its results
sdg.program @environments dims(t: T, b: B) {
  %w = sdg.input "w" : tensor<4x2xf32>
  %env = sdg.host_state @env : !sdg.token
  %n = sdg.index b in (b) : tensor<i64>
  %e0 = sdg.merge {b = 0 : %env, b > 0 : %e1[b - 1]} in (b) : (!sdg.token, !sdg.token) -> !sdg.token
  %first, %e1 = sdg.host @env::@reset(%n[b]) after %e0[b] vectorized @reset_all along (b) in (b) : (tensor<i64>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  %obs = sdg.merge {t = 0 : %first[b], t > 0 : %after[t - 1, b]} in (t, b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %act = sdg.contract "k,kn->n" %obs[t, b], %w in (t, b) : (tensor<4xf32>, tensor<4x2xf32>) -> tensor<2xf32>
  %et = sdg.merge {t = 0 : %e1[B - 1], t > 0 : %e2[t - 1, B - 1]} in (t where B >= 1) : (!sdg.token, !sdg.token) -> !sdg.token
  %eb = sdg.merge {b = 0 : %et[t], b > 0 : %e2[t, b - 1]} in (t, b) : (!sdg.token, !sdg.token) -> !sdg.token
  %after, %reward, %e2 = sdg.host @env::@step(%n[b], %act[t, b]) after %eb[t, b] vectorized @step_all along (b) in (t, b) : (tensor<i64>, tensor<2xf32>, !sdg.token) -> (tensor<4xf32>, tensor<f32>, !sdg.token)
  %ret = sdg.sum %reward[t, 0:B] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "ret" %ret[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @environments dims(t: T, b: B) {
// CHECK:         %n = sdg.arange [call.start.b:B + call.start.b] : tensor<?xi64, #sdg.size<B>>
// CHECK-NEXT:    %first, %0 = sdg.host @env::@reset(%n) after %env vectorized @reset_all along (b) over (b) in (where B >= 1) : (tensor<?xi64, #sdg.size<B>>, !sdg.token) -> (tensor<?x4xf32, #sdg.size<B>>, !sdg.token)
// CHECK-NEXT:    %1 = sdg.constant 0.0 : tensor<f32>
// CHECK-NEXT:    %2 = sdg.broadcast %1 : (tensor<f32>) -> tensor<?x4xf32, #sdg.size<B>>
// CHECK-NEXT:    %first_1 = sdg.merge {B >= 1 : %first, true : %2} :
// CHECK-NEXT:    %obs = sdg.merge {t = 0 : %first_1, t > 0 : %after[t - 1]} in (t) :
// CHECK-NEXT:    %act = sdg.contract "bk,kn->bn" %obs[t], %w in (t) :
// CHECK-NEXT:    %et = sdg.merge {t = 0 : %0, t > 0 : %3[t - 1]} in (t where B >= 1) : (!sdg.token, !sdg.token) -> !sdg.token
// CHECK-NEXT:    %after_1, %reward, %3 = sdg.host @env::@step(%n, %act[t]) after %et[t] vectorized @step_all along (b) over (b) in (t where B >= 1) : (tensor<?xi64, #sdg.size<B>>, tensor<?x2xf32, #sdg.size<B>>, !sdg.token) -> (tensor<?x4xf32, #sdg.size<B>>, tensor<?xf32, #sdg.size<B>>, !sdg.token)
// CHECK:         %after = sdg.merge {B >= 1 : %after_1[t], true : %5} in (t) :
// CHECK:         %reward_1 = sdg.merge {B >= 1 : %reward[t], true : %6} in (t) :
// CHECK-NEXT:    %ret = sdg.sum %reward_1[t] axes [0] in (t) :
// LOOP-LABEL:  loop.program @environments
// LOOP:          loop.if B >= 1 {
// LOOP:            loop.host @env::@reset vectorized @reset_all along (b) over (b) ins(%{{.*}}) outs(%{{.*}})
// LOOP:          loop.for t = 0 to T {
// LOOP:            loop.if B >= 1 {
// LOOP:              loop.host @env::@step at (t = t) vectorized @step_all along (b) over (b) ins(

// -----

// both dims, the inner one first: the axes stand in the order of the dims; what is the same at all points is repeated
sdg.program @both dims(t: T, b: 3) where T >= 1 {
  %x = sdg.input "x" in (t, b) : tensor<f32>
  %k = sdg.input "k" : tensor<2xf32>
  %obj = sdg.host_state @obj : !sdg.token
  %et = sdg.merge {t = 0 : %obj, t > 0 : %e[t - 1, 2]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %eb = sdg.merge {b = 0 : %et[t], b > 0 : %e[t, b - 1]} in (t, b) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %e = sdg.host @obj::@score(%x[t, b], %k) after %eb[t, b] vectorized @scores along (t, b) in (t, b) : (tensor<f32>, tensor<2xf32>, !sdg.token) -> (tensor<f32>, !sdg.token)
  sdg.output "y" %y[t, b] in (t, b) : tensor<f32>
}

// CHECK-LABEL: sdg.program @both
// CHECK:         %0 = sdg.broadcast %k : (tensor<2xf32>) -> tensor<3x2xf32>
// CHECK-NEXT:    %1 = sdg.broadcast %0 : (tensor<3x2xf32>) -> tensor<?x3x2xf32, #sdg.size<T>>
// CHECK-NEXT:    %y, %2 = sdg.host @obj::@score(%x[0:T, 0:3], %1) after %obj vectorized @scores along (t, b) over (t, b) :

// -----

// a part of the points, as many as the outer dim says; the call has no result
sdg.program @triangle dims(t: T, b: B) where B >= T {
  %x = sdg.input "x" in (t, b) : tensor<f32>
  %log = sdg.host_state @log : !sdg.token
  %et = sdg.merge {t = 0 : %log, t > 0 : %e[t - 1, t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %eb = sdg.merge {b = 0 : %et[t], b > 0 : %e[t, b - 1]} in (t, b: 0 to t + 1) : (!sdg.token, !sdg.token) -> !sdg.token
  %e = sdg.host @log::@show(%x[t, b]) after %eb[t, b] vectorized @show_all along (b) in (t, b: 0 to t + 1) : (tensor<f32>, !sdg.token) -> (!sdg.token)
}

// CHECK-LABEL: sdg.program @triangle
// CHECK:         %et = sdg.merge {t = 0 : %log, t > 0 : %0[t - 1]} in (t) :
// CHECK-NEXT:    %0 = sdg.host @log::@show(%x[t, 0:t + 1]) after %et[t] vectorized @show_all along (b) over (b: 0 to t + 1) in (t) :
// CHECK-NEXT:  }
// LOOP-LABEL:  loop.program @triangle
// LOOP:          loop.for t = 0 to T {
// LOOP:            loop.host @log::@show at (t = t) vectorized @show_all along (b) over (b: 0 to t + 1) ins(%x[t, 0:t + 1])

// -----

// tokens by cases of two dims; then of one
sdg.program @cases dims(b: B, t: T) {
  %x = sdg.input "x" in (b, t) : tensor<f32>
  %h = sdg.host_state @h : !sdg.token
  %e = sdg.merge {b = 0 and t = 0 : %h, t > 0 : %n[b, t - 1], b > 0 : %n[b - 1, T - 1]} in (b, t) : (!sdg.token, !sdg.token, !sdg.token) -> !sdg.token
  %y, %n = sdg.host @h::@f(%x[b, t]) after %e[b, t] vectorized @f_all along (b, t) in (b, t) : (tensor<f32>, !sdg.token) -> (tensor<f32>, !sdg.token)
  sdg.output "y" %y[b, t] in (b, t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @cases
// CHECK:         %y, %0 = sdg.host @h::@f(%x[0:B, 0:T]) after %h vectorized @f_all along (b, t) over (b, t) in (where B >= 1 and T >= 1) :
// ONE-LABEL:   sdg.program @cases
// ONE:           %0 = sdg.merge {b = 0 : %h, b > 0 : %1[b - 1]} in (b where T >= 1) : (!sdg.token, !sdg.token) -> !sdg.token
// ONE-NEXT:      %y, %1 = sdg.host @h::@f(%x[b, 0:T]) after %0[b] vectorized @f_all along (b, t) over (t) in (b where T >= 1) :

// -----

// the vectorised calls of one object on either side of a call by itself
sdg.program @between dims(t: T) where T >= 1 {
  %x = sdg.input "x" in (t) : tensor<f32>
  %h = sdg.host_state @h : !sdg.token
  %e = sdg.merge {t = 0 : %h, t > 0 : %n[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %n = sdg.host @h::@f(%x[t]) after %e[t] vectorized @f_all along (t) in (t) : (tensor<f32>, !sdg.token) -> (tensor<f32>, !sdg.token)
  %one, %m = sdg.host @h::@between() after %n[T - 1] : (!sdg.token) -> (tensor<f32>, !sdg.token)
  %f = sdg.merge {t = 0 : %m, t > 0 : %o[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %z, %o = sdg.host @h::@f(%y[t]) after %f[t] vectorized @f_all along (t) in (t) : (tensor<f32>, !sdg.token) -> (tensor<f32>, !sdg.token)
  %s = sdg.add %z[t], %one in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "s" %s[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @between
// CHECK:         %y, %0 = sdg.host @h::@f(%x[0:T]) after %h vectorized @f_all along (t) over (t) :
// CHECK-NEXT:    %one, %m = sdg.host @h::@between() after %0 :
// CHECK-NEXT:    %z, %1 = sdg.host @h::@f(%y) after %m vectorized @f_all along (t) over (t) :
