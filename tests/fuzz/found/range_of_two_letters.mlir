// a contraction of two ranges of one dim, a letter for each: a row of one would need all rows of the other
builtin.module {
  sdg.program @random dims(t: T) {
    %x = sdg.input "x" in (t) : tensor<3xf32>
    %z = sdg.constant 0.5 : tensor<3xf32>
    %hm = sdg.merge {t = 0 : %z, true : %h[t - 1]} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %ha = sdg.add %hm[t], %x[t] in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %h = sdg.tanh %ha[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
    %gm = sdg.merge {t = 0 : %z, true : %g[t - 1]} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %ga = sdg.sub %gm[t], %x[t] in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %g = sdg.tanh %ga[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
    %y = sdg.contract "ti,si->" %h[0:T], %g[0:T] : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
    sdg.output "single0" %y : tensor<f32>
  }
}
