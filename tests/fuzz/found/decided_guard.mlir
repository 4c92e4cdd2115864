// isl decides a guard
builtin.module {
  sdg.program @random dims(b: B, t: B) {
    %0 = sdg.input "x3" in (b, t) : tensor<1x1xf32>
    %1 = sdg.merge {b + t < B : %0[0, 0], true : %0[0, t]} in (b, t) : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
    %2 = sdg.constant 0.0 : tensor<1x1xf32>
    %3 = sdg.merge {t + 1 < B : %1[max(0, b - 2), t + 1], true : %2} in (b, t) : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
    sdg.output "exact0" %3[b, t] in (b, t) : tensor<1x1xf32>
  }
}
