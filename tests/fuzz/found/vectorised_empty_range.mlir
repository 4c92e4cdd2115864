// vectorised along b, the range 0:B is gone, and with it what kept the read of i = B - 1 from a program without points
sdg.program @random dims(b: B, i: B, t: T) where T >= 1 {
  %x = sdg.input "x" in (b, i, t) : tensor<5xf32>
  %s = sdg.sin %x[b, i, t] in (b, i, t) : (tensor<5xf32>) -> tensor<5xf32>
  %c = sdg.contract "ab,cdb->bc" %s[b:min(B, b + 1), i, t], %s[0:B, B - 1, t:T] in (b, i, t) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5x?xf32, #sdg.size<B>>
  sdg.output "single0" %c[0, i, T - 1] in (i) : tensor<5x?xf32, #sdg.size<B>>
}
