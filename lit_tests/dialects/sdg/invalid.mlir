// What the verifier refuses: types, arity, scope, reads, cases, claims. Every message says where and how to mend it.
// RUN: tempo-opt %s --split-input-file --verify-diagnostics

sdg.program @arity dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : tensor<4xf32>
  // expected-error@+1 {{operand #0 %x varies over (i, t) and needs 2 index entries, one per dim, got [t]}}
  %y = sdg.neg %x[t] in (i, t) : (tensor<4xf32>) -> tensor<4xf32>
}

// -----

sdg.program @unknown_symbol dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  // expected-error@+1 {{operand #0 %x[s]: index [s] uses s, which is neither a dim nor a bound of the program}}
  %y = sdg.neg %x[s] in (t) : (tensor<4xf32>) -> tensor<4xf32>
}

// -----

sdg.program @foreign_dim dims(i: I, t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  // expected-error@+1 {{index [t] uses dim t, over which the op, in (i), does not vary: add it to the domain}}
  %y = sdg.neg %x[t] in (i) : (tensor<4xf32>) -> tensor<4xf32>
}

// -----

sdg.program @undeclared_dim dims(t: T) {
  // expected-error@+1 {{domain (s) names the undeclared dim s: the program declares t}}
  %x = sdg.input "x" in (s) : tensor<4xf32>
}

// -----

sdg.program @order dims(i: I, t: T) {
  // expected-error@+1 {{domain (t, i) does not list its dims in the declared order i, t, each once}}
  %x = sdg.input "x" in (t, i) : tensor<4xf32>
}

// -----

sdg.program @dtype_clash dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %n = sdg.input "n" in (t) : tensor<4xi64>
  // expected-error@+1 {{sdg.add needs operands of one dtype, got f32 and i64: cast one of them}}
  %y = sdg.add %x[t], %n[t] in (t) : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
}

// -----

sdg.program @dtype_kind dims(t: T) {
  %n = sdg.input "n" in (t) : tensor<4xi64>
  // expected-error@+1 {{sdg.exp needs floating-point elements, got i64: cast the operand}}
  %y = sdg.exp %n[t] in (t) : (tensor<4xi64>) -> tensor<4xi64>
}

// -----

sdg.program @shape_clash dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %z = sdg.input "z" in (t) : tensor<5xf32>
  // expected-error@+1 {{sdg.add, axis 0: extents 4 and 5 differ}}
  %y = sdg.add %x[t], %z[t] in (t) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
}

// -----

sdg.program @result dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  // expected-error@+1 {{sdg.sum makes tensor<f32>, its result says tensor<4xf32>}}
  %y = sdg.sum %x[t] axes [0] in (t) : (tensor<4xf32>) -> tensor<4xf32>
}

// -----

sdg.program @contraction dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4x8xf32>
  // expected-error@+1 {{sdg.contract "bk,kn->bn", letter k: extents 8 and 4 differ}}
  %y = sdg.contract "bk,kn->bn" %x[t], %x[t] in (t) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
}

// -----

sdg.program @axis dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  // expected-error@+1 {{sdg.softmax: axis 1 does not exist, the operand has axis 0 only}}
  %y = sdg.softmax %x[t] axis 1 in (t) : (tensor<4xf32>) -> tensor<4xf32>
}

// -----

sdg.program @reshape dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4x8xf32>
  // expected-error@+1 {{cannot reshape (4, 8) to (31,): extents 32 and 31 differ}}
  %y = sdg.reshape %x[t] in (t) : (tensor<4x8xf32>) -> tensor<31xf32>
}

// -----

sdg.program @slice dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  // expected-error@+1 {{'2:5' leaves axis 0, which has the elements 0 to 3}}
  %y = sdg.slice %x[t] take [2:5] in (t) : (tensor<4xf32>) -> tensor<3xf32>
}

// -----

sdg.program @dynamic_slice dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  // expected-error@+1 {{'t' of axis 0, which needs t >= 0 and t < 4: it fails at t = 4 (T = 5)}}
  %y = sdg.slice %x[t] take [t] in (t) : (tensor<4xf32>) -> tensor<f32>
}

// -----

sdg.program @unnamed_extent dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<?xf32>
  // expected-error@+1 {{tensor<?xf32> has 1 dynamic extents and names 0: write one expression per `?`}}
  %y = sdg.sum %x[t] axes [0] in (t) : (tensor<?xf32>) -> tensor<f32>
}

// -----

sdg.program @extents dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %a = sdg.input "a" in (t) : tensor<?xf32, #sdg.size<t + 1>>
  // expected-error@+1 {{sdg.add, axis 0: extents t + 1 and max(0, T - t) differ, at t = 0 (T = 2)}}
  %y = sdg.add %a[t], %x[t:T] in (t) : (tensor<?xf32, #sdg.size<t + 1>>, tensor<f32>) -> tensor<?xf32, #sdg.size<t + 1>>
}

// -----

sdg.program @ragged dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<?xf32, #sdg.size<t + 1>>
  // expected-error@+1 {{slice '0:T' of dim t would stack rows of different extents}}
  %y = sdg.sum %a[0:T] axes [0, 1] : (tensor<?xf32, #sdg.size<t + 1>>) -> tensor<f32>
}

// -----

sdg.program @out_of_range dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  // expected-error@+1 {{operand #0 %x[t - 1] reads at t = -1, outside of the domain (t) of what it reads, at t = 0 (T = 1); it reads inside where t >= 1: define the other points by another case, or clamp the index by min and max}}
  %y = sdg.neg %x[t - 1] in (t) : (tensor<f32>) -> tensor<f32>
}

// -----

sdg.program @beyond dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  // expected-error@+1 {{operand #0 %x[2 * t] reads at t = 2, outside of the domain (t) of what it reads, at t = 1 (T = 2)}}
  %y = sdg.neg %x[2 * t] in (t) : (tensor<f32>) -> tensor<f32>
}

// -----

sdg.program @last dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  // expected-error@+1 {{reads at t = -1, outside of the domain (t) of what it reads, at T = 0; it needs T >= 1: declare it with `where T >= 1`}}
  %y = sdg.neg %x[T - 1] : (tensor<f32>) -> tensor<f32>
}

// -----

sdg.program @gap dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  // expected-error@+1 {{no case holds at t = 1 (T = 2): the cases leave out}}
  %y = sdg.merge {t = 0 : %x[0], t = 3 : %x[3]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
}

// -----

sdg.program @never dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  // expected-error@+1 {{case #0 `t < 0` holds at no point, whatever the bounds: mend its condition or remove it}}
  %y = sdg.merge {t < 0 : %x[0], t >= 0 : %x[t]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
}

// -----

sdg.program @shadowed dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  // expected-error@+1 {{case #1 `t = 2` is never reached: the cases before it hold wherever it does}}
  %y = sdg.merge {t < 5 : %x[t], t = 2 : %x[2], t >= 0 : %x[t]} in (t) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
}

// -----

sdg.program @empty_mean dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  // expected-error@+1 {{sdg.mean over an axis that may be empty, which needs T >= 1: it fails at T = 0}}
  %y = sdg.mean %x[0:T] axes [0] : (tensor<f32>) -> tensor<f32>
}

// -----

sdg.program @carried_type dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %z = sdg.constant 0 : tensor<i32>
  // expected-error@+1 {{case #0 reads a tensor<i32>, the merge makes tensor<f32>: dtypes f32 and i32 differ}}
  %y = sdg.merge {t = 0 : %z, t > 0 : %x[t - 1]} in (t) : (tensor<i32>, tensor<f32>) -> tensor<f32>
}

// -----

sdg.program @twice dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  sdg.output "y" %x[t] in (t) : tensor<f32>
  // expected-error@+1 {{output "y" is written twice}}
  sdg.output "y" %x[t] in (t) : tensor<f32>
}

// -----

sdg.program @bound_name dims(t: T) {
  // expected-error@+1 {{"T" names an array and a bound: a call could not tell them apart, rename one}}
  %x = sdg.input "T" in (t) : tensor<f32>
}

// -----

sdg.program @token dims(t: T) {
  %env = sdg.host_state @env : !sdg.token
  %e = sdg.merge {t = 0 : %env, t > 0 : %n[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  // expected-error@+1 {{operand #0 %e is a token, which has no rows: index it by points, not by a slice}}
  %n = sdg.host @env::@step() after %e[0:T] in (t) : (!sdg.token) -> (!sdg.token)
}

// -----

sdg.program @literal dims(t: T) {
  // expected-error@+1 {{0.5 is not an integer, as dtype i64 needs}}
  %z = sdg.constant 0.5 : tensor<i64>
}

// -----

sdg.program @loss dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  // expected-error@+1 {{the loss of sdg.grad is a scalar at each point, got tensor<4xf32>: take a mean or a sum}}
  %g = sdg.grad %x wrt %x in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
}

// -----

// expected-error@+1 {{sdg.parameter stands in builtin.module: it belongs in the body of an sdg.program}}
%x = sdg.parameter "x" : tensor<4xf32>

// -----

sdg.program @product dims(i: I, t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  // expected-error@+1 {{not affine}}
  %y = sdg.neg %x[i * t] in (i, t) : (tensor<f32>) -> tensor<f32>
}

// -----

sdg.program @cycle dims(t: T) {
  // expected-error-re@+1 {{%x needs itself: %x {{.*}} at t = 0 needs %y {{.*}} at t = 0 needs %x {{.*}} at t = 0 (T = 1)}}
  %x = sdg.neg %y[t] in (t) : (tensor<f32>) -> tensor<f32>
  %y = sdg.neg %x[t] in (t) : (tensor<f32>) -> tensor<f32>
}

// -----

sdg.program @past_and_future dims(t: T) {
  %z = sdg.constant 0.0 : tensor<f32>
  // expected-error@+1 {{%p needs itself}}
  %p = sdg.merge {t > 0 : %y[t - 1], t = 0 : %z} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %n = sdg.merge {t < T - 1 : %y[t + 1], t = T - 1 : %z} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %y = sdg.add %p[t], %n[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
}

// -----

// five points of t are T = 8
sdg.program @half dims(t: (T + 2) floordiv 2) {
  %z = sdg.constant 0.0 : tensor<f32>
  // expected-error-re@+1 {{%h needs itself: %h {{.*}} at t = 0 needs %h {{.*}} at t = 4 needs %h {{.*}} at t = 0 (T = 8)}}
  %h = sdg.merge {t + 4 < (T + 2) floordiv 2 : %h[t + 4], t >= 4 : %h[t - 4], true : %z} in (t) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
}

// -----

// no small size has the cycle, the closure of the reads does
sdg.program @far dims(t: T) {
  %z = sdg.constant 0.0 : tensor<f32>
  // expected-error@+1 {{%y needs itself at t = 100 (T = 101)}}
  %y = sdg.merge {t = 100 : %y[t], t >= 0 : %z} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
}

// -----

sdg.program @two_calls dims(t: T) {
  %env = sdg.host_state @env : !sdg.token
  %e = sdg.merge {t = 0 : %env, t > 0 : %n[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  // expected-error@+1 {{%e is also consumed by}}
  %n = sdg.host @env::@step() after %e[t] in (t) : (!sdg.token) -> (!sdg.token)
  %m = sdg.host @env::@show() after %e[t] in (t) : (!sdg.token) -> (!sdg.token)
}

// -----

sdg.program @many_calls dims(t: T) {
  %env = sdg.host_state @env : !sdg.token
  // expected-error@+1 {{%env is consumed at several points by one op}}
  %n = sdg.host @env::@step() after %env in (t) : (!sdg.token) -> (!sdg.token)
}

// -----

sdg.program @other_object dims(t: T) {
  %env = sdg.host_state @env : !sdg.token
  // expected-error@+1 {{a call of @log waits for the token %env of @env}}
  %n = sdg.host @log::@show() after %env : (!sdg.token) -> (!sdg.token)
}

// -----

sdg.program @padded_with_no_number_of_the_type dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xi32>
  // expected-error@+1 {{1.5 is not an integer, as dtype i32 needs}}
  %p = sdg.pad %x[t] low [1] high [0] value 1.5 in (t) : (tensor<4xi32>) -> tensor<5xi32>
}

// -----

sdg.program @memory_of_the_caller dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  // expected-error@+1 {{%x lies in an array of the caller, which the program does not manage}}
  sdg.dealloc %x : tensor<4xf32>
}

// -----

sdg.program @asked_twice dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %y = sdg.exp %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{sdg.swap is asked of %y twice: remove one}}
  sdg.swap %y ahead 1 : tensor<4xf32>
  sdg.swap %y ahead 2 : tensor<4xf32>
}

// -----

sdg.program @back_before dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %y = sdg.exp %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{rows cannot come back -1 iterations ahead: ask for 0 or more}}
  sdg.swap %y ahead -1 : tensor<4xf32>
}

// -----

sdg.program @no_parameter dims(t: T) {
  %x = sdg.input "x" : tensor<4xf32>
  // expected-error@+1 {{output "w" donates the array of a parameter "w", which there is not}}
  sdg.output "w" donates %x : tensor<4xf32>
}

// -----

sdg.program @below_zero dims(t: T) {
  // expected-error@+1 {{the extent T - 2 * t falls below 0 at t = 2 (T = 3): write max(0, T - 2 * t)}}
  %x = sdg.input "x" in (t) : tensor<?xf32, #sdg.size<T - 2 * t>>
  %y = sdg.concat %x[t], %x[t] axis 0 in (t) : (tensor<?xf32, #sdg.size<T - 2 * t>>, tensor<?xf32, #sdg.size<T - 2 * t>>) -> tensor<?xf32, #sdg.size<2 * T - 4 * t>>
  %s = sdg.sum %y[t] axes [0] in (t) : (tensor<?xf32, #sdg.size<2 * T - 4 * t>>) -> tensor<f32>
  sdg.output "s" %s[t] in (t) : tensor<f32>
}

// -----

sdg.program @below_zero_at_few dims(t: T) {
  %one = sdg.constant 1.0 : tensor<f32>
  // expected-error@+1 {{the extent T - 3 falls below 0 at T = 0: write max(0, T - 3)}}
  %y = sdg.broadcast %one : (tensor<f32>) -> tensor<?xf32, #sdg.size<T - 3>>
  %s = sdg.sum %y axes [0] : (tensor<?xf32, #sdg.size<T - 3>>) -> tensor<f32>
  sdg.output "s" %s : tensor<f32>
}

// -----

sdg.program @vectorised_along_what_is_no_dim dims(t: T) {
  %env = sdg.host_state @env : !sdg.token
  %x = sdg.input "x" in (t) : tensor<f32>
  %e = sdg.merge {t = 0 : %env, t > 0 : %n[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  // expected-error@+1 {{@all vectorises along (b), expected dims of the program, (t), each once, in order}}
  %n = sdg.host @env::@step(%x[t]) after %e[t] vectorized @all along (b) in (t) : (tensor<f32>, !sdg.token) -> (!sdg.token)
}

// -----

sdg.program @over_points_that_it_varies_over dims(t: T) where T >= 1 {
  %env = sdg.host_state @env : !sdg.token
  %x = sdg.input "x" in (t) : tensor<f32>
  %e = sdg.merge {t = 0 : %env, t > 0 : %n[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  // expected-error@+1 {{the call varies over t, and is over its points too}}
  %n = sdg.host @env::@step(%x[0:T]) after %e[t] vectorized @all along (t) over (t) in (t) : (tensor<f32>, !sdg.token) -> (!sdg.token)
}

// -----

sdg.program @a_row_of_another_length dims(b: B) where B >= 1 {
  %env = sdg.host_state @env : !sdg.token
  %x = sdg.input "x" in (b) : tensor<f32>
  // expected-error@+1 {{argument #0 of a call over the points of b, axis 0: extents B and max(0, B - 1) differ, at B = 1}}
  %y, %n = sdg.host @env::@step(%x[1:B]) after %env vectorized @all along (b) over (b) : (tensor<f32>, !sdg.token) -> (tensor<?xf32, #sdg.size<B>>, !sdg.token)
}

// -----

sdg.program @one_result_for_all_points dims(b: B) where B >= 1 {
  %env = sdg.host_state @env : !sdg.token
  %x = sdg.input "x" in (b) : tensor<f32>
  // expected-error@+1 {{result #0 of a call over the points of b: shapes (B,) and () differ in rank}}
  %y, %n = sdg.host @env::@step(%x[0:B]) after %env vectorized @all along (b) over (b) : (tensor<f32>, !sdg.token) -> (tensor<f32>, !sdg.token)
}

// -----

sdg.program @no_point dims(b: B) {
  %env = sdg.host_state @env : !sdg.token
  %x = sdg.input "x" in (b) : tensor<f32>
  // expected-error@+1 {{a call over the points of b, of which there may be none, which needs B >= 1: it fails at B = 0}}
  %n = sdg.host @env::@step(%x[0:B]) after %env vectorized @all along (b) over (b) : (tensor<f32>, !sdg.token) -> (!sdg.token)
}

// -----

sdg.program @nothing_to_count dims(b: B) {
  %env = sdg.host_state @env : !sdg.token
  %e = sdg.merge {b = 0 : %env, b > 0 : %n[b - 1]} in (b) : (!sdg.token, !sdg.token) -> !sdg.token
  // expected-error@+1 {{@all is given no argument, whose leading axes would say of how many points}}
  %n = sdg.host @env::@step() after %e[b] vectorized @all along (b) in (b) : (!sdg.token) -> (!sdg.token)
}

// -----

// expected-error@+1 {{outermost names b, the program declares t}}
sdg.program @outermost dims(t: T) attributes {outermost = ["b"]} {
  %x = sdg.parameter "x" : tensor<f32>
}
