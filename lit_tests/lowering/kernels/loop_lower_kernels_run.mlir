// What is lowered computes what the reference does, at sizes that no block divides.
// RUN: tempo-run %s --set T=0 --check | filecheck %s
// RUN: tempo-run %s --set T=1 --check | filecheck %s
// RUN: tempo-run %s --set T=17 --check | filecheck %s

// CHECK: check y: ok
// CHECK: check order: ok
// CHECK: check state: ok
sdg.program @mixed dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<7xf32>
  %w = sdg.parameter "w" : tensor<7x5xf32>
  %zero = sdg.constant 0.0 : tensor<7xf32>
  %h = sdg.merge {t = 0 : %zero, t > 0 : %g[t - 1]} in (t) : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
  %g = sdg.add %h[t], %x[t] in (t) : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
  %p = sdg.contract "a,ab->b" %g[t], %w in (t) : (tensor<7xf32>, tensor<7x5xf32>) -> tensor<5xf32>
  %s = sdg.softmax %p[t] axis 0 in (t) : (tensor<5xf32>) -> tensor<5xf32>
  %y = sdg.sum %s[0:t + 1] axes [0] in (t) : (tensor<5xf32>) -> tensor<5xf32>
  %order = sdg.argsort %x[t] axis 0 in (t) : (tensor<7xf32>) -> tensor<7xi64>
  sdg.output "y" %y[t] in (t) : tensor<5xf32>
  sdg.output "order" %order[t] in (t) : tensor<7xi64>
  sdg.output "state" %g[t] in (t) : tensor<7xf32>
}
