// two states that change places: what one begins with is copied before its array is overwritten with the other one
builtin.module {
  sdg.program @random dims(t: T) {
    %p = sdg.parameter "a" : tensor<8xf32>
    %q = sdg.parameter "b" : tensor<8xf32>
    %x = sdg.input "x" in (t) : tensor<8xf32>
    %a = sdg.merge {t = 0 : %p, true : %an[t - 1]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %b = sdg.merge {t = 0 : %q, true : %bn[t - 1]} in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %pr = sdg.reverse %p axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %an0 = sdg.add %a[t], %b[t] in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %an = sdg.tanh %an0[t] in (t) : (tensor<8xf32>) -> tensor<8xf32>
    %bn0 = sdg.sub %a[t], %b[t] in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %bn = sdg.add %bn0[t], %pr in (t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %ao = sdg.merge {T = 0 : %p, true : %bn[T - 1]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %bo = sdg.merge {T = 0 : %q, true : %an[T - 1]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    sdg.output "a" %ao : tensor<8xf32>
    sdg.output "b" %bo : tensor<8xf32>
  }
}
