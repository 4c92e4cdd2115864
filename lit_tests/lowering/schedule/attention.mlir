// RUN: tempo-opt %s --check-each -p sdg-schedule | filecheck %s

// A window of at most three steps; %next is computed only where a token is read from it.

// CHECK-LABEL: loop.program @window dims(t: T, p: P) where 1 <= P <= T {
// CHECK-NEXT:    %prompt = loop.input "prompt" : !loop.buffer<(p: full) 4xf32>
// CHECK-NEXT:    %token = loop.output "token" : !loop.buffer<(t: full) 4xf32>
// CHECK-NEXT:    %score = loop.alloc : !loop.buffer<(t: full) ?xf32, [min(t + 1, 3)]>
// CHECK:         %next = loop.alloc : !loop.buffer<(t: full to T - 1) 4xf32>
// CHECK-NEXT:    loop.for t = 0 to T {
// CHECK-NEXT:      loop.if t < P {
// CHECK-NEXT:        loop.compute at (t = t) ins(%a = %prompt[t]) outs(%token[t]) {
// CHECK:           } else {
// CHECK-NEXT:        loop.compute at (t = t) ins(%a = %next[t - 1]) outs(%token[t]) {
// CHECK:           loop.compute at (t = t) ins(%a = %token[t], %b = %token[max(0, t - 2):t + 1]) outs(%score[t]) {
// CHECK-NEXT:        %0 = sdg.contract "d,nd->n" %a, %b : (tensor<4xf32>, tensor<?x4xf32, #sdg.size<min(t + 1, 3)>>) -> tensor<?xf32, #sdg.size<min(t + 1, 3)>>
// CHECK:           loop.compute at (t = t) {{.*}} outs(%weight[t]) {
// CHECK:           loop.compute at (t = t) {{.*}} outs(%mixed[t]) {
// CHECK:           loop.if t < T - 1 and t >= P - 1 {
// CHECK-NEXT:        loop.compute at (t = t) ins(%a = %mixed[t]) outs(%next[t]) {
sdg.program @window dims(t: T, p: P) where 1 <= P <= T {
  %prompt = sdg.input "prompt" in (p) : tensor<4xf32>
  %token = sdg.merge {t < P : %prompt[t], t > 0 : %next[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %score = sdg.contract "d,nd->n" %token[t], %token[max(0, t - 2):t + 1] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<?xf32, #sdg.size<min(t + 1, 3)>>
  %weight = sdg.softmax %score[t] axis 0 in (t) : (tensor<?xf32, #sdg.size<min(t + 1, 3)>>) -> tensor<?xf32, #sdg.size<min(t + 1, 3)>>
  %mixed = sdg.contract "n,nd->d" %weight[t], %token[max(0, t - 2):t + 1] in (t) : (tensor<?xf32, #sdg.size<min(t + 1, 3)>>, tensor<4xf32>) -> tensor<4xf32>
  %next = sdg.tanh %mixed[t] in (t: P - 1 to T - 1) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "token" %token[t] in (t) : tensor<4xf32>
}
