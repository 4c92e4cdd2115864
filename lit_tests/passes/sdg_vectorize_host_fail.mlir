// Host calls stay one by one along a dim where one call could not do the same.
// RUN: tempo-opt %s --split-input-file --check-each --remarks -p 'sdg-vectorize{all=true}' 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: tempo-opt %s --split-input-file --check-each -p 'sdg-vectorize{all=true}' | filecheck %s
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-devectorize | filecheck %s --check-prefix=DEVECTORIZED
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-vectorize | filecheck %s --check-prefix=COST

// no vectorised form; one along another dim
// REMARK: remark: not vectorised along b: @env::@step names no vectorised form along it
sdg.program @none dims(b: B) {
  %x = sdg.input "x" in (b) : tensor<4xf32>
  %env = sdg.host_state @env : !sdg.token
  %e = sdg.merge {b = 0 : %env, b > 0 : %n[b - 1]} in (b) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %n = sdg.host @env::@step(%x[b]) after %e[b] in (b) : (tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  sdg.output "y" %y[b] in (b) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @none
// CHECK:         sdg.host @env::@step(%x[b]) after %e[b] in (b)

// -----

// the calls of two ops take turns
// REMARK: remark: not vectorised along b: other calls of @env stand between these
sdg.program @turns dims(b: B) {
  %x = sdg.input "x" in (b) : tensor<4xf32>
  %env = sdg.host_state @env : !sdg.token
  %e = sdg.merge {b = 0 : %env, b > 0 : %m[b - 1]} in (b) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %n = sdg.host @env::@step(%x[b]) after %e[b] vectorized @step_all along (b) in (b) : (tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  %m = sdg.host @env::@show(%y[b]) after %n[b] vectorized @show_all along (b) in (b) : (tensor<4xf32>, !sdg.token) -> !sdg.token
  sdg.output "y" %y[b] in (b) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @turns
// CHECK:         sdg.host @env::@step(%x[b]) after %e[b] vectorized @step_all along (b) in (b)
// CHECK:         sdg.host @env::@show(%y[b]) after %{{.*}}[b] vectorized @show_all along (b) in (b)

// -----

// the calls along the outer dim have those of the inner one between them, and the form is along the outer one alone
// REMARK: remark: not vectorised along t: @env::@step names no vectorised form along it
// REMARK: remark: not vectorised along b: other calls of @env stand between these
sdg.program @outer dims(b: B, t: T) where T >= 1 {
  %x = sdg.input "x" in (b, t) : tensor<4xf32>
  %env = sdg.host_state @env : !sdg.token
  %eb = sdg.merge {b = 0 : %env, b > 0 : %n[b - 1, T - 1]} in (b) : (!sdg.token, !sdg.token) -> !sdg.token
  %et = sdg.merge {t = 0 : %eb[b], t > 0 : %n[b, t - 1]} in (b, t) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %n = sdg.host @env::@step(%x[b, t]) after %et[b, t] vectorized @step_all along (b) in (b, t) : (tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  sdg.output "y" %y[b, t] in (b, t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @outer
// CHECK:         sdg.host @env::@step(%x[b, t]) after %et[b, t] vectorized @step_all along (b) in (b, t)

// -----

// from the last point to the first
// REMARK: remark: not vectorised along b: other calls of @env stand between these
sdg.program @backwards dims(b: B) {
  %x = sdg.input "x" in (b) : tensor<4xf32>
  %env = sdg.host_state @env : !sdg.token
  %e = sdg.merge {b = B - 1 : %env, b < B - 1 : %n[b + 1]} in (b) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %n = sdg.host @env::@step(%x[b]) after %e[b] vectorized @step_all along (b) in (b) : (tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  sdg.output "y" %y[b] in (b) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @backwards
// CHECK:         sdg.host @env::@step(%x[b]) after %e[b] vectorized @step_all along (b) in (b)

// -----

// a call is given what the call before has returned
// REMARK: remark: not vectorised along t: it recurs along it
sdg.program @recurs dims(t: T) {
  %zero = sdg.constant 0.0 : tensor<4xf32>
  %env = sdg.host_state @env : !sdg.token
  %e = sdg.merge {t = 0 : %env, t > 0 : %n[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %h = sdg.merge {t = 0 : %zero, t > 0 : %y[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y, %n = sdg.host @env::@step(%h[t]) after %e[t] vectorized @step_all along (t) in (t) : (tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @recurs
// CHECK:         sdg.host @env::@step(%h[t]) after %e[t] vectorized @step_all along (t) in (t)

// -----

// each call has another shape
// REMARK: remark: not vectorised along t: %x[0:t + 1]: it is read at more than a shift of the dim
sdg.program @shapes dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %env = sdg.host_state @env : !sdg.token
  %e = sdg.merge {t = 0 : %env, t > 0 : %n[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %n = sdg.host @env::@step(%x[0:t + 1]) after %e[t] vectorized @step_all along (t) in (t) : (tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @shapes
// CHECK:         sdg.host @env::@step(%x[0:t + 1]) after %e[t] vectorized @step_all along (t) in (t)

// -----

// a step reads the reset of its own point alone: the calls of two ops in one loop over b
// REMARK: remark: not vectorised along b: other calls of @env stand between these
sdg.program @inside dims(b: B, t: T) where T >= 1 {
  %x = sdg.input "x" in (b, t) : tensor<4xf32>
  %env = sdg.host_state @env : !sdg.token
  %e = sdg.merge {b = 0 : %env, b > 0 : %n[b - 1, T - 1]} in (b) : (!sdg.token, !sdg.token) -> !sdg.token
  %r, %m = sdg.host @env::@reset(%x[b, 0]) after %e[b] vectorized @reset_all along (b) in (b) : (tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  %et = sdg.merge {t = 0 : %m[b], t > 0 : %n[b, t - 1]} in (b, t) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %n = sdg.host @env::@step(%x[b, t]) after %et[b, t] in (b, t) : (tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  sdg.output "y" %y[b, t] in (b, t) : tensor<4xf32>
  sdg.output "r" %r[b] in (b) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @inside
// CHECK:         sdg.host @env::@reset(%x[b, 0]) after %e[b] vectorized @reset_all along (b) in (b)

// -----

// rows that memory moves no sooner than Python calls stay, unless all is asked for; sdg-devectorize leaves one call one
sdg.program @large dims(b: B) where B >= 1 {
  %x = sdg.input "x" in (b) : tensor<512x256xf32>
  %env = sdg.host_state @env : !sdg.token
  %e = sdg.merge {b = 0 : %env, b > 0 : %n[b - 1]} in (b) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %n = sdg.host @env::@step(%x[b]) after %e[b] vectorized @step_all along (b) in (b) : (tensor<512x256xf32>, !sdg.token) -> (tensor<f32>, !sdg.token)
  %one, %m = sdg.host @env::@step(%x[0:B]) after %n[B - 1] vectorized @step_all along (b) over (b) : (tensor<512x256xf32>, !sdg.token) -> (tensor<?xf32, #sdg.size<B>>, !sdg.token)
  %of = sdg.slice %one take [b] in (b) : (tensor<?xf32, #sdg.size<B>>) -> tensor<f32>
  %s = sdg.add %y[b], %of[b] in (b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "s" %s[b] in (b) : tensor<f32>
}

// CHECK-LABEL: sdg.program @large
// CHECK:         sdg.host @env::@step(%x[0:B]) after %env vectorized @step_all along (b) over (b) :
// COST-LABEL:  sdg.program @large
// COST:          sdg.host @env::@step(%x[b]) after %e[b] vectorized @step_all along (b) in (b)
// DEVECTORIZED-LABEL: sdg.program @large
// DEVECTORIZED:    %one, %m = sdg.host @env::@step(%x[0:B]) after %n[B - 1] vectorized @step_all along (b) over (b) :
