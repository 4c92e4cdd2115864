// RUN: tempo-opt %s --split-input-file -p loop-join-launches | filecheck %s

// The second reads what the first writes, the third writes what the second reads. %w_last may be the memory of %w.

// CHECK-LABEL: loop.program @dependent
// CHECK:         loop.launch @copy(%a, %b)
// CHECK-NEXT:    loop.launch @copy(%b, %c)
// CHECK-NEXT:    loop.free %c
// CHECK-NEXT:    loop.launch @copy(%a, %b)
// CHECK:         loop.launch @copy(%w, %b)
// CHECK-NEXT:    loop.launch @copy(%a, %w_last)
loop.program @dependent dims(t: T) {
  %a = loop.input "a" : !loop.buffer<64xf32>
  %w = loop.parameter "w" : !loop.buffer<64xf32>
  %b = loop.output "b" : !loop.buffer<64xf32>
  %w_last = loop.output "w" {donates} : !loop.buffer<64xf32>
  %c = loop.alloc : !loop.buffer<64xf32>
  loop.launch @copy(%a, %b)
  loop.launch @copy(%b, %c)
  loop.free %c
  loop.launch @copy(%a, %b)
  loop.for t = 0 to T {
    loop.launch @copy(%w, %b)
    loop.launch @copy(%a, %w_last)
  }
}
tile.kernel @copy(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) grid [] {
  %zero = tile.const 0 : index -> index
  %xs = tile.view %x [] : !tile.ptr<f32> -> !tile.view<64xf32, [1]>
  %ys = tile.view %y [] : !tile.ptr<f32> -> !tile.view<64xf32, [1]>
  %tile = tile.load %xs[%zero] block [64] : !tile.view<64xf32, [1]> -> !tile.tile<64xf32>
  tile.store %tile, %ys[%zero] block [64] : !tile.tile<64xf32>, !tile.view<64xf32, [1]>
}

// -----

// More than elementwise work, by as many programs as the data wants.

// CHECK-LABEL: loop.program @many
// CHECK:         loop.launch @sum(%a, %b)[T]
// CHECK-NEXT:    loop.launch @sum(%a, %c)[T]
loop.program @many dims(t: T) {
  %a = loop.input "a" : !loop.buffer<(t: full) 64xf32>
  %b = loop.output "b" : !loop.buffer<(t: full) f32>
  %c = loop.output "c" : !loop.buffer<(t: full) f32>
  loop.launch @sum(%a, %b)[T]
  loop.launch @sum(%a, %c)[T]
}
tile.kernel @sum(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) grid [?] {
  %program = tile.program_id 0
  %zero = tile.const 0 : index -> index
  %width = tile.const 64 : index -> index
  %offset = tile.mul %program, %width : (index, index) -> index
  %xs = tile.view %x offset %offset [] : !tile.ptr<f32> -> !tile.view<64xf32, [1]>
  %ys = tile.view %y offset %program [] : !tile.ptr<f32> -> !tile.view<f32, []>
  %tile = tile.load %xs[%zero] block [64] : !tile.view<64xf32, [1]> -> !tile.tile<64xf32>
  %total = tile.reduce sum %tile axis 0 : !tile.tile<64xf32> -> f32
  tile.store %total, %ys[] block [] : f32, !tile.view<f32, []>
}
