// Case 28: gradients of reads at clamped, modular and fixed points.
sdg.program @gradients_of_points dims(t: T) where 2 <= T {
  %x = sdg.input "x" in (t) : tensor<f64>
  %w = sdg.input "w" in (t) : tensor<f64>
  %0 = sdg.constant 3.0 : tensor<f64>
  %1 = sdg.mul %0, %x[max(0, t - 1)] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %2 = sdg.mul %0, %x[min(T - 1, t + 1)] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %3 = sdg.mul %0, %x[t mod 2] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %4 = sdg.mul %x[0], %w[t] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %5 = sdg.mul %w[t], %x[max(0, t - 2)] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %6 = sdg.grad %1 wrt %x in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "before" %6[t] in (t) : tensor<f64>
  %7 = sdg.grad %2 wrt %x in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "after" %7[t] in (t) : tensor<f64>
  %8 = sdg.grad %3 wrt %x in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "modular" %8[t] in (t) : tensor<f64>
  %9 = sdg.grad %4 wrt %x in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "first" %9[t] in (t) : tensor<f64>
  %10 = sdg.grad %5 wrt %x in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "second" %10[t] in (t) : tensor<f64>
}
