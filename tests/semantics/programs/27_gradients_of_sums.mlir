// Case 27: gradients of sums over ranges.
sdg.program @gradients_of_sums dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f64>
  %w = sdg.input "w" in (t) : tensor<f64>
  %0 = sdg.sum %x[0:T] axes [0] : (tensor<f64>) -> tensor<f64>
  %1 = sdg.grad %0 wrt %x in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "all" %1[t] in (t) : tensor<f64>
  %2 = sdg.sum %x[0:T] axes [0] : (tensor<f64>) -> tensor<f64>
  %3 = sdg.mul %2, %w[t] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %4 = sdg.grad %3 wrt %x in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "weighted" %4[t] in (t) : tensor<f64>
  %5 = sdg.sum %x[0:t + 1] axes [0] in (t) : (tensor<f64>) -> tensor<f64>
  %6 = sdg.mul %5[t], %w[t] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %7 = sdg.grad %6 wrt %x in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "past" %7[t] in (t) : tensor<f64>
}
