// a read of no point of a range reads one point of a vectorised dim that may not be there
builtin.module {
  sdg.program @random dims(b: B, i: I, t: B) where P <= B {
    %0 = sdg.input "x0" in (b, i, t) : tensor<f64>
    %1 = sdg.constant -2.5 : tensor<f64>
    %2 = sdg.merge {i - 1 >= 0 and i - 1 < I : %0[b, i - 1, t], true : %1} in (b, i, t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %3 = sdg.contract ",ab,c->b" %2[b, i, t], %2[1, 0:i + 1, t + 1:B], %2[b, i, 0:P] in (b, i, t) : (tensor<f64>, tensor<f64>, tensor<f64>) -> tensor<?xf64, #sdg.size<max(0, B - t - 1)>>
    %4 = sdg.sum %3[b, i, t] axes [0] in (b, i, t) : (tensor<?xf64, #sdg.size<max(0, B - t - 1)>>) -> tensor<f64>
    sdg.output "double0" %4[b, i, t] in (b, i, t) : tensor<f64>
  }
}
