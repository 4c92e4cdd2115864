// What ends a dim is known when its step is done, and no memory is needed that fewer steps would need more of.
// RUN: tempo-opt %s --split-input-file --verify-diagnostics

sdg.program @shape dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xi1>
  // expected-error@+1 {{sdg.until reads tensor<4xi1>, expected tensor<i1>: is one of them true, or all?}}
  sdg.until %x[t] in (t) : tensor<4xi1>
}

// -----

sdg.program @domain dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : tensor<i1>
  // expected-error@+1 {{sdg.until ends one dim and looks at all of its points, its domain is (i, t)}}
  sdg.until %x[i, t] in (i, t) : tensor<i1>
}

// -----

sdg.program @derived dims(p: P, t: P floordiv 2) {
  %x = sdg.input "x" in (t) : tensor<i1>
  // expected-error@+1 {{dim t ends by data, so its bound is found by the program: declare it as a symbol of its own, not as P floordiv 2}}
  sdg.until %x[t] in (t) : tensor<i1>
}

// -----

sdg.program @two dims(i: I, t: T) {
  %x = sdg.input "x" in (i) : tensor<i1>
  %y = sdg.input "y" in (t) : tensor<i1>
  sdg.until %x[i] in (i) : tensor<i1>
  // expected-error@+1 {{dim i ends by data, and t too: one dim of a program may, bound the other}}
  sdg.until %y[t] in (t) : tensor<i1>
}

// -----

sdg.program @range dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<i1>
  // expected-error@+1 {{reads %x[0:T], and the end of dim t is computed from it}}
  %all = sdg.max %x[0:T] axes [0] : (tensor<i1>) -> tensor<i1>
  sdg.until %all in (t) : tensor<i1>
}

// -----

sdg.program @row dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<?xi1, #sdg.size<T>>
  // expected-error@+1 {{reads %x[t], and the end of dim t is computed from it}}
  %all = sdg.max %x[t] axes [0] in (t) : (tensor<?xi1, #sdg.size<T>>) -> tensor<i1>
  sdg.until %all[t] in (t) : tensor<i1>
}

// -----

sdg.program @data dims(t: T) {
  // expected-error@+1 {{needs T, and the end of dim t is computed from it}}
  %left = sdg.index T - t in (t) : tensor<i64>
  %one = sdg.constant 1 : tensor<i64>
  %done = sdg.le %left[t], %one in (t) : (tensor<i64>, tensor<i64>) -> tensor<i1>
  sdg.until %done[t] in (t) : tensor<i1>
}

// -----

sdg.program @ahead dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<i1>
  %y = sdg.not %x[t] in (t) : (tensor<i1>) -> tensor<i1>
  %z = sdg.not %y[t + 1] in (t: 0 to T - 1) : (tensor<i1>) -> tensor<i1>
  %false = sdg.constant false : tensor<i1>
  // expected-error@+1 {{needs T, and the end of dim t is computed from it}}
  %done = sdg.merge {t < T - 1 : %z[t], true : %false} in (t) : (tensor<i1>, tensor<i1>) -> tensor<i1>
  sdg.until %done[t] in (t) : tensor<i1>
}

// -----

sdg.program @later dims(t: T) where T >= 6 {
  %x = sdg.input "x" in (t) : tensor<i1>
  %y = sdg.not %x[t] in (t) : (tensor<i1>) -> tensor<i1>
  // expected-error@+1 {{reads %y[5], which comes with a later step, and the end of dim t is computed from it}}
  %done = sdg.not %y[5] in (t) : (tensor<i1>) -> tensor<i1>
  sdg.until %done[t] in (t) : tensor<i1>
}

// -----

sdg.program @points dims(p: P, t: T) {
  %x = sdg.input "x" in (t) : tensor<i1>
  %y = sdg.input "y" in (p) : tensor<i1>
  // expected-error@+1 {{is there at the points (p where p < T), and the end of dim t is computed from it}}
  %z = sdg.not %y[p] in (p where p < T) : (tensor<i1>) -> tensor<i1>
  %done = sdg.merge {t < P : %z[t], true : %x[t]} in (t) : (tensor<i1>, tensor<i1>) -> tensor<i1>
  sdg.until %done[t] in (t) : tensor<i1>
}

// -----

sdg.program @room dims(t: T) where T <= 8 {
  %x = sdg.input "x" in (t) : tensor<i1>
  // expected-error@+1 {{the extent 8 - T grows as T falls, and dim t ends by data: no memory can be reserved for it}}
  %left = sdg.arange [T:8] : tensor<?xi64, #sdg.size<8 - T>>
  sdg.until %x[t] in (t) : tensor<i1>
}
