// RUN: tempo-opt %s --split-input-file -p 'tile-forward-stores{limit=256}' | filecheck %s

// A store in between that may touch what is loaded: its offset is another argument. A gather reads who knows what.

// CHECK-LABEL: tile.kernel @between(
// CHECK:         tile.store
// CHECK-NEXT:    tile.store
// CHECK-NEXT:    %b = tile.load
// CHECK:         %c = tile.gather
tile.kernel @between(%x: !tile.ptr<f32>, %ids: !tile.ptr<i32>, %out: !tile.ptr<f32>, %n: index, %m: index) grid [] {
  %zero = tile.const 0 : index -> index
  %here = tile.view %x offset %n [] : !tile.ptr<f32> -> !tile.view<64xf32, [1]>
  %there = tile.view %x offset %m [] : !tile.ptr<f32> -> !tile.view<64xf32, [1]>
  %a = tile.const 1.0 : f32 -> !tile.tile<64xf32>
  tile.store %a, %here[%zero] block [64] : !tile.tile<64xf32>, !tile.view<64xf32, [1]>
  tile.store %a, %there[%zero] block [64] : !tile.tile<64xf32>, !tile.view<64xf32, [1]>
  %b = tile.load %here[%zero] block [64] : !tile.view<64xf32, [1]> -> !tile.tile<64xf32>
  %id_view = tile.view %ids [] : !tile.ptr<i32> -> !tile.view<64xi32, [1]>
  %places = tile.load %id_view[%zero] block [64] : !tile.view<64xi32, [1]> -> !tile.tile<64xi32>
  %c = tile.gather %there[%zero] at %places axis 0 block [64] : !tile.view<64xf32, [1]>, !tile.tile<64xi32> -> !tile.tile<64xf32>
  %d = tile.add %b, %c : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xf32>
  %outs = tile.view %out [] : !tile.ptr<f32> -> !tile.view<64xf32, [1]>
  tile.store %d, %outs[%zero] block [64] : !tile.tile<64xf32>, !tile.view<64xf32, [1]>
}

// -----

// Another block, and another order of the same elements.

// CHECK-LABEL: tile.kernel @others(
// CHECK:         %b = tile.load
// CHECK:         %c = tile.load
tile.kernel @others(%x: !tile.ptr<f32>, %out: !tile.ptr<f32>) grid [] {
  %zero = tile.const 0 : index -> index
  %rows = tile.view %x [] : !tile.ptr<f32> -> !tile.view<8x8xf32, [8, 1]>
  %columns = tile.view %x [] : !tile.ptr<f32> -> !tile.view<8x8xf32, [1, 8]>
  %flat = tile.view %x [] : !tile.ptr<f32> -> !tile.view<64xf32, [1]>
  %outs = tile.view %out [] : !tile.ptr<f32> -> !tile.view<8x8xf32, [8, 1]>
  %flats = tile.view %out [] : !tile.ptr<f32> -> !tile.view<64xf32, [1]>
  %a = tile.const 1.0 : f32 -> !tile.tile<8x8xf32>
  tile.store %a, %rows[%zero, %zero] block [8, 8] : !tile.tile<8x8xf32>, !tile.view<8x8xf32, [8, 1]>
  %b = tile.load %columns[%zero, %zero] block [8, 8] : !tile.view<8x8xf32, [1, 8]> -> !tile.tile<8x8xf32>
  %c = tile.load %flat[%zero] block [64] : !tile.view<64xf32, [1]> -> !tile.tile<64xf32>
  tile.store %b, %outs[%zero, %zero] block [8, 8] : !tile.tile<8x8xf32>, !tile.view<8x8xf32, [8, 1]>
  tile.store %c, %flats[%zero] block [64] : !tile.tile<64xf32>, !tile.view<64xf32, [1]>
}

// -----

// A state that is loaded in a branch which the first iteration may take or not; weights of more elements than the limit.

// CHECK-LABEL: tile.kernel @guarded(
// CHECK:         tile.for
// CHECK-NOT:     init
// CHECK:           tile.if
// CHECK-NEXT:        %s = tile.load
// CHECK-NEXT:        %w_1 = tile.load
tile.kernel @guarded(%h: !tile.ptr<f32>, %w: !tile.ptr<f32>, %T: index, %n: index) grid [] {
  %zero = tile.const 0 : index -> index
  %state = tile.view %h [] : !tile.ptr<f32> -> !tile.view<16xf32, [1]>
  %weights = tile.view %w [] : !tile.ptr<f32> -> !tile.view<32x16xf32, [16, 1]>
  tile.for %t = %zero to %T step 1 {
    %some = tile.ge %t, %n : (index, index) -> i1
    tile.if %some {
      %s = tile.load %state[%zero] block [16] : !tile.view<16xf32, [1]> -> !tile.tile<16xf32>
      %w_1 = tile.load %weights[%zero, %zero] block [32, 16] : !tile.view<32x16xf32, [16, 1]> -> !tile.tile<32x16xf32>
      %sums = tile.reduce sum %w_1 axis 0 : !tile.tile<32x16xf32> -> !tile.tile<16xf32>
      %next = tile.add %s, %sums : (!tile.tile<16xf32>, !tile.tile<16xf32>) -> !tile.tile<16xf32>
      tile.store %next, %state[%zero] block [16] : !tile.tile<16xf32>, !tile.view<16xf32, [1]>
    }
  }
}

// -----

// A loop whose results are used stands in no branch: what it loads may not be there where it does not run.

// CHECK-LABEL: tile.kernel @results(
// CHECK:         %last = tile.for %t = %zero to %T step 1 init(%sum = %none) : !tile.tile<16xf32> {
// CHECK-NEXT:      %a = tile.load
tile.kernel @results(%x: !tile.ptr<f32>, %out: !tile.ptr<f32>, %T: index) grid [] {
  %zero = tile.const 0 : index -> index
  %none = tile.const 0.0 : f32 -> !tile.tile<16xf32>
  %view = tile.view %x [] : !tile.ptr<f32> -> !tile.view<16xf32, [1]>
  %last = tile.for %t = %zero to %T step 1 init(%sum = %none) : !tile.tile<16xf32> {
    %a = tile.load %view[%zero] block [16] : !tile.view<16xf32, [1]> -> !tile.tile<16xf32>
    %next = tile.add %sum, %a : (!tile.tile<16xf32>, !tile.tile<16xf32>) -> !tile.tile<16xf32>
    tile.yield %next : !tile.tile<16xf32>
  }
  %outs = tile.view %out [] : !tile.ptr<f32> -> !tile.view<16xf32, [1]>
  tile.store %last, %outs[%zero] block [16] : !tile.tile<16xf32>, !tile.view<16xf32, [1]>
}

// -----

// A buffer that a later launch reads, be it in the next iteration.

// CHECK-LABEL: loop.program @rows
// CHECK:         %state = loop.alloc
// CHECK:           loop.launch @write(%state)
tile.kernel @read(%state: !tile.ptr<f32>, %y: !tile.ptr<f32>, %t: index) grid [] {
  %zero = tile.const 0 : index -> index
  %states = tile.view %state [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %ys = tile.view %y offset %t [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %a = tile.load %states[%zero] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
  tile.store %a, %ys[%zero] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
}
tile.kernel @write(%state: !tile.ptr<f32>) grid [] {
  %zero = tile.const 0 : index -> index
  %states = tile.view %state [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %one = tile.const 1.0 : f32 -> !tile.tile<8xf32>
  tile.store %one, %states[%zero] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
}
loop.program @rows dims(t: T) {
  %y = loop.output "y" : !loop.buffer<(t: full) 8xf32>
  %state = loop.alloc : !loop.buffer<8xf32>
  loop.launch @write(%state)
  loop.for t = 0 to T {
    loop.launch @read(%state, %y)[8 * t]
    loop.launch @write(%state)
  }
}
