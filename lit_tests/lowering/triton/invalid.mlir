// RUN: not tempo-opt %s -t triton 2>&1 | filecheck %s

// What Triton cannot say is refused, with the kernel's name.

// CHECK: error: kernel @thirds: Triton needs tile extents that are powers of two, not 12; lower it for a GPU, as by loop-lower-kernels{target=sm_80}
tile.kernel @thirds(%x: !tile.ptr<f32>) grid [] {
  %z = tile.const 0 : index -> index
  %v = tile.view %x [] : !tile.ptr<f32> -> !tile.view<12xf32, [1]>
  %0 = tile.load %v[%z] block [12] : !tile.view<12xf32, [1]> -> !tile.tile<12xf32>
}
