// RUN: tempo-opt %s --split-input-file -p loop-persist --check-each | filecheck %s
// RUN: tempo-opt %s --split-input-file -p 'loop-persist,loop-lower-kernels{target=sm_90}' | filecheck %s --check-prefix=TILE

// Each row of h is made of the same row of the step before: programs have 16 rows each, and run all steps.

// CHECK-LABEL: @recurrent
// CHECK: loop.for t = 0 to T in programs of 16 rows {

// TILE-LABEL: loop.program @recurrent
// TILE-NOT: loop.for
// TILE: loop.launch @contract_add_tanh_over_t(%h, %w, %x)[T]
// TILE: tile.kernel @contract_add_tanh_over_t({{.*}}, %T: index) grid [3] {
// TILE: %[[P:[0-9a-z]+]] = tile.program_id 0
// TILE: tile.for %t = %{{.*}} to %T step 1 {
// TILE: %[[X:[0-9a-z]+]] = tile.load %{{.*}}[%[[ROW:[0-9a-z]+]], %{{.*}}] block [16, 8]
// TILE: %[[H:[0-9a-z]+]] = tile.load %{{.*}}[%[[ROW]], %{{.*}}] block [16, 8]
// TILE: %[[W:[0-9a-z]+]] = tile.load %{{.*}} block [8, 8]
// TILE: tile.dot %[[H]], %[[W]]
// TILE: tile.store %{{.*}}[%[[ROW]], %{{.*}}] block [16, 8]
loop.program @recurrent dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 40x8xf32>
  %w = loop.parameter "w" : !loop.buffer<8x8xf32>
  %out = loop.output "h" : !loop.buffer<40x8xf32>
  %h = loop.alloc : !loop.buffer<(t: full to T + 1) 40x8xf32>
  loop.compute outs(%h[0]) {
    %zero = sdg.constant 0.0 : tensor<40x8xf32>
    loop.yield %zero : tensor<40x8xf32>
  }
  loop.for t = 0 to T {
    loop.kernel at (t = t) ins(%a = %h[t], %b = %w, %c = %x[t]) outs(%h[t + 1]) {
      %0 = sdg.contract "bk,kn->bn" %a, %b : (tensor<40x8xf32>, tensor<8x8xf32>) -> tensor<40x8xf32>
      %1 = sdg.add %c, %0 : (tensor<40x8xf32>, tensor<40x8xf32>) -> tensor<40x8xf32>
      %2 = sdg.tanh %1 : (tensor<40x8xf32>) -> tensor<40x8xf32>
      loop.yield %2 : tensor<40x8xf32>
    }
  }
  loop.compute ins(%a = %h[T]) outs(%out) {
    loop.yield %a : tensor<40x8xf32>
  }
}

// -----

// A sum over all rows, little work: one program has everything. Guards are branches of it, the loop runs downwards.

// CHECK-LABEL: @summed
// CHECK: loop.for t = T - 1 down to 0 in one program {

// TILE-LABEL: loop.program @summed
// TILE: loop.launch @sum_add_over_t(%x, %s)[T, T - 1, 40 * T - 40]
// TILE: tile.kernel @sum_add_over_t({{.*}}) grid [] {
// TILE: tile.for %t_step = %{{.*}} to %T step 1 {
// TILE: %[[LAST:[0-9a-z]+]] = tile.eq
// TILE: tile.if %[[LAST]] {
// TILE: } else {
// TILE: tile.reduce sum
// TILE: tile.store
loop.program @summed dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 40xf32>
  %s = loop.output "s" : !loop.buffer<(t: full) f32>
  loop.for t = T - 1 down to 0 {
    loop.if t = T - 1 {
      loop.kernel at (t = t) ins(%a = %x[t]) outs(%s[t]) {
        %0 = sdg.sum %a axes [0] : (tensor<40xf32>) -> tensor<f32>
        loop.yield %0 : tensor<f32>
      }
    } else {
      loop.kernel at (t = t) ins(%a = %x[t], %b = %s[t + 1]) outs(%s[t]) {
        %0 = sdg.sum %a axes [0] : (tensor<40xf32>) -> tensor<f32>
        %1 = sdg.add %0, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
        loop.yield %1 : tensor<f32>
      }
    }
  }
}
