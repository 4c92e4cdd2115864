// what only iterations read is not made for the step that has none
builtin.module {
  sdg.program @random dims(t: T, m: T + 1) {
    %0 = sdg.input "x0" in (t) : tensor<3xf64>
    %1 = sdg.input "x1" in (t) : tensor<3xf64>
    %2 = sdg.exp %1[t] in (t: 1 to T) : (tensor<3xf64>) -> tensor<3xf64>
    %3 = sdg.merge {m = 0 : %0[t], m > 0 : %5[t, m - 1]} in (t, m: 0 to t + 1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %4 = sdg.tanh %3[t, m] in (t, m: 0 to t) : (tensor<3xf64>) -> tensor<3xf64>
    %5 = sdg.div %4[t, m], %2[t] in (t, m: 0 to t) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    sdg.output "double0" %3[t, t] in (t) : tensor<3xf64>
  }
}
