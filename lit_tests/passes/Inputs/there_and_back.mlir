// a forward recurrence, and a backward one that reads it
sdg.program @there_and_back dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<8xf32>
  %h = sdg.merge {t = 0 : %x[t], t > 0 : %h1[t - 1]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %h1 = sdg.sin %h[t] in (t) : (tensor<8xf32>) -> tensor<8xf32>
  %g = sdg.merge {t = T - 1 : %h[t], t < T - 1 : %g1[t]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %g1 = sdg.mul %g[t + 1], %h[t] in (t: 0 to T - 1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %first = sdg.merge {T > 0 : %g[0], true : %zero} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %zero = sdg.constant 0.0 : tensor<8xf32>
  sdg.output "first" %first : tensor<8xf32>
}
