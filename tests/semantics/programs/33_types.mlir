// Case 33: weak numbers, promotion and integers that wrap.
sdg.program @types {
  %x = sdg.input "x" : tensor<3xf32>
  %n = sdg.input "n" : tensor<3xi64>
  %d = sdg.input "d" : tensor<3xf64>
  %small = sdg.input "small" : tensor<3xi8>
  %0 = sdg.constant 100 : tensor<i64>
  %1 = sdg.add %0, %0 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  sdg.output "hundreds" %1 : tensor<i64>
  %2 = sdg.cast %n : (tensor<3xi64>) -> tensor<3xf32>
  %3 = sdg.cast %n : (tensor<3xi64>) -> tensor<3xf32>
  %4 = sdg.div %2, %3 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "ratio" %4 : tensor<3xf32>
  %5 = sdg.constant 2.0 : tensor<f32>
  %6 = sdg.add %x, %5 : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  sdg.output "weak" %6 : tensor<3xf32>
  %7 = sdg.cast %n : (tensor<3xi64>) -> tensor<3xf64>
  %8 = sdg.add %7, %d : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  sdg.output "wide" %8 : tensor<3xf64>
  %9 = sdg.constant 100 : tensor<i8>
  %10 = sdg.add %small, %9 : (tensor<3xi8>, tensor<i8>) -> tensor<3xi8>
  sdg.output "wrapped" %10 : tensor<3xi8>
}
