// a domain that ends at a number below 0: the memory of an output had that many rows
builtin.module {
  sdg.program @random dims(t: 1) {
    %0 = sdg.constant 1 : tensor<1x1xi64>
    %x = sdg.input "x" in (t) : tensor<i64>
    %y = sdg.add %x[t], %x[t] in (t: 0 to -7) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    sdg.output "y" %y[t] in (t: 0 to -7) : tensor<i64>
    sdg.output "exact0" %0 in (t: 0 to -1) : tensor<1x1xi64>
  }
}
