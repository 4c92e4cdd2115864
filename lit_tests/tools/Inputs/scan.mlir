sdg.program @scan dims(t: T) where T >= 1 {
  %zero = sdg.constant 0.0 : tensor<4xf32>
  %w = sdg.parameter "w" : tensor<4xf32>
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %h = sdg.merge {t = 0 : %zero, t > 0 : %s[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %xw = sdg.mul %x[t], %w in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.add %h[t], %xw[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "s" %s[t] in (t) : tensor<4xf32>
}
