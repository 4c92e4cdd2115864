// the greatest extent of a row is no one expression
builtin.module {
  sdg.program @random dims(b: B) {
    %0 = sdg.input "x1" in (b) : tensor<1x1xf32>
    %1 = sdg.pad %0[3 * (b floordiv 3):min(3 * (b floordiv 3) + 3, B)] low [0, 0, 2] high [2, 0, 0] value 0.0 in (b) : (tensor<1x1xf32>) -> tensor<?x1x3xf32, #sdg.size<max(2, min(B - 3 * (b floordiv 3) + 2, 5))>>
    %2 = sdg.sum %1[b] axes [0] in (b) : (tensor<?x1x3xf32, #sdg.size<max(2, min(B - 3 * (b floordiv 3) + 2, 5))>>) -> tensor<1x3xf32>
    sdg.output "exact1" %2[b] in (b) : tensor<1x3xf32>
  }
}
