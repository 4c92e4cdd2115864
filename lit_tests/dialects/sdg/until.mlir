// A dim that ends by data: its syntax.
// RUN: TEMPO_ROUNDTRIP
// RUN: TEMPO_GENERIC_ROUNDTRIP

// CHECK-LABEL: sdg.program @decode dims(t: T) {
// CHECK:         %done = sdg.ge %token[t], %end in (t) : (tensor<i64>, tensor<i64>) -> tensor<i1>
// CHECK-NEXT:    sdg.until %done[t] in (t) : tensor<i1>
sdg.program @decode dims(t: T) {
  %end = sdg.constant 4 : tensor<i64>
  %one = sdg.constant 1 : tensor<i64>
  %zero = sdg.constant 0 : tensor<i64>
  %token = sdg.merge {t = 0 : %zero, t > 0 : %next[t - 1]} in (t) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %next = sdg.add %token[t], %one in (t: 0 to T - 1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %done = sdg.ge %token[t], %end in (t) : (tensor<i64>, tensor<i64>) -> tensor<i1>
  sdg.until %done[t] in (t) : tensor<i1>
  sdg.output "token" %token[t] in (t) : tensor<i64>
}
