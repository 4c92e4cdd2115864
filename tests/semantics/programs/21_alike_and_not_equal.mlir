// Case 21: what looks alike and is not equal.
sdg.program @alike_and_not_equal dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<2xf32>
  %b = sdg.input "b" in (t) : tensor<2xf32>
  %c = sdg.gt %a[t], %b[t] in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  %0 = sdg.select %c[t], %a[t], %b[t] in (t) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = sdg.select %c[t], %b[t], %a[t] in (t) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = sdg.constant 2.0 : tensor<f32>
  %3 = sdg.mul %1[t], %2 in (t) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %4 = sdg.sub %0[t], %3[t] in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  sdg.output "choice" %4[t] in (t) : tensor<2xf32>
  %5 = sdg.add %a[t], %b[t] in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %6 = sdg.add %a[t], %b[max(0, t - 1)] in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %7 = sdg.mul %5[t], %6[t] in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  sdg.output "sum" %7[t] in (t) : tensor<2xf32>
  %8 = sdg.random uniform id 0 in (t) : tensor<2xf32>
  %9 = sdg.random uniform id 1 in (t) : tensor<2xf32>
  sdg.output "u" %8[t] in (t) : tensor<2xf32>
  sdg.output "v" %9[t] in (t) : tensor<2xf32>
}
