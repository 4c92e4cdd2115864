// Case 31: a leaf that the loss does not reach.
sdg.program @unreached {
  %x = sdg.input "x" : tensor<f64>
  %y = sdg.input "y" : tensor<f64>
  %loss = sdg.exp %x : (tensor<f64>) -> tensor<f64>
  // expected-error@+1 {{%loss does not depend on %y}}
  %g = sdg.grad %loss wrt %y : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "g" %g : tensor<f64>
}
