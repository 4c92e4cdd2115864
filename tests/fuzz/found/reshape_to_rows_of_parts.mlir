// rows of 25 out of rows of 10, computed: half of a row is left over
builtin.module {
  sdg.program @random dims(b: B) {
    %4 = sdg.input "square" : tensor<5x5xf64>
    %6 = sdg.input "x" in (b) : tensor<5x5xf64>
    %10 = sdg.concat %4, %6[b] axis 1 in (b) : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x10xf64>
    %11 = sdg.reshape %10[b] in (b) : (tensor<5x10xf64>) -> tensor<2x25xf64>
    sdg.output "double0" %11[b] in (b) : tensor<2x25xf64>
  }
}
