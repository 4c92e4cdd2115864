// a part of a reshaped axis is as long as the operand says, beside other axes of open length
builtin.module {
  sdg.program @random dims(b: B, t: T) {
    %0 = sdg.input "x0" in (b, t) : tensor<f64>
    %1 = sdg.reshape %0[0:B, 0:T] in () : (tensor<f64>) -> tensor<?x?x1xf64, #sdg.size<B, T>>
    %2 = sdg.sum %1 axes [1, 2] in () : (tensor<?x?x1xf64, #sdg.size<B, T>>) -> tensor<?xf64, #sdg.size<B>>
    sdg.output "double0" %2 : tensor<?xf64, #sdg.size<B>>
  }
}
