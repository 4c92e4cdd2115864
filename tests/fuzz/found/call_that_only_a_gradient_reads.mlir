// a call whose results nothing needs once the gradient is known is still made as often
builtin.module {
  sdg.program @calls dims(t: T) {
    %0 = sdg.input "x" in (t) : tensor<f32>
    %1 = sdg.parameter "w" : tensor<f32>
    %2 = sdg.host_state @recorder : !sdg.token
    %3 = sdg.merge {t = 0 : %2, t > 0 : %5[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
    %4, %5 = sdg.host @recorder::@first(%0[t]) after %3[t] in (t) : (tensor<f32>, !sdg.token) -> (tensor<f32>, !sdg.token)
    %6 = sdg.sin %4[t] in (t) : (tensor<f32>) -> tensor<f32>
    %7 = sdg.add %1, %6[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %8 = sdg.grad %7 wrt %1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    sdg.output "single0" %8 : tensor<f32>
  }
}
