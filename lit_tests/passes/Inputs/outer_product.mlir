// 16 numbers a step, 256 of their sum
sdg.program @outer_product dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<16xf32>
  %x = sdg.merge {t = 0 : %a[t], t > 0 : %x1[t - 1]} in (t) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %x1 = sdg.tanh %x[t] in (t) : (tensor<16xf32>) -> tensor<16xf32>
  %s = sdg.contract "tk,tn->kn" %x[0:T], %x[0:T] : (tensor<16xf32>, tensor<16xf32>) -> tensor<16x16xf32>
  sdg.output "s" %s : tensor<16x16xf32>
}
