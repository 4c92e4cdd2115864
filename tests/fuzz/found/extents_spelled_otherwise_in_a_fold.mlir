// tiles of rows whose extent is spelled in two ways: a fold takes them with the type that its steps read
builtin.module {
  sdg.program @random dims(b: B, t: B) {
    %0 = sdg.input "x1" in (b, t) : tensor<1xf32>
    %1 = sdg.input "x2" in (b, t) : tensor<f32>
    %2 = sdg.mul %0[b:B, 0], %1[0, 0] in (b, t) : (tensor<1xf32>, tensor<f32>) -> tensor<?x1xf32, #sdg.size<max(0, B - b)>>
    %3 = sdg.lt %0[0, 0], %2[0, 0:B] in (b, t) : (tensor<1xf32>, tensor<?x1xf32, #sdg.size<max(0, B - b)>>) -> tensor<?x?x1xi1, #sdg.size<B, max(0, B)>>
    %4 = sdg.max %3[0, 0] axes [0] in (b, t) : (tensor<?x?x1xi1, #sdg.size<B, max(0, B)>>) -> tensor<?x1xi1, #sdg.size<max(0, B)>>
    sdg.output "exact2" %4[0, 0] in (b, t) : tensor<?x1xi1, #sdg.size<max(0, B)>>
  }
}
