// A program of tests/fuzz, whose recurrences and gradients run over domains of many pieces: tests/storage/test_speed.py plans it.
builtin.module {
  sdg.program @random dims(b: B, t: T) where B >= 1 {
    %0 = sdg.input "x0" in (b, t) : tensor<?xf32, #sdg.size<T>>
    %1 = sdg.input "x1" : tensor<f32>
    %2 = sdg.argsort %0[b, t] axis 0 in (b, t: 0 to T - 1) : (tensor<?xf32, #sdg.size<T>>) -> tensor<?xi64, #sdg.size<T>>
    %3 = sdg.constant 3 : tensor<i64>
    %4 = sdg.mod %2[b, t], %3 in (b, t: 0 to T - 1) : (tensor<?xi64, #sdg.size<T>>, tensor<i64>) -> tensor<?xi64, #sdg.size<T>>
    %5 = sdg.scatter_add %4[b, t], %2[b, t] axis 0 in (b, t: 0 to T - 1) : (tensor<?xi64, #sdg.size<T>>, tensor<?xi64, #sdg.size<T>>) -> tensor<3xi64>
    %6 = sdg.reshape %1 : (tensor<f32>) -> tensor<1xf32>
    %7 = sdg.constant 0 : tensor<3xi64>
    %8 = sdg.merge {b < 2 and b >= 1 : %9[b - 1, t], b >= 2 and b + 1 < B : %9[b + 1, t], true : %7} in (b, t: 0 to T - 1) : (tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %9 = sdg.xor %8[b, t], %5[b, t] in (b, t: 0 to T - 1) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %10 = sdg.merge {b + 2 < B : %11[b + 2, t], b + 1 < B : %11[b + 1, t floordiv 2], true : %0[b, t]} in (b, t where b >= 2 and t < T + b mod 2 - 1 or B >= 2 * (b floordiv 2) + 2 and t < T + b mod 2 - 1 or B >= 2 and T >= 2 * t - B mod 2 + 2 and b = B - 1) : (tensor<?xf32, #sdg.size<T>>, tensor<?xf32, #sdg.size<T>>, tensor<?xf32, #sdg.size<T>>) -> tensor<?xf32, #sdg.size<T>>
    %12 = sdg.constant -0.5 : tensor<f32>
    %13 = sdg.mul %10[b, t], %12 in (b, t where b >= 2 and t < T + b mod 2 - 1 or B >= 2 * (b floordiv 2) + 2 and t < T + b mod 2 - 1 or B >= 2 and T >= 2 * t - B mod 2 + 2 and b = B - 1) : (tensor<?xf32, #sdg.size<T>>, tensor<f32>) -> tensor<?xf32, #sdg.size<T>>
    %14 = sdg.add %13[b, t], %0[b, t] in (b, t where b >= 2 and t < T + b mod 2 - 1 or B >= 2 * (b floordiv 2) + 2 and t < T + b mod 2 - 1 or B >= 2 and T >= 2 * t - B mod 2 + 2 and b = B - 1) : (tensor<?xf32, #sdg.size<T>>, tensor<?xf32, #sdg.size<T>>) -> tensor<?xf32, #sdg.size<T>>
    %11 = sdg.tanh %14[b, t] in (b, t where b >= 2 and t < T + b mod 2 - 1 or B >= 2 * (b floordiv 2) + 2 and t < T + b mod 2 - 1 or B >= 2 and T >= 2 * t - B mod 2 + 2 and b = B - 1) : (tensor<?xf32, #sdg.size<T>>) -> tensor<?xf32, #sdg.size<T>>
    %15 = sdg.merge {b >= 1 and t >= 1 : %16[b - 1, t - 1], true : %11[b, t]} in (b: max(0, 2 - T) to 2 * (B floordiv 2), t: 0 to T + b mod 2 - 1) : (tensor<?xf32, #sdg.size<T>>, tensor<?xf32, #sdg.size<T>>) -> tensor<?xf32, #sdg.size<T>>
    %17 = sdg.constant 0.5 : tensor<f32>
    %18 = sdg.mul %15[b, t], %17 in (b: max(0, 2 - T) to 2 * (B floordiv 2), t: 0 to T + b mod 2 - 1) : (tensor<?xf32, #sdg.size<T>>, tensor<f32>) -> tensor<?xf32, #sdg.size<T>>
    %19 = sdg.sub %18[b, t], %11[b, t] in (b: max(0, 2 - T) to 2 * (B floordiv 2), t: 0 to T + b mod 2 - 1) : (tensor<?xf32, #sdg.size<T>>, tensor<?xf32, #sdg.size<T>>) -> tensor<?xf32, #sdg.size<T>>
    %16 = sdg.tanh %19[b, t] in (b: max(0, 2 - T) to 2 * (B floordiv 2), t: 0 to T + b mod 2 - 1) : (tensor<?xf32, #sdg.size<T>>) -> tensor<?xf32, #sdg.size<T>>
    %20 = sdg.merge {b mod 2 ne 0 : %16[b, t], t ne b : %0[b, t], true : %0[b, t]} in (b, t) : (tensor<?xf32, #sdg.size<T>>, tensor<?xf32, #sdg.size<T>>, tensor<?xf32, #sdg.size<T>>) -> tensor<?xf32, #sdg.size<T>>
    %21 = sdg.contract "ab->a" %9[b, max(0, t - 2):t] in (b, t) : (tensor<3xi64>) -> tensor<?xi64, #sdg.size<min(t, 2)>>
    %22 = sdg.sum %20[b, t] axes [0] in (b, t) : (tensor<?xf32, #sdg.size<T>>) -> tensor<f32>
    %23 = sdg.sum %6 axes [0] : (tensor<1xf32>) -> tensor<f32>
    %24 = sdg.add %22[b, t], %23 in (b, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %25 = sdg.grad %24 wrt %0 allow_unused in (b, t) : (tensor<f32>, tensor<?xf32, #sdg.size<T>>) -> tensor<?xf32, #sdg.size<T>>
    %26 = sdg.grad %24 wrt %1 allow_unused : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %27 = sdg.sum %21[b, t] axes [0] in (b, t) : (tensor<?xi64, #sdg.size<min(t, 2)>>) -> tensor<i64>
    sdg.output "exact0" %27[b, t] in (b, t) : tensor<i64>
    sdg.output "single1" %25[b, t] in (b, t) : tensor<?xf32, #sdg.size<T>>
    sdg.output "single2" %26 : tensor<f32>
  }
}

