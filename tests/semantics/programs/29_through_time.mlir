// Case 29: back-propagation through time.
sdg.program @through_time dims(t: T) where T >= 1 attributes {preconditions = [#sdg.precondition<#sdg.cond<(T >= 1)>, "sdg.reshape reads %h[T - 1]">]} {
  %w = sdg.input "w" in (t) : tensor<f64>
  %v = sdg.input "v" : tensor<f64>
  %h = sdg.merge {t = 0 : %w[t], true : %0[t]} in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %k = sdg.merge {t = 0 : %v, true : %1[t]} in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %0 = sdg.mul %h[t - 1], %w[t] in (t: 1 to T) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %1 = sdg.mul %k[t - 1], %v in (t: 1 to T) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %2 = sdg.reshape %h[T - 1] : (tensor<f64>) -> tensor<f64>
  %3 = sdg.grad %2 wrt %w in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "each" %3[t] in (t) : tensor<f64>
  %4 = sdg.reshape %k[T - 1] : (tensor<f64>) -> tensor<f64>
  %5 = sdg.grad %4 wrt %v : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "shared" %5 : tensor<f64>
}
