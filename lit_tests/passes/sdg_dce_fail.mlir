// What somebody outside sees stays: the signature, host calls without results, and what a gradient still needs.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-dce | filecheck %s

sdg.program @seen dims(t: T) {
  %unread = sdg.input "unread" in (t) : tensor<f32>
  %unused = sdg.parameter "unused" : tensor<f32>
  %x = sdg.input "x" in (t) : tensor<f32>
  %log = sdg.host_state @log : !sdg.token
  %e = sdg.merge {t = 0 : %log, t > 0 : %e1[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %twice = sdg.add %x[t], %x[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %e1 = sdg.host @log::@write(%twice[t]) after %e[t] in (t) : (tensor<f32>, !sdg.token) -> !sdg.token
}

// CHECK-LABEL: sdg.program @seen
// CHECK-NEXT:    %unread = sdg.input "unread"
// CHECK-NEXT:    %unused = sdg.parameter "unused"
// CHECK-NEXT:    %x = sdg.input "x"
// CHECK-NEXT:    %log = sdg.host_state @log
// CHECK-NEXT:    %e = sdg.merge
// CHECK-NEXT:    %twice = sdg.add
// CHECK-NEXT:    %e1 = sdg.host @log::@write(%twice[t])
// CHECK-NEXT:  }

// -----

// the cycle is read by an output, at one point only
sdg.program @live_cycle dims(t: T) where T >= 1 {
  %x = sdg.input "x" in (t) : tensor<f32>
  %s = sdg.merge {t = 0 : %x[t], t > 0 : %h[t - 1]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %h = sdg.tanh %s[t] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "last" %h[T - 1] : tensor<f32>
}

// CHECK-LABEL: sdg.program @live_cycle
// CHECK:         sdg.merge
// CHECK:         sdg.tanh
