// an output that leaves out a row which, at one size, is the one whose value is known before the loop
builtin.module {
  sdg.program @random dims(t: T) where T >= 1 {
    %0 = sdg.input "in" in (t) : tensor<1xf32>
    %1 = sdg.input "x1" in (t) : tensor<?x1xf32, #sdg.size<T>>
    %2 = sdg.exp %1[max(0, t - 1):t] in (t) : (tensor<?x1xf32, #sdg.size<T>>) -> tensor<?x?x1xf32, #sdg.size<min(t, 1), T>>
    %3 = sdg.contract "ab,cdb->d" %0[0:1], %2[t] in (t) : (tensor<1xf32>, tensor<?x?x1xf32, #sdg.size<min(t, 1), T>>) -> tensor<?xf32, #sdg.size<T>>
    %4 = sdg.sum %3[t] axes [0] in (t) : (tensor<?xf32, #sdg.size<T>>) -> tensor<f32>
    %5 = sdg.grad %4 wrt %1 allow_unused in (t) : (tensor<f32>, tensor<?x1xf32, #sdg.size<T>>) -> tensor<?x1xf32, #sdg.size<T>>
    sdg.output "single3" %5[t] in (t where t ne 3) : tensor<?x1xf32, #sdg.size<T>>
  }
}
