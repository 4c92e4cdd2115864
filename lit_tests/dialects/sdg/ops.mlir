// Every op and attribute of the dialect, with each part of its syntax.
// RUN: TEMPO_ROUNDTRIP
// RUN: TEMPO_GENERIC_ROUNDTRIP

sdg.program @sources dims(i: I, t: T, e: 4, m: T floordiv 8) where 1 <= I and T >= 2 {
  %zero = sdg.constant 0.0 : tensor<4xf32>
  %tiny = sdg.constant 1.0e-05 : tensor<f64>
  %nan = sdg.constant nan : tensor<f16>
  %three = sdg.constant 3 : tensor<2xi64>
  %true = sdg.constant true : tensor<i1>
  %dense = sdg.constant dense<[1, 2]> : tensor<2xui8>
  %index = sdg.index t + 1 in (t) : tensor<i64>
  %arange = sdg.arange [0:t + 1] in (t) : tensor<?xi64, #sdg.size<t + 1>>
  %bits = sdg.random bits id 0 in (i, t) : tensor<8xi64>
  %uniform = sdg.random uniform id 1 in (i, t: 1 to T) : tensor<8xf32>
  %there = sdg.random uniform id 1 at [i, t - 1 + call.start.t] in (i, t: 1 to T) : tensor<8xf32>
  %normal = sdg.random normal id 2 in (i, t where t < i) : tensor<8xf64>
  %stop = sdg.stop_gradient %zero : (tensor<4xf32>) -> tensor<4xf32>
  %last = sdg.keep %index[T - 1] in (where T >= 1) : (tensor<i64>) -> tensor<i64>
  %odd = sdg.merge {t mod 2 = 0 : %index[t], t mod 2 ne 0 and t > 0 : %index[t - 1]} in (t) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  sdg.output "odd" %odd[t] in (t: 1 to T where t mod 2 = 1) : tensor<i64>
}

// CHECK-LABEL: sdg.program @sources dims(i: I, t: T, e: 4, m: T floordiv 8) where 1 <= I and T >= 2 {
// CHECK-NEXT:    %zero = sdg.constant 0.0 : tensor<4xf32>
// CHECK-NEXT:    %tiny = sdg.constant 1.0e-05 : tensor<f64>
// CHECK-NEXT:    %nan = sdg.constant nan : tensor<f16>
// CHECK-NEXT:    %three = sdg.constant 3 : tensor<2xi64>
// CHECK-NEXT:    %true = sdg.constant true : tensor<i1>
// CHECK-NEXT:    %dense = sdg.constant dense<[1, 2]> : tensor<2xui8>
// CHECK-NEXT:    %index = sdg.index t + 1 in (t) : tensor<i64>
// CHECK-NEXT:    %arange = sdg.arange [0:t + 1] in (t) : tensor<?xi64, #sdg.size<t + 1>>
// CHECK-NEXT:    %bits = sdg.random bits id 0 in (i, t) : tensor<8xi64>
// CHECK-NEXT:    %uniform = sdg.random uniform id 1 in (i, t: 1 to T) : tensor<8xf32>
// CHECK-NEXT:    %there = sdg.random uniform id 1 at [i, call.start.t + t - 1] in (i, t: 1 to T) : tensor<8xf32>
// CHECK-NEXT:    %normal = sdg.random normal id 2 in (i, t where t < i) : tensor<8xf64>
// CHECK-NEXT:    %stop = sdg.stop_gradient %zero : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %last = sdg.keep %index[T - 1] in (where T >= 1) : (tensor<i64>) -> tensor<i64>
// CHECK-NEXT:    %odd = sdg.merge {t mod 2 = 0 : %index[t], t mod 2 ne 0 and t > 0 : %index[t - 1]} in (t) : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:    sdg.output "odd" %odd[t] in (t: 1 to T where t mod 2 = 1) : tensor<i64>
// CHECK-NEXT:    }

// -----

sdg.program @elementwise dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4x8xf32>
  %b = sdg.input "b" in (t) : tensor<8xi1>
  %y = sdg.parameter "y" : tensor<8xf32>
  %neg = sdg.neg %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %abs = sdg.abs %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %sign = sdg.sign %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %exp = sdg.exp %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %log = sdg.log %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %log1p = sdg.log1p %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %sqrt = sdg.sqrt %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %rsqrt = sdg.rsqrt %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %tanh = sdg.tanh %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %sigmoid = sdg.sigmoid %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %erf = sdg.erf %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %sin = sdg.sin %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %cos = sdg.cos %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %floor = sdg.floor %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %ceil = sdg.ceil %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %round = sdg.round %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %not = sdg.not %b[t] in (t) : (tensor<8xi1>) -> tensor<8xi1>
  %cast = sdg.cast %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  %add = sdg.add %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %sub = sdg.sub %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %mul = sdg.mul %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %div = sdg.div %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %pow = sdg.pow %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %floordiv = sdg.floordiv %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %mod = sdg.mod %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %minimum = sdg.minimum %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %maximum = sdg.maximum %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %and = sdg.and %b[t], %b[T - t - 1] in (t) : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
  %or = sdg.or %b[t], %b[T - t - 1] in (t) : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
  %xor = sdg.xor %b[t], %b[T - t - 1] in (t) : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
  %lt = sdg.lt %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  %le = sdg.le %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  %gt = sdg.gt %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  %ge = sdg.ge %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  %eq = sdg.eq %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  %ne = sdg.ne %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  %select = sdg.select %b[t], %x[t], %y in (t) : (tensor<8xi1>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
}

// CHECK-LABEL: sdg.program @elementwise dims(t: T) {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<4x8xf32>
// CHECK-NEXT:    %b = sdg.input "b" in (t) : tensor<8xi1>
// CHECK-NEXT:    %y = sdg.parameter "y" : tensor<8xf32>
// CHECK-NEXT:    %neg = sdg.neg %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %abs = sdg.abs %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %sign = sdg.sign %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %exp = sdg.exp %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %log = sdg.log %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %log1p = sdg.log1p %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %sqrt = sdg.sqrt %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %rsqrt = sdg.rsqrt %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %tanh = sdg.tanh %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %sigmoid = sdg.sigmoid %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %erf = sdg.erf %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %sin = sdg.sin %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %cos = sdg.cos %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %floor = sdg.floor %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %ceil = sdg.ceil %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %round = sdg.round %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %not = sdg.not %b[t] in (t) : (tensor<8xi1>) -> tensor<8xi1>
// CHECK-NEXT:    %cast = sdg.cast %x[t] in (t) : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK-NEXT:    %add = sdg.add %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %sub = sdg.sub %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %mul = sdg.mul %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %div = sdg.div %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %pow = sdg.pow %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %floordiv = sdg.floordiv %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %mod = sdg.mod %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %minimum = sdg.minimum %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %maximum = sdg.maximum %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %and = sdg.and %b[t], %b[T - t - 1] in (t) : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
// CHECK-NEXT:    %or = sdg.or %b[t], %b[T - t - 1] in (t) : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
// CHECK-NEXT:    %xor = sdg.xor %b[t], %b[T - t - 1] in (t) : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
// CHECK-NEXT:    %lt = sdg.lt %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
// CHECK-NEXT:    %le = sdg.le %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
// CHECK-NEXT:    %gt = sdg.gt %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
// CHECK-NEXT:    %ge = sdg.ge %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
// CHECK-NEXT:    %eq = sdg.eq %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
// CHECK-NEXT:    %ne = sdg.ne %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
// CHECK-NEXT:    %select = sdg.select %b[t], %x[t], %y in (t) : (tensor<8xi1>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    }

// -----

sdg.program @reductions dims(t: T) where T >= 1 {
  %x = sdg.input "x" in (t) : tensor<4x8xf32>
  %sum = sdg.sum %x[0:T] axes [0, 2] : (tensor<4x8xf32>) -> tensor<4xf32>
  %prod = sdg.prod %x[0:T] axes [0, 2] : (tensor<4x8xf32>) -> tensor<4xf32>
  %max = sdg.max %x[0:T] axes [0, 2] : (tensor<4x8xf32>) -> tensor<4xf32>
  %min = sdg.min %x[0:T] axes [0, 2] : (tensor<4x8xf32>) -> tensor<4xf32>
  %mean = sdg.mean %x[0:T] axes [0, 2] : (tensor<4x8xf32>) -> tensor<4xf32>
  %argmax = sdg.argmax %x[t] axis 1 in (t) : (tensor<4x8xf32>) -> tensor<4xi64>
  %argmin = sdg.argmin %x[t] axis 1 in (t) : (tensor<4x8xf32>) -> tensor<4xi64>
  %softmax = sdg.softmax %x[t] axis 1 in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %cumsum = sdg.cumsum %x[t] axis 0 in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %cumprod = sdg.cumprod %x[t] axis 0 reverse in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
}

// CHECK-LABEL: sdg.program @reductions dims(t: T) where T >= 1 {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<4x8xf32>
// CHECK-NEXT:    %sum = sdg.sum %x[0:T] axes [0, 2] : (tensor<4x8xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %prod = sdg.prod %x[0:T] axes [0, 2] : (tensor<4x8xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %max = sdg.max %x[0:T] axes [0, 2] : (tensor<4x8xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %min = sdg.min %x[0:T] axes [0, 2] : (tensor<4x8xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %mean = sdg.mean %x[0:T] axes [0, 2] : (tensor<4x8xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %argmax = sdg.argmax %x[t] axis 1 in (t) : (tensor<4x8xf32>) -> tensor<4xi64>
// CHECK-NEXT:    %argmin = sdg.argmin %x[t] axis 1 in (t) : (tensor<4x8xf32>) -> tensor<4xi64>
// CHECK-NEXT:    %softmax = sdg.softmax %x[t] axis 1 in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %cumsum = sdg.cumsum %x[t] axis 0 in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %cumprod = sdg.cumprod %x[t] axis 0 reverse in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    }

// -----

sdg.program @shapes dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4x8xf32>
  %n = sdg.input "n" in (t) : tensor<4xi64>
  %reshape = sdg.reshape %x[0:t + 1] in (t) : (tensor<4x8xf32>) -> tensor<?x32xf32, #sdg.size<t + 1>>
  %transpose = sdg.transpose %x[t] permutation [1, 0] in (t) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %broadcast = sdg.broadcast %x[t] in (t) : (tensor<4x8xf32>) -> tensor<3x4x8xf32>
  %slice = sdg.slice %x[t] take [0:2, t mod 8] in (t) : (tensor<4x8xf32>) -> tensor<2xf32>
  %pad = sdg.pad %x[t] low [0, 1] high [2, t] value -inf in (t) : (tensor<4x8xf32>) -> tensor<6x?xf32, #sdg.size<t + 9>>
  %concat = sdg.concat %n[t], %n[t] axis 0 in (t) : (tensor<4xi64>, tensor<4xi64>) -> tensor<8xi64>
  %gather = sdg.gather %x[t], %n[t] axis 1 in (t) : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x4xf32>
  %scatter = sdg.scatter_add %n[t], %x[t] axis 0 in (t) : (tensor<4xi64>, tensor<4x8xf32>) -> tensor<10x8xf32>
  %one_hot = sdg.one_hot %n[t] depth 8 in (t) : (tensor<4xi64>) -> tensor<4x8xf32>
  %sort = sdg.sort %x[t] axis 1 in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %argsort = sdg.argsort %x[t] axis 1 descending in (t) : (tensor<4x8xf32>) -> tensor<4x8xi64>
  %reverse = sdg.reverse %x[t] axis 1 in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
}

// CHECK-LABEL: sdg.program @shapes dims(t: T) {
// CHECK-NEXT:    %x = sdg.input "x" in (t) : tensor<4x8xf32>
// CHECK-NEXT:    %n = sdg.input "n" in (t) : tensor<4xi64>
// CHECK-NEXT:    %reshape = sdg.reshape %x[0:t + 1] in (t) : (tensor<4x8xf32>) -> tensor<?x32xf32, #sdg.size<t + 1>>
// CHECK-NEXT:    %transpose = sdg.transpose %x[t] permutation [1, 0] in (t) : (tensor<4x8xf32>) -> tensor<8x4xf32>
// CHECK-NEXT:    %broadcast = sdg.broadcast %x[t] in (t) : (tensor<4x8xf32>) -> tensor<3x4x8xf32>
// CHECK-NEXT:    %slice = sdg.slice %x[t] take [0:2, t mod 8] in (t) : (tensor<4x8xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %pad = sdg.pad %x[t] low [0, 1] high [2, t] value -inf in (t) : (tensor<4x8xf32>) -> tensor<6x?xf32, #sdg.size<t + 9>>
// CHECK-NEXT:    %concat = sdg.concat %n[t], %n[t] axis 0 in (t) : (tensor<4xi64>, tensor<4xi64>) -> tensor<8xi64>
// CHECK-NEXT:    %gather = sdg.gather %x[t], %n[t] axis 1 in (t) : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x4xf32>
// CHECK-NEXT:    %scatter = sdg.scatter_add %n[t], %x[t] axis 0 in (t) : (tensor<4xi64>, tensor<4x8xf32>) -> tensor<10x8xf32>
// CHECK-NEXT:    %one_hot = sdg.one_hot %n[t] depth 8 in (t) : (tensor<4xi64>) -> tensor<4x8xf32>
// CHECK-NEXT:    %sort = sdg.sort %x[t] axis 1 in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %argsort = sdg.argsort %x[t] axis 1 descending in (t) : (tensor<4x8xf32>) -> tensor<4x8xi64>
// CHECK-NEXT:    %reverse = sdg.reverse %x[t] axis 1 in (t) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    }

// -----

sdg.program @remembered dims(t: T) where T >= 4 attributes {preconditions = [#sdg.precondition<#sdg.cond<(T >= 4)>, "sdg.sum (model.py:7)">]} {
  %x = sdg.parameter "x" : tensor<f32>
}

// CHECK-LABEL: sdg.program @remembered dims(t: T) where T >= 4 attributes {preconditions = [#sdg.precondition<#sdg.cond<(T >= 4)>, "sdg.sum (model.py:7)">]} {
// CHECK-NEXT:    %x = sdg.parameter "x" : tensor<f32>
// CHECK-NEXT:    }

// -----

sdg.program @requests dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %w = sdg.parameter "w" : tensor<4xf32>
  %y = sdg.exp %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.swap %y ahead 4 : tensor<4xf32>
  sdg.dealloc %y : tensor<4xf32>
  sdg.output "w" donates %w : tensor<4xf32>
}

// CHECK-LABEL: sdg.program @requests dims(t: T) {
// CHECK:         sdg.swap %y ahead 4 : tensor<4xf32>
// CHECK-NEXT:    sdg.dealloc %y : tensor<4xf32>
// CHECK-NEXT:    sdg.output "w" donates %w : tensor<4xf32>

// -----

sdg.program @calls dims(t: T, b: B) where B >= 1 {
  %x = sdg.input "x" in (t, b) : tensor<f32>
  %env = sdg.host_state @env : !sdg.token
  %e = sdg.merge {t = 0 : %env, t > 0 : %n[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %y, %m = sdg.host @env::@step(%x[t, 0:B]) after %e[t] gradient @back vectorized @step_all along (t, b) over (b) in (t) : (tensor<f32>, !sdg.token) -> (tensor<?xf32, #sdg.size<B>>, !sdg.token)
  %n = sdg.host @env::@show(%x[t, 0]) after %m[t] vectorized @show_all along (t) in (t) : (tensor<f32>, !sdg.token) -> !sdg.token
}

// CHECK-LABEL: sdg.program @calls
// CHECK:         %y, %m = sdg.host @env::@step(%x[t, 0:B]) after %e[t] gradient @back vectorized @step_all along (t, b) over (b) in (t) :
// CHECK-NEXT:    %n = sdg.host @env::@show(%x[t, 0]) after %m[t] vectorized @show_all along (t) in (t) :
