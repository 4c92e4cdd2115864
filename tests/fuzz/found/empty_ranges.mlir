// a range that is empty reads nothing, wherever the other entries of the index are
builtin.module {
  sdg.program @empty dims(b: B, i: I, t: T) {
    %0 = sdg.input "x0" in (i, t) : tensor<2xf32>
    %1 = sdg.sum %0[(i - 1) mod 3, t:t] axes [0] in (i, t) : (tensor<2xf32>) -> tensor<2xf32>
    %2 = sdg.sum %0[0, T:T] axes [0] : (tensor<2xf32>) -> tensor<2xf32>
    %3 = sdg.exp %0[i, t] in (i, t) : (tensor<2xf32>) -> tensor<2xf32>
    %4 = sdg.sum %3[(i - 1) mod 3, t:t] axes [0] in (i, t) : (tensor<2xf32>) -> tensor<2xf32>
    %5 = sdg.sum %3[0:I, T:T] axes [0, 1] : (tensor<2xf32>) -> tensor<2xf32>
    sdg.output "exact0" %1[i, t] in (i, t) : tensor<2xf32>
    sdg.output "exact1" %2 : tensor<2xf32>
    sdg.output "exact2" %4[i, t] in (i, t) : tensor<2xf32>
    sdg.output "exact3" %5 : tensor<2xf32>
  }
}
