// Multiples of an array of the caller that does not vary are made where they are read, so that the loop reads it alone.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-sink | filecheck %s

sdg.program @moments dims(i: I) {
  %g = sdg.input "g" : tensor<5xf32>
  %a = sdg.constant 0.5 : tensor<f32>
  %one = sdg.mul %a, %g : (tensor<f32>, tensor<5xf32>) -> tensor<5xf32>
  %square = sdg.mul %g, %g : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %two = sdg.mul %a, %square : (tensor<f32>, tensor<5xf32>) -> tensor<5xf32>
  %m = sdg.merge {i = 0 : %g, i > 0 : %m_next[i - 1]} in (i) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %m_next = sdg.add %m[i], %one in (i) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %v_next = sdg.sub %m_next[i], %two in (i) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  sdg.output "v" %v_next[i] in (i) : tensor<5xf32>
}

// CHECK-LABEL: sdg.program @moments
// CHECK:         %one = sdg.mul %a, %g in (i) :
// CHECK-NEXT:    %square = sdg.mul %g, %g in (i) :
// CHECK-NEXT:    %two = sdg.mul %a, %square[i] in (i) :
// CHECK:         %m_next = sdg.add %m[i], %one[i] in (i)
// CHECK-NEXT:    %v_next = sdg.sub %m_next[i], %two[i] in (i)

// -----

// an array of an outer dim is read again in each step of the inner one, at the points that need it
sdg.program @inner dims(i: I, t: T) {
  %g = sdg.input "g" in (i) : tensor<3xf32>
  %x = sdg.input "x" in (i, t) : tensor<3xf32>
  %n = sdg.neg %g[i] in (i) : (tensor<3xf32>) -> tensor<3xf32>
  %y = sdg.mul %x[i, t], %n[i] in (i, t: 1 to T) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "y" %y[i, t] in (i, t: 1 to T) : tensor<3xf32>
}

// CHECK-LABEL: sdg.program @inner
// CHECK:         %n = sdg.neg %g[i] in (i, t: 1 to T) :
// CHECK-NEXT:    %y = sdg.mul %x[i, t], %n[i, t] in (i, t: 1 to T)
