// Case 34: sums and products of bf16 are held in f32.
sdg.program @sums_of_bf16 {
  %x = sdg.input "x" : tensor<1000xbf16>
  %y = sdg.input "y" : tensor<8x1000xbf16>
  %0 = sdg.sum %x axes [0] : (tensor<1000xbf16>) -> tensor<bf16>
  sdg.output "sum" %0 : tensor<bf16>
  %1 = sdg.contract "bk,k->b" %y, %x : (tensor<8x1000xbf16>, tensor<1000xbf16>) -> tensor<8xbf16>
  sdg.output "dot" %1 : tensor<8xbf16>
}
