// What stays before the loop: work that counts, values of several arrays, and what is not read element by element.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-sink | filecheck %s

// CHECK-LABEL: sdg.program @work
// CHECK:         %e = sdg.exp %g :
// CHECK-NEXT:    %s = sdg.add %g, %h :
// CHECK-NEXT:    %n = sdg.neg %e :
sdg.program @work dims(t: T) {
  %g = sdg.input "g" : tensor<3xf32>
  %h = sdg.input "h" : tensor<3xf32>
  %x = sdg.input "x" in (t) : tensor<3xf32>
  %e = sdg.exp %g : (tensor<3xf32>) -> tensor<3xf32>
  %s = sdg.add %g, %h : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %n = sdg.neg %e : (tensor<3xf32>) -> tensor<3xf32>
  %y = sdg.mul %x[t], %s in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %z = sdg.mul %y[t], %n in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "z" %z[t] in (t) : tensor<3xf32>
}

// -----

// a product reads each element for many columns, rows that are stretched are read for many others, and an output needs
// the value itself
// CHECK-LABEL: sdg.program @readers
// CHECK:         %a = sdg.neg %g :
// CHECK-NEXT:    %b = sdg.abs %g :
// CHECK-NEXT:    %c = sdg.add %one, %g :
// CHECK-NEXT:    %d = sdg.neg %one :
sdg.program @readers dims(t: T) {
  %g = sdg.input "g" : tensor<3xf32>
  %x = sdg.input "x" in (t) : tensor<2x3xf32>
  %one = sdg.constant 1.0 : tensor<f32>
  %a = sdg.neg %g : (tensor<3xf32>) -> tensor<3xf32>
  %b = sdg.abs %g : (tensor<3xf32>) -> tensor<3xf32>
  %c = sdg.add %one, %g : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
  %d = sdg.neg %one : (tensor<f32>) -> tensor<f32>
  %p = sdg.contract "bk,k->b" %x[t], %a in (t) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
  %q = sdg.mul %x[t], %b in (t) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %r = sdg.sum %q[t] axes [0] in (t) : (tensor<2x3xf32>) -> tensor<3xf32>
  %s = sdg.add %r[t], %c in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %u = sdg.mul %p[t], %d in (t) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  sdg.output "c" %c : tensor<3xf32>
  sdg.output "s" %s[t] in (t) : tensor<3xf32>
  sdg.output "u" %u[t] in (t) : tensor<2xf32>
}

// -----

// several readers would compute it several times, and may stand in loops of their own, as the way back does
// CHECK-LABEL: sdg.program @twice
// CHECK:         %a = sdg.neg %g :
sdg.program @twice dims(t: T) {
  %g = sdg.input "g" : tensor<3xf32>
  %x = sdg.input "x" in (t) : tensor<3xf32>
  %a = sdg.neg %g : (tensor<3xf32>) -> tensor<3xf32>
  %y = sdg.mul %x[t], %a in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %z = sdg.mul %x[t], %a in (t: 1 to T) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "y" %y[t] in (t) : tensor<3xf32>
  sdg.output "z" %z[t] in (t: 1 to T) : tensor<3xf32>
}
