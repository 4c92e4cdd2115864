// a loop downwards in steps
builtin.module {
  sdg.program @random dims(i: I, t: T) {
    %0 = sdg.constant 0.0 : tensor<?x1xf32, #sdg.size<(T + 1) floordiv 3>>
    %1 = sdg.merge {true : %0} in (i) : (tensor<?x1xf32, #sdg.size<(T + 1) floordiv 3>>) -> tensor<?x1xf32, #sdg.size<(T + 1) floordiv 3>>
    %2 = sdg.gt %1[i], %1[i:I:3] in (i) : (tensor<?x1xf32, #sdg.size<(T + 1) floordiv 3>>, tensor<?x1xf32, #sdg.size<(T + 1) floordiv 3>>) -> tensor<?x?x1xi1, #sdg.size<max(0, (I - i + 2) floordiv 3), (T + 1) floordiv 3>>
    %3 = sdg.max %2[i] axes [0] in (i) : (tensor<?x?x1xi1, #sdg.size<max(0, (I - i + 2) floordiv 3), (T + 1) floordiv 3>>) -> tensor<?x1xi1, #sdg.size<(T + 1) floordiv 3>>
    sdg.output "exact1" %3[1:I:3] : tensor<?x1xi1, #sdg.size<(T + 1) floordiv 3>>
  }
}
