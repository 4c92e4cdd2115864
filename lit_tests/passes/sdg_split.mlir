// RUN: tempo-opt %s --check-each=interp -p sdg-split --split-input-file | filecheck %s
// RUN: tempo-opt %s --check-each=interp -p sdg-split,sdg-vectorize{all=true},sdg-simplify,sdg-dce,sdg-reduce-domain --split-input-file | filecheck %s --check-prefix=ALL

// What depends on the token, and the token on it, is made for a prompt first, where nothing recurs. Attention of the
// other steps reads rows of both parts, the first token after the prompt the last of the first.

// CHECK-LABEL: sdg.program @decode
// CHECK-NEXT:    %prompt = sdg.input "prompt" in (p)
// CHECK-NEXT:    %[[T1:.*]] = sdg.broadcast %prompt[t] in (t: 0 to P)
// CHECK-NEXT:    %[[T:.*]] = sdg.merge {t < P : %[[T1]][t], t >= P : %[[T2:.*]][t]} in (t)
// CHECK-NEXT:    %{{.*}} = sdg.merge {t > 0 : %[[N:.*]][t - 1]} in (t: P to T)
// CHECK-NEXT:    %[[K1:.*]] = sdg.mul %[[T1]][t], %[[T1]][t] in (t: 0 to P)
// CHECK-NEXT:    %[[K:.*]] = sdg.merge {t < P : %[[K1]][t], t >= P : %[[K2:.*]][t]} in (t)
// CHECK-NEXT:    %{{.*}} = sdg.mul %{{.*}}[t], %{{.*}}[t] in (t: P to T)
// CHECK-NEXT:    %[[S1:.*]] = sdg.sum %[[K1]][0:t + 1] axes [0] in (t: 0 to P)
// CHECK-NEXT:    %[[S2:.*]] = sdg.sum %[[K]][0:t + 1] axes [0] in (t: P to T)
// CHECK-NEXT:    %[[N1:.*]] = sdg.neg %[[S1]][t] in (t: 0 to P)
// CHECK-NEXT:    %{{.*}} = sdg.merge {t < P : %[[N1]][t], t >= P : %{{.*}}[t]} in (t)
// CHECK-NEXT:    %{{.*}} = sdg.neg %[[S2]][t] in (t: P to T)
// CHECK-NEXT:    sdg.output "token" %[[T]][t] in (t)

// ALL-LABEL: sdg.program @decode
// ALL:         sdg.mul %prompt[0:P], %prompt[0:P] :
sdg.program @decode dims(t: T, p: P) where 1 <= P <= T {
  %prompt = sdg.input "prompt" in (p) : tensor<3xf32>
  %token = sdg.merge {t < P : %prompt[t], t > 0 : %next[t - 1]} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %k = sdg.mul %token[t], %token[t] in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %s = sdg.sum %k[0:t + 1] axes [0] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  %next = sdg.neg %s[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.output "token" %token[t] in (t) : tensor<3xf32>
}
