// rows are added to nothing by an index of no number: a kernel that might fail, and cannot
builtin.module {
  sdg.program @random dims(t: 1) {
    %0 = sdg.input "in" in (t) : tensor<0x2x2xi64>
    %1 = sdg.constant 1 : tensor<0xi64>
    %2 = sdg.scatter_add %1, %0[0] axis 0 in (t) : (tensor<0xi64>, tensor<0x2x2xi64>) -> tensor<1x2x2xi64>
    sdg.output "exact0" %2[0] in (t) : tensor<1x2x2xi64>
  }
}
