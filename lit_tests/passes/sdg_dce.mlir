// What no output and no host call needs goes, cycles included; inputs and parameters are the signature and stay.
// RUN: tempo-opt %s --check-each -p sdg-dce | filecheck %s

sdg.program @dead dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %k = sdg.parameter "k" : tensor<f32>
  %zero = sdg.constant 0.0 : tensor<f32>
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %h = sdg.tanh %s[t] in (t) : (tensor<f32>) -> tensor<f32>
  %unused = sdg.host_state @object : !sdg.token
  %log = sdg.host_state @log : !sdg.token
  %e = sdg.merge {t = 0 : %log, t > 0 : %e1[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %e1 = sdg.host @log::@write(%x[t]) after %e[t] in (t) : (tensor<f32>, !sdg.token) -> (!sdg.token)
  %y = sdg.exp %x[t] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @dead dims(t: T) {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<f32>
// CHECK-NEXT:    %k = sdg.parameter "k" : tensor<f32>
// CHECK-NEXT:    %log = sdg.host_state @log : !sdg.token
// CHECK-NEXT:    %e = sdg.merge {t = 0 : %log, t > 0 : %e1[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
// CHECK-NEXT:    %e1 = sdg.host @log::@write(%x[t]) after %e[t] in (t) : (tensor<f32>, !sdg.token) -> !sdg.token
// CHECK-NEXT:    %y = sdg.exp %x[t] in (t) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    sdg.output "y" %y[t] in (t) : tensor<f32>
// CHECK-NEXT:  }
