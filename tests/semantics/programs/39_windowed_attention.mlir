// Case 39: causal attention over the last w keys.
sdg.program @windowed_attention dims(t: T) {
  %q = sdg.input "q" in (t) : tensor<2xf64>
  %k = sdg.input "k" in (t) : tensor<2xf64>
  %v = sdg.input "v" in (t) : tensor<2xf64>
  %0 = sdg.contract "d,nd->n" %q[t], %k[max(0, t):t + 1] in (t) : (tensor<2xf64>, tensor<2xf64>) -> tensor<1xf64>
  %1 = sdg.softmax %0[t] axis 0 in (t) : (tensor<1xf64>) -> tensor<1xf64>
  %2 = sdg.contract "n,nd->d" %1[t], %v[max(0, t):t + 1] in (t) : (tensor<1xf64>, tensor<2xf64>) -> tensor<2xf64>
  sdg.output "window_1" %2[t] in (t) : tensor<2xf64>
  %3 = sdg.contract "d,nd->n" %q[t], %k[max(0, t - 2):t + 1] in (t) : (tensor<2xf64>, tensor<2xf64>) -> tensor<?xf64, #sdg.size<min(t + 1, 3)>>
  %4 = sdg.softmax %3[t] axis 0 in (t) : (tensor<?xf64, #sdg.size<min(t + 1, 3)>>) -> tensor<?xf64, #sdg.size<min(t + 1, 3)>>
  %5 = sdg.contract "n,nd->d" %4[t], %v[max(0, t - 2):t + 1] in (t) : (tensor<?xf64, #sdg.size<min(t + 1, 3)>>, tensor<2xf64>) -> tensor<2xf64>
  sdg.output "window_3" %5[t] in (t) : tensor<2xf64>
  %6 = sdg.contract "d,nd->n" %q[t], %k[max(0, t - 15):t + 1] in (t) : (tensor<2xf64>, tensor<2xf64>) -> tensor<?xf64, #sdg.size<min(t + 1, 16)>>
  %7 = sdg.softmax %6[t] axis 0 in (t) : (tensor<?xf64, #sdg.size<min(t + 1, 16)>>) -> tensor<?xf64, #sdg.size<min(t + 1, 16)>>
  %8 = sdg.contract "n,nd->d" %7[t], %v[max(0, t - 15):t + 1] in (t) : (tensor<?xf64, #sdg.size<min(t + 1, 16)>>, tensor<2xf64>) -> tensor<2xf64>
  sdg.output "window_16" %8[t] in (t) : tensor<2xf64>
}
