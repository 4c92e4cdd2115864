// Launches that stay apart.
// RUN: tempo-opt %s -p loop-join-siblings{target=sm_90} --split-input-file | filecheck %s
// RUN: tempo-opt %s -p loop-join-siblings{target=cpu} --split-input-file | filecheck %s
// RUN: not tempo-opt %s -p loop-join-siblings{target=sm_10} --split-input-file 2>&1 | filecheck %s --check-prefix=TARGET

// TARGET: unknown target 'sm_10'; use one of cpu, gfx942, sm_80, sm_90, triton-interpret

// The second reads what the first writes; the third would overwrite what the second reads; the fourth would have to pass a
// loop that reads what it writes; a grid that a call knows is no number of programs.

// CHECK-LABEL: loop.program @apart
// CHECK:         loop.launch @copy(%x, %a)
// CHECK-NEXT:    loop.launch @copy(%a, %b)
// CHECK-NEXT:    loop.launch @copy(%x, %a)
// CHECK-NEXT:    loop.for t = 0 to T {
// CHECK-NEXT:      loop.launch @copy(%c, %a)
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.launch @copy(%x, %c)
// CHECK-NEXT:    loop.launch @open(%x, %d)[T]
loop.program @apart dims(t: T) {
  %x = loop.input "x" : !loop.buffer<8xf32>
  %y = loop.output "y" : !loop.buffer<8xf32>
  %a = loop.alloc : !loop.buffer<8xf32>
  %b = loop.alloc : !loop.buffer<8xf32>
  %c = loop.alloc : !loop.buffer<8xf32>
  %d = loop.alloc : !loop.buffer<8xf32>
  loop.launch @copy(%x, %a)
  loop.launch @copy(%a, %b)
  loop.launch @copy(%x, %a)
  loop.for t = 0 to T {
    loop.launch @copy(%c, %a)
  }
  loop.launch @copy(%x, %c)
  loop.launch @open(%x, %d)[T]
}
tile.kernel @copy(%x: !tile.ptr<f32>, %a: !tile.ptr<f32>) grid [] {
  %z = tile.const 0 : index -> index
  %v = tile.view %x[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %l = tile.load %v[%z] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
  %w = tile.view %a[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  tile.store %l, %w[%z] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
}
tile.kernel @open(%x: !tile.ptr<f32>, %a: !tile.ptr<f32>) grid [?] {
  %p = tile.program_id 0
  %v = tile.view %x[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %l = tile.load %v[%p] block [1] : !tile.view<8xf32, [1]> -> !tile.tile<1xf32>
  %w = tile.view %a[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  tile.store %l, %w[%p] block [1] : !tile.tile<1xf32>, !tile.view<8xf32, [1]>
}

// -----

// More programs than fill the GPU twice over.

// CHECK-LABEL: loop.program @many
// CHECK:         loop.launch @large(%x, %y)
// CHECK-NEXT:    loop.launch @large(%x, %z)
loop.program @many dims() {
  %x = loop.input "x" : !loop.buffer<200xf32>
  %y = loop.output "y" : !loop.buffer<200xf32>
  %z = loop.output "z" : !loop.buffer<200xf32>
  loop.launch @large(%x, %y)
  loop.launch @large(%x, %z)
}
tile.kernel @large(%x: !tile.ptr<f32>, %a: !tile.ptr<f32>) grid [200] {
  %p = tile.program_id 0
  %v = tile.view %x[] : !tile.ptr<f32> -> !tile.view<200xf32, [1]>
  %l = tile.load %v[%p] block [1] : !tile.view<200xf32, [1]> -> !tile.tile<1xf32>
  %w = tile.view %a[] : !tile.ptr<f32> -> !tile.view<200xf32, [1]>
  tile.store %l, %w[%p] block [1] : !tile.tile<1xf32>, !tile.view<200xf32, [1]>
}
