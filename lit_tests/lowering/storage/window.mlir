// RUN: tempo-opt %s --check-each -p sdg-schedule,loop-plan-storage --split-input-file | filecheck %s

// A window of w rows is a ring of exactly w slots; the row that the next step overwrites is freed.

!kv = tensor<4xf32>
!score = tensor<?xf32, #sdg.size<min(t + 1, 64)>>

// CHECK-LABEL: loop.program @window
// CHECK:         %k = loop.alloc : !loop.buffer<(t: ring 64) 4xf32>
// CHECK-NEXT:    %v = loop.alloc : !loop.buffer<(t: ring 64) 4xf32>
// CHECK-NEXT:    loop.for t = 0 to T {
// CHECK-NEXT:      %score = loop.alloc : !loop.buffer<?xf32, [min(T, 64)]>
// CHECK:           loop.compute at (t = t) ins(%a = %x[t], %b = %k[max(0, t - 63):t + 1])
// CHECK:           loop.if t >= 63 {
// CHECK-NEXT:        loop.free %k[t - 63]
// CHECK-NEXT:      }
// CHECK:           loop.compute at (t = t) ins(%a = %weight : {{.*}}, %b = %v[max(0, t - 63):t + 1]) outs(%y[t])
// CHECK:           loop.if t >= 63 {
// CHECK-NEXT:        loop.free %v[t - 63]
// CHECK-NEXT:      }
sdg.program @window dims(t: T) {
  %x = sdg.input "x" in (t) : !kv
  %k = sdg.exp %x[t] in (t) : (!kv) -> !kv
  %v = sdg.sin %x[t] in (t) : (!kv) -> !kv
  %score = sdg.contract "d,nd->n" %x[t], %k[max(0, t - 63):t + 1] in (t) : (!kv, !kv) -> !score
  %weight = sdg.softmax %score[t] axis 0 in (t) : (!score) -> !score
  %y = sdg.contract "n,nd->d" %weight[t], %v[max(0, t - 63):t + 1] in (t) : (!score, !kv) -> !kv
  sdg.output "y" %y[t] in (t) : !kv
}

// -----

// Readers of all earlier steps: rows are kept, and grow.

// CHECK-LABEL: loop.program @causal
// CHECK:         %k = loop.alloc : !loop.buffer<(t: growing) 4xf32>
// CHECK-NEXT:    loop.for t = 0 to T {
// CHECK-NOT:       loop.free
sdg.program @causal dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %k = sdg.exp %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %y = sdg.sum %k[0:t + 1] axes [0] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}

// -----

// A row that is read three steps later and overwritten in place: three slots.

// CHECK-LABEL: loop.program @lagged
// CHECK:         %s1 = loop.alloc : !loop.buffer<(t: ring 3) 4xf32>
// CHECK:             loop.compute at (t = t) ins(%a = %x[t], %b = %s1[t - 3]) outs(%s1[t]) {
// CHECK-NOT:         loop.free
sdg.program @lagged dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %s1 = sdg.add %x[t], %s[t - 3] in (t: 3 to T) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.merge {t < 3 : %x[t], t >= 3 : %s1[t]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = sdg.neg %s[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}

// -----

// What reads other elements than it writes must not overwrite what it reads: four.

// CHECK-LABEL: loop.program @lagged_contraction
// CHECK:         %s1 = loop.alloc : !loop.buffer<(t: ring 4) 4xf32>
// CHECK:             loop.compute at (t = t) ins(%a = %w, %b = %s1[t - 3]) outs(%s1[t]) {
// CHECK:             loop.free %s1[t - 3]
sdg.program @lagged_contraction dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %w = sdg.parameter "w" : tensor<4x4xf32>
  %s1 = sdg.contract "ij,j->i" %w, %s[t - 3] in (t: 3 to T) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.merge {t < 3 : %x[t], t >= 3 : %s1[t]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = sdg.neg %s[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<4xf32>
}
