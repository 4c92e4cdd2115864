// a product over a range of steps that is empty whatever the bounds: what is summed is nothing
builtin.module {
  sdg.program @random dims(i: I, t: T) where I >= 2 attributes {preconditions = [#sdg.precondition<#sdg.cond<(I >= 2)>, "sdg.contract reads the result of sdg.merge[1, 1:T:3]">]} {
    %0 = sdg.input "x0" in (i, t) : tensor<3x3xf64>
    %1 = sdg.parameter "w1" : tensor<2x3xf32>
    %2 = sdg.input "x2" : tensor<3x3xf32>
    %3 = sdg.input "x3" in (t) : tensor<i1>
    %4 = sdg.parameter "square" : tensor<3x3xf64>
    %5 = sdg.parameter "double_state6" : tensor<3x3xf64>
    %6 = sdg.merge {i = 0 and t = 0 : %5, t > 0 : %7[i, t - 1], i > 0 and t = 0 : %7[i - 1, T - 1]} in (i, t) : (tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
    %8 = sdg.constant 0.5 : tensor<3x3xf64>
    %9 = sdg.mul %6[i, t], %8 in (i, t) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
    %10 = sdg.add %9[i, t], %0[i, t] in (i, t) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
    %7 = sdg.tanh %10[i, t] in (i, t) : (tensor<3x3xf64>) -> tensor<3x3xf64>
    %11 = sdg.merge {I <= 0 or T <= 0 : %5, I > 0 and T > 0 : %7[I - 1, T - 1]} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
    sdg.output "double_state6" %11 : tensor<3x3xf64>
    %12 = sdg.merge {i = I - 1 : %7[i, t], true : %5} in (i, t) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
    %13 = sdg.contract "abc,dbc->b" %7[I:I, t], %12[1, 1:T:3] in (t) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3xf64>
    %14 = sdg.reshape %12[i, t] in (i, t) : (tensor<3x3xf64>) -> tensor<9x1xf64>
    %15 = sdg.constant dense<[2, 1, 1]> : tensor<3xi64>
    %16 = sdg.scatter_add %15, %13[t] axis 0 in (t) : (tensor<3xi64>, tensor<3xf64>) -> tensor<3xf64>
    sdg.output "double0" %16[t] in (t) : tensor<3xf64>
    sdg.output "double1" %14[i, t] in (i, t) : tensor<9x1xf64>
  }
}

