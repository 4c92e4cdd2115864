// a recurrence backwards whose first row is a constant: where the range is empty there is no row before the first
builtin.module {
  sdg.program @random dims(i: I) {
    %x = sdg.input "x" in (i) : tensor<3xf64>
    %p = sdg.prod %x[i + 1:I] axes [0] in (i: 1 to I) : (tensor<3xf64>) -> tensor<3xf64>
    sdg.output "double0" %p[i + 1] in (i: 0 to I - 1) : tensor<3xf64>
  }
}
