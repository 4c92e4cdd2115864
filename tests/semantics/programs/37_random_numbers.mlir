// Case 37: draws are functions of seed, op and point.
sdg.program @random_numbers dims(i: I, t: T) {
  %u = sdg.random uniform id 0 in (i, t) : tensor<3xf32>
  sdg.output "u" %u[i, t] in (i, t) : tensor<3xf32>
  %0 = sdg.constant 1.0 : tensor<f32>
  %1 = sdg.mul %u[i, t], %0 in (i, t) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  sdg.output "again" %1[i, t] in (i, t) : tensor<3xf32>
  %2 = sdg.random uniform id 1 in (i, t) : tensor<3xf32>
  sdg.output "other" %2[i, t] in (i, t) : tensor<3xf32>
  %3 = sdg.random bits id 2 in (i) : tensor<5xi64>
  sdg.output "bits" %3[i] in (i) : tensor<5xi64>
  %4 = sdg.random bits id 3 in (i, t) : tensor<5xi64>
  %5 = sdg.constant 7 : tensor<i64>
  %6 = sdg.mod %4[i, t], %5 in (i, t) : (tensor<5xi64>, tensor<i64>) -> tensor<5xi64>
  %7 = sdg.constant -3 : tensor<i64>
  %8 = sdg.add %6[i, t], %7 in (i, t) : (tensor<5xi64>, tensor<i64>) -> tensor<5xi64>
  %9 = sdg.cast %8[i, t] in (i, t) : (tensor<5xi64>) -> tensor<5xi32>
  sdg.output "integers" %9[i, t] in (i, t) : tensor<5xi32>
  %10 = sdg.random normal id 4 in (t) : tensor<4xf64>
  sdg.output "normal" %10[t] in (t) : tensor<4xf64>
}
