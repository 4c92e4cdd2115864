// No axis for a dim along which something recurs, is drawn or calls a host, or whose points are no range.
// RUN: tempo-opt %s --split-input-file --check-each -p 'sdg-vectorize{all=true}' | filecheck %s
// RUN: tempo-opt %s --split-input-file --remarks -p 'sdg-vectorize{all=true}' 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: not tempo-opt %s --split-input-file -p 'sdg-vectorize{dims=q}' 2>&1 | filecheck %s --check-prefix=DIM

// REMARK: remark: not vectorised along t: it recurs along it
// REMARK: remark: not vectorised along s: it recurs along it
// DIM: error: sdg-vectorize: @recurs has no dim `q`; it declares t

sdg.program @recurs dims(t: T) {
  %w = sdg.input "w" : tensor<4x4xf32>
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %h = sdg.merge {t = 0 : %x[0], t > 0 : %g[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g = sdg.contract "a,ab->b" %h[t], %w in (t) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  sdg.output "g" %g[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @recurs
// CHECK:         %h = sdg.merge {t = 0 : %x[0], t > 0 : %g[t - 1]} in (t)
// CHECK-NEXT:    %g = sdg.contract "a,ab->b" %h[t], %w in (t)

// -----

sdg.program @called dims(t: T) {
  %u = sdg.random normal id 0 in (t) : tensor<4xf32>
  %e0 = sdg.host_state @env : !sdg.token
  %e = sdg.merge {t = 0 : %e0, t > 0 : %e1[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %e1 = sdg.host @env::@step(%u[t]) after %e[t] in (t) : (tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @called
// CHECK:         sdg.random normal id 0 in (t)
// CHECK:         sdg.host @env::@step(%u[t]) after %e[t] in (t)

// -----

// each step has another shape, and reads in reverse
sdg.program @shapes dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %p = sdg.exp %x[0:t + 1] in (t) : (tensor<f32>) -> tensor<?xf32, #sdg.size<t + 1>>
  %s = sdg.sum %p[t] axes [0] in (t) : (tensor<?xf32, #sdg.size<t + 1>>) -> tensor<f32>
  %r = sdg.neg %x[T - 1 - t] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "s" %s[t] in (t) : tensor<f32>
  sdg.output "r" %r[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @shapes
// CHECK:         sdg.exp %x[0:t + 1] in (t)
// CHECK:         sdg.neg %x[T - t - 1] in (t)

// -----

// two steps back is a recurrence too
sdg.program @two_steps_back dims(s: S) {
  %x = sdg.input "x" in (s) : tensor<4xf32>
  %h = sdg.merge {s < 2 : %x[s], s >= 2 : %g[s - 2]} in (s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g = sdg.tanh %h[s] in (s) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "g" %g[s] in (s) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @two_steps_back
// CHECK:         %h = sdg.merge {s < 2 : %x[s], s >= 2 : %g[s - 2]} in (s)
// CHECK-NEXT:    %g = sdg.tanh %h[s] in (s)

// -----

// rows of t, as many as i says, of which a range of i is read: an axis would have several extents
sdg.program @ragged dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : tensor<4xf32>
  %h = sdg.tanh %x[i, t] in (i, t: 0 to min(i + 1, T)) : (tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.sum %h[0:i + 1, 0] axes [0] in (i where T >= 1) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "s" %s[i] in (i where T >= 1) : tensor<4xf32>
}

// REMARK: remark: not vectorised along t: a reader takes rows of several extents at once
// CHECK-LABEL: sdg.program @ragged
// CHECK:         %h = sdg.tanh %x[i, t] in (i, t: 0 to min(T, i + 1))
