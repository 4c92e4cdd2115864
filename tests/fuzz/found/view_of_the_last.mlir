// a view of the last element of a vectorised value is made where there is one
sdg.program @random dims(b: B, i: 3) {
  %x = sdg.input "x" in (b, i) : tensor<2x3xf64>
  %c = sdg.contract "abc,dbc->abc" %x[b, 0:3], %x[b, 0:3] in (b) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<3x2x3xf64>
  %y = sdg.contract "abc,ade->da" %c[max(0, b - 3)], %c[B - 1] in (b) : (tensor<3x2x3xf64>, tensor<3x2x3xf64>) -> tensor<2x3xf64>
  sdg.output "double1" %y[b] in (b) : tensor<2x3xf64>
}
