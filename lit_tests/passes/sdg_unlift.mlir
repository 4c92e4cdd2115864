// A reduction over a range that grows from point to point is a recurrence; others stay.
// RUN: tempo-opt %s --split-input-file --check-each -p sdg-unlift | filecheck %s

sdg.program @prefix dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<4xf32>
  %s = sdg.sum %a[0:t + 1] axes [0] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "s" %s[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @prefix
// CHECK-NEXT:    %a = sdg.input "a" in (t)
// CHECK-NEXT:    %0 = sdg.add %s[t - 1], %a[t] in (t: 1 to T)
// CHECK-NEXT:    %s = sdg.merge {t = 0 : %a[t], t > 0 : %0[t]} in (t)
// CHECK-NEXT:    sdg.output "s" %s[t]

// -----

// the first point has no rows, the mean of the others is the running sum over their number
sdg.program @strict dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<4xf32>
  %m = sdg.min %a[0:t] axes [0, 1] in (t) : (tensor<4xf32>) -> tensor<f32>
  %p = sdg.mean %a[t:T] axes [0] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "m" %m[t] in (t) : tensor<f32>
  sdg.output "p" %p[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @strict
// CHECK-NEXT:    %a = sdg.input
// CHECK-NEXT:    [[least:%[0-9]+]] = sdg.min %a[t - 1] axes [0] in (t: 1 to T)
// CHECK-NEXT:    [[nothing:%[0-9]+]] = sdg.constant inf : tensor<f32>
// CHECK-NEXT:    [[step:%[0-9]+]] = sdg.minimum %m[t - 1], [[least]][t] in (t: 1 to T)
// CHECK-NEXT:    %m = sdg.merge {t = 0 : [[nothing]], t > 0 : [[step]][t]} in (t)
// CHECK-NEXT:    [[sum:%[0-9]+]] = sdg.add %p[t + 1], %a[t] in (t: 0 to T - 1)
// CHECK-NEXT:    %p = sdg.merge {t = T - 1 : %a[t], t < T - 1 : [[sum]][t]} in (t)
// CHECK-NEXT:    [[count:%[0-9]+]] = sdg.index max(0, T + call.start.t - t) in (t)
// CHECK-NEXT:    [[float:%[0-9]+]] = sdg.cast [[count]][t]
// CHECK-NEXT:    %p_1 = sdg.div %p[t], [[float]][t] in (t)

// -----

// rows that are all scaled alike: the powers of the discount
sdg.program @returns dims(t: T) {
  %r = sdg.input "r" in (t) : tensor<f32>
  %gamma = sdg.constant 0.9 : tensor<f32>
  %n = sdg.arange [0:T - t] in (t) : tensor<?xi64, #sdg.size<max(0, T - t)>>
  %k = sdg.cast %n[t] in (t) : (tensor<?xi64, #sdg.size<max(0, T - t)>>) -> tensor<?xf32, #sdg.size<T - t>>
  %d = sdg.pow %gamma, %k[t] in (t) : (tensor<f32>, tensor<?xf32, #sdg.size<T - t>>) -> tensor<?xf32, #sdg.size<T - t>>
  %g = sdg.contract "n,n->" %d[t], %r[t:T] in (t) : (tensor<?xf32, #sdg.size<T - t>>, tensor<f32>) -> tensor<f32>
  sdg.output "g" %g[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @returns
// CHECK-NOT:     sdg.arange
// CHECK:         [[part:%[0-9]+]] = sdg.contract ",->" {{.*}}, %r[t] in (t)
// CHECK-NEXT:    [[later:%[0-9]+]] = sdg.mul %g[t + 1], %gamma in (t: 0 to T - 1)
// CHECK-NEXT:    [[sum:%[0-9]+]] = sdg.add [[later]][t], [[part]][t] in (t: 0 to T - 1)
// CHECK-NEXT:    %g = sdg.merge {t = T - 1 : [[part]][t], t < T - 1 : [[sum]][t]} in (t)

// -----

// what varies with t, and lacks the axis, is multiplied with the running sum
sdg.program @linear_attention dims(t: T) {
  %q = sdg.input "q" in (t) : tensor<4xf32>
  %k = sdg.input "k" in (t) : tensor<4xf32>
  %y = sdg.contract "d,nd,ne->e" %q[t], %k[0:t + 1], %q[0:t + 1] in (t) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @linear_attention
// CHECK:         [[part:%[0-9]+]] = sdg.contract "d,e->ed" %k[t], %q[t] in (t)
// CHECK-NEXT:    [[sum:%[0-9]+]] = sdg.add [[state:%[a-z0-9_]+]][t - 1], [[part]][t] in (t: 1 to T)
// CHECK-NEXT:    [[state]] = sdg.merge {t = 0 : [[part]][t], t > 0 : [[sum]][t]} in (t)
// CHECK-NEXT:    {{.*}} = sdg.contract "d,ed->e" %q[t], [[state]][t] in (t)

// -----

// a row joins at some points only
sdg.program @halves dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<4xf32>
  %s = sdg.sum %a[0:t floordiv 2] axes [0] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "s" %s[t] in (t) : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @halves
// CHECK:         [[nothing:%[0-9]+]] = sdg.constant 0.0 : tensor<4xf32>
// CHECK:         [[sum:%[0-9]+]] = sdg.add %s[t - 1], %a[t floordiv 2 - 1] in (t where t >= 2 and t mod 2 = 0)
// CHECK-NEXT:    %s = sdg.merge {t = 0 : [[nothing]], t mod 2 = 0 : [[sum]][t], t mod 2 ne 0 : %s[t - 1]} in (t)

// -----

// a window of integers: the row that joins, less the one that leaves
sdg.program @window dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<4xi32>
  %s = sdg.sum %a[max(0, t - 7):t + 1] axes [0] in (t) : (tensor<4xi32>) -> tensor<4xi32>
  sdg.output "s" %s[t] in (t) : tensor<4xi32>
}

// CHECK-LABEL: sdg.program @window
// CHECK:         [[first:%[0-9]+]] = sdg.sum %a[max(0, t - 7):t + 1] axes [0] in (t: 0 to 1)
// CHECK-NEXT:    [[more:%[0-9]+]] = sdg.add %s[t - 1], %a[t] in (t: 8 to T)
// CHECK-NEXT:    [[less:%[0-9]+]] = sdg.sub [[more]][t], %a[max(0, t - 8)] in (t: 8 to T)
// CHECK-NEXT:    [[early:%[0-9]+]] = sdg.add %s[t - 1], %a[t] in (t: 1 to min(T, 8))
// CHECK-NEXT:    %s = sdg.merge {t = 0 : [[first]][t], t >= 8 : [[less]][t], true : [[early]][t]} in (t)
