// an output that never has a point
builtin.module {
  sdg.program @random dims(t: 1) {
    %0 = sdg.constant 1.0 : tensor<1xf32>
    sdg.output "exact2" %0 in (t: 1 to 1) : tensor<1xf32>
  }
}
