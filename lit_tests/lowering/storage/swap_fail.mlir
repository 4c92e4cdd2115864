// Rows stay on the device where swapping them saves nothing, or is not understood; a remark says why.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-schedule,loop-form-kernels,loop-plan-storage | filecheck %s
// RUN: tempo-opt %s --split-input-file --remarks -p sdg-schedule,loop-form-kernels,loop-plan-storage 2>&1 | filecheck %s --check-prefix=REMARK

// CHECK-NOT: loop.offload
// CHECK-NOT: swap

// all rows are read at once
sdg.program @at_once dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3xf32>
  %s = sdg.merge {t = 0 : %x[t], t > 0 : %h[t - 1]} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.sin %s[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.swap %h ahead 2 : tensor<3xf32>
  %y = sdg.reverse %h[0:T] axis 0 : (tensor<3xf32>) -> tensor<?x3xf32, #sdg.size<T>>
  sdg.output "y" %y : tensor<?x3xf32, #sdg.size<T>>
}

// REMARK: remark: its rows stay on the device: no loop after those that write it reads its rows one by one: %h[1:T + 1] is read at once ({{.*}}swap_fail.mlir:14)

// -----

// a window keeps a few rows anyway
sdg.program @window dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3xf32>
  %h = sdg.sin %x[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.swap %h ahead 2 : tensor<3xf32>
  %y = sdg.sum %h[max(0, t - 2):t + 1] axes [0] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.output "y" %y[t] in (t) : tensor<3xf32>
}

// REMARK: remark: its rows stay on the device: no more rows live at once than a few

// -----

// what is computed into an array of the caller is not the program's to move
sdg.program @output dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3xf32>
  %h = sdg.sin %x[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.swap %h ahead 2 : tensor<3xf32>
  sdg.output "y" %h[t] in (t) : tensor<3xf32>
}

// REMARK: remark: nothing is to be done: the value is made in the array of the caller that is its output

// -----

// rows that are read in another order than one by one
sdg.program @halves dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3xf32>
  %s = sdg.merge {t = 0 : %x[t], t > 0 : %h[t - 1]} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.sin %s[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.swap %h ahead 2 : tensor<3xf32>
  %y = sdg.mul %h[(T - 1 - t) floordiv 2], %h[T - 1] in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "y" %y[t] in (t) : tensor<3xf32>
}

// REMARK: remark: its rows stay on the device: no loop after those that write it reads its rows one by one: %h[{{.*}} floordiv 2 - t] is not read row by row ({{.*}}swap_fail.mlir:53)

// -----

// one loop takes rows one by one, another one all of them: the device keeps them anyway
sdg.program @both dims(t: T) where T >= 1 {
  %x = sdg.input "x" in (t) : tensor<3xf32>
  %s = sdg.merge {t = 0 : %x[t], t > 0 : %h[t - 1]} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.sin %s[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.swap %h ahead 2 : tensor<3xf32>
  %n = sdg.merge {t = T - 1 : %h[t], true : %b[t + 1]} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %b = sdg.mul %n[t], %h[t] in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %m = sdg.max %h[0:T] axes [0] : (tensor<3xf32>) -> tensor<3xf32>
  sdg.output "b" %b[t] in (t) : tensor<3xf32>
  sdg.output "m" %m : tensor<3xf32>
}

// REMARK: remark: its rows stay on the device: all of them are still read in other ways: %h[1:T + 1] is read at once ({{.*}}swap_fail.mlir:69)
