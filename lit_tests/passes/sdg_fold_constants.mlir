// What depends on constants alone is computed; large, infinite or failing results are left to the run.
// RUN: tempo-opt %s --split-input-file --check-each --pass-pipeline='sdg-fold-constants{limit=4},sdg-dce' | filecheck %s

sdg.program @folded dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %two = sdg.constant 2.0 : tensor<4xf32>
  %three = sdg.constant 3.0 : tensor<f32>
  %six = sdg.mul %two, %three in (t) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %list = sdg.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %sums = sdg.cumsum %list axis 0 in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %table = sdg.contract "a,b->ab" %list, %list : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %row = sdg.slice %table take [t mod 4, 0:4] in (t) : (tensor<4x4xf32>) -> tensor<4xf32>
  %a = sdg.mul %x[t], %six[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = sdg.add %a[t], %sums[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = sdg.add %b[t], %row[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @folded dims(t: T) {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<4xf32>
// CHECK-NEXT:    %six = sdg.constant 6.0 : tensor<4xf32>
// CHECK-NEXT:    %list = sdg.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>
// CHECK-NEXT:    %sums = sdg.constant dense<[1.000000e+00, 3.000000e+00, 6.000000e+00, 1.000000e+01]> : tensor<4xf32>
// CHECK-NEXT:    %table = sdg.contract "a,b->ab" %list, %list : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT:    %row = sdg.slice %table take [t mod 4, 0:4] in (t) : (tensor<4x4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %a = sdg.mul %x[t], %six in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %b = sdg.add %a[t], %sums in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %y = sdg.add %b[t], %row[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    sdg.output "y" %y[t] in (t) : tensor<4xf32>
// CHECK-NEXT:  }

// a constant is of its type before anything is made of it, as in a run
sdg.program @rounded {
  %tenth = sdg.constant 0.1 : tensor<f32>
  %square = sdg.mul %tenth, %tenth : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %wide = sdg.cast %tenth : (tensor<f32>) -> tensor<f64>
  %most = sdg.constant 2147483647 : tensor<i32>
  %wrapped = sdg.add %most, %most : (tensor<i32>, tensor<i32>) -> tensor<i32>
  sdg.output "square" %square : tensor<f32>
  sdg.output "wide" %wide : tensor<f64>
  sdg.output "wrapped" %wrapped : tensor<i32>
}

// CHECK-LABEL: sdg.program @rounded {
// CHECK-NEXT:    %square = sdg.constant 0.010000000707805157 : tensor<f32>
// CHECK-NEXT:    %wide = sdg.constant 0.10000000149011612 : tensor<f64>
// CHECK-NEXT:    %wrapped = sdg.constant -2 : tensor<i32>

// -----

// powers of what is counted are computed; counting alone, cast or reshaped, costs no memory
sdg.program @counted {
  %n = sdg.arange [0:4] : tensor<4xi64>
  %f = sdg.cast %n : (tensor<4xi64>) -> tensor<4xf32>
  %g = sdg.constant 0.5 : tensor<f32>
  %p = sdg.pow %g, %f : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "f" %f : tensor<4xf32>
  sdg.output "p" %p : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @counted
// CHECK-NEXT:    %n = sdg.arange [0:4] : tensor<4xi64>
// CHECK-NEXT:    %f = sdg.cast %n : (tensor<4xi64>) -> tensor<4xf32>
// CHECK-NEXT:    %p = sdg.constant dense<[1.000000e+00, 5.000000e-01, 2.500000e-01, 1.250000e-01]> : tensor<4xf32>
