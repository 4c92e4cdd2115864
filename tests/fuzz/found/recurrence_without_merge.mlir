// the gradient through a value that reads a range of its own past
sdg.program @random dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f64>
  %s = sdg.sum %h[0:t] axes [0] in (t) : (tensor<f64>) -> tensor<f64>
  %a = sdg.add %s[t], %x[t] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %h = sdg.sin %a[t] in (t) : (tensor<f64>) -> tensor<f64>
  %g = sdg.grad %h wrt %x in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "double0" %g[t] in (t) : tensor<f64>
}
