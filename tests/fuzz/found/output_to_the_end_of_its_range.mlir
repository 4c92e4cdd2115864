// an output has rows to the end of its domain's range
sdg.program @random dims(i: I) where I >= 2 {
  %x = sdg.input "x" in (i) : tensor<i64>
  %y = sdg.neg %x[i] in (i: 2 to I) : (tensor<i64>) -> tensor<i64>
  sdg.output "exact0" %y[i + 2] in (i: 0 to I - 2) : tensor<i64>
}
