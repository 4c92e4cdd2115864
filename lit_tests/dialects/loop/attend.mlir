// RUN: TEMPO_ROUNDTRIP
// RUN: TEMPO_GENERIC_ROUNDTRIP

// CHECK-LABEL: loop.program @attend
// CHECK:         %o = loop.attend "thn,nhd->thd" %a, %b rows t from -63 to 1 : (tensor<?x2x?xf32, #sdg.size<T, N>>, tensor<?x2x8xf32, #sdg.size<N>>) -> tensor<?x2x8xf32, #sdg.size<T>>
// CHECK-NEXT:    %p = loop.attend "thn,nhd->thd" %a, %b rows t from P - T :
// CHECK-NEXT:    %r = loop.attend "thn,nhd->thd" %a, %b rows t to 1 :
// CHECK-NEXT:    %s = loop.attend "thn,nhd->thd" %a, %b rows t :
loop.program @attend dims(t: T, n: N, p: P) {
  %score = loop.input "score" : !loop.buffer<?x2x?xf32, [T, N]>
  %v = loop.input "v" : !loop.buffer<?x2x8xf32, [N]>
  %out = loop.output "out" : !loop.buffer<?x2x8xf32, [T]>
  loop.kernel ins(%a = %score, %b = %v) outs(%out) {
    %o = loop.attend "thn,nhd->thd" %a, %b rows t from -63 to 1 : (tensor<?x2x?xf32, #sdg.size<T, N>>, tensor<?x2x8xf32, #sdg.size<N>>) -> tensor<?x2x8xf32, #sdg.size<T>>
    %p = loop.attend "thn,nhd->thd" %a, %b rows t from P - T : (tensor<?x2x?xf32, #sdg.size<T, N>>, tensor<?x2x8xf32, #sdg.size<N>>) -> tensor<?x2x8xf32, #sdg.size<T>>
    %r = loop.attend "thn,nhd->thd" %a, %b rows t to 1 : (tensor<?x2x?xf32, #sdg.size<T, N>>, tensor<?x2x8xf32, #sdg.size<N>>) -> tensor<?x2x8xf32, #sdg.size<T>>
    %s = loop.attend "thn,nhd->thd" %a, %b rows t : (tensor<?x2x?xf32, #sdg.size<T, N>>, tensor<?x2x8xf32, #sdg.size<N>>) -> tensor<?x2x8xf32, #sdg.size<T>>
    loop.yield %o : tensor<?x2x8xf32, #sdg.size<T>>
  }
}
