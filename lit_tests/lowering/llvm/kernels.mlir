// RUN: tempo-opt %s -t llvm --split-input-file | filecheck %s

// Masks are implied: one version for blocks inside the view's size, one with masks for the last block.

// CHECK-LABEL: define void @scale(ptr %x.in, i64 %n.in, i64 %low0, i64 %high0, ptr %scratch) #0 {
// CHECK:         [[PROGRAM:%i[0-9]+]] = phi i64 [ %low0,
// CHECK:         icmp slt i64 [[PROGRAM]], %high0
// CHECK:         [[START:%v[0-9]+]] = mul i64 [[PROGRAM]], 32
// CHECK-NEXT:    [[FIRST:%v[0-9]+]] = getelementptr inbounds float, ptr %x.in, i64 [[START]]
// CHECK-NEXT:    [[SECOND:%v[0-9]+]] = getelementptr inbounds float, ptr [[FIRST]], i64 16
// CHECK:         [[ROOM:%v[0-9]+]] = add i64 {{%v[0-9]+}}, -32
// CHECK-NEXT:    [[FULL:%v[0-9]+]] = icmp sge i64 [[ROOM]], 0
// CHECK-NEXT:    br i1 [[FULL]]
// CHECK:         [[A:%v[0-9]+]] = load <16 x float>, ptr [[FIRST]], align 4
// CHECK-NEXT:    [[B:%v[0-9]+]] = load <16 x float>, ptr [[SECOND]], align 4
// CHECK-NEXT:    [[C:%v[0-9]+]] = fmul nsz contract <16 x float> [[A]], splat (float 0x4000000000000000)
// CHECK-NEXT:    [[D:%v[0-9]+]] = fmul nsz contract <16 x float> [[B]], splat (float 0x4000000000000000)
// CHECK-NEXT:    store <16 x float> [[C]], ptr [[FIRST]], align 4
// CHECK-NEXT:    store <16 x float> [[D]], ptr [[SECOND]], align 4
// CHECK:         call <16 x float> @llvm.masked.load.v16f32.p0
// CHECK:         call void @llvm.masked.store.v16f32.p0
// CHECK:         ret void
tile.kernel @scale(%x: !tile.ptr<f32>, %n: index) grid [?] {
  %p = tile.program_id 0
  %block = tile.const 32 : index -> index
  %start = tile.mul %p, %block : (index, index) -> index
  %v = tile.view %x[%n] : !tile.ptr<f32> -> !tile.view<?xf32, [1]>
  %a = tile.load %v[%start] block [32] : !tile.view<?xf32, [1]> -> !tile.tile<32xf32>
  %two = tile.const 2.0 : f32 -> f32
  %y = tile.mul %a, %two : (!tile.tile<32xf32>, f32) -> !tile.tile<32xf32>
  tile.store %y, %v[%start] block [32] : !tile.tile<32xf32>, !tile.view<?xf32, [1]>
}

// -----

// A matrix-vector product of torch's weight layout: both operands as vectors along K, one row of the weights after the
// other since they are large, in a loop over eight, then their sums across lanes all at once.

// CHECK-LABEL: define void @gemv(ptr %x.in, ptr %w.in, ptr %y.in, ptr %scratch)
// CHECK-NOT:     @llvm.masked
// CHECK:         alloca <16 x float>, align 64
// CHECK:         icmp slt i64 [[N:%i[0-9]+]], 256
// CHECK:         icmp slt i64 [[ROW:%i[0-9]+]], 8
// CHECK:         icmp slt i64 [[K:%i[0-9]+]], 256
// CHECK:         load <16 x float>, ptr
// CHECK:         fmul nsz contract <16 x float>
// CHECK:         fadd nsz contract <16 x float>
// CHECK:         add nsw i64 [[K]], 64
// CHECK:         store <16 x float>
// CHECK:         add nsw i64 [[ROW]], 1
// CHECK-NOT:     icmp
// CHECK:         shufflevector <16 x float>
// CHECK:         fadd reassoc nsz contract <8 x float>
// CHECK:         store float {{%v[0-9]+}}, ptr
// CHECK:         add nsw i64 [[N]], 8
tile.kernel @gemv(%x: !tile.ptr<f32>, %w: !tile.ptr<f32>, %y: !tile.ptr<f32>) grid [] {
  %zero = tile.const 0 : index -> index
  %xs = tile.view %x[] : !tile.ptr<f32> -> !tile.view<1x256xf32, [256, 1]>
  %ws = tile.view %w[] : !tile.ptr<f32> -> !tile.view<256x256xf32, [256, 1]>
  %ys = tile.view %y[] : !tile.ptr<f32> -> !tile.view<1x256xf32, [256, 1]>
  %a = tile.load %xs[%zero, %zero] block [1, 256] : !tile.view<1x256xf32, [256, 1]> -> !tile.tile<1x256xf32>
  %b = tile.load %ws[%zero, %zero] block [256, 256] : !tile.view<256x256xf32, [256, 1]> -> !tile.tile<256x256xf32>
  %t = tile.trans %b : !tile.tile<256x256xf32> -> !tile.tile<256x256xf32>
  %start = tile.const 0.0 : f32 -> !tile.tile<1x256xf32>
  %c = tile.dot %a, %t, %start : !tile.tile<1x256xf32>, !tile.tile<256x256xf32>, !tile.tile<1x256xf32> -> !tile.tile<1x256xf32>
  tile.store %c, %ys[%zero, %zero] block [1, 256] : !tile.tile<1x256xf32>, !tile.view<1x256xf32, [256, 1]>
}

// -----

// A loop of one trip is its body; bf16 is widened by a shift; a tile of 3 is one masked vector.

// CHECK-LABEL: define void @once(ptr %x.in, ptr %scratch)
// CHECK-NOT:     phi
// CHECK:         call <16 x i16> @llvm.masked.load.v16i16.p0(ptr align 2 %x.in, <16 x i1> <i1 true, i1 true, i1 true, i1 false
// CHECK:         zext <16 x i16>
// CHECK:         shl <16 x i32>
// CHECK:         bitcast <16 x i32> {{%v[0-9]+}} to <16 x float>
// CHECK:         trunc <16 x i32>
// CHECK:         call void @llvm.masked.store.v16i16.p0
tile.kernel @once(%x: !tile.ptr<bf16>) grid [] {
  %low = tile.const 0 : index -> index
  %high = tile.const 3 : index -> index
  %v = tile.view %x[] : !tile.ptr<bf16> -> !tile.view<3xbf16, [1]>
  tile.for %i = %low to %high step 3 {
    %a = tile.load %v[%i] block [3] : !tile.view<3xbf16, [1]> -> !tile.tile<3xbf16>
    %y = tile.add %a, %a : (!tile.tile<3xbf16>, !tile.tile<3xbf16>) -> !tile.tile<3xbf16>
    tile.store %y, %v[%i] block [3] : !tile.tile<3xbf16>, !tile.view<3xbf16, [1]>
  }
}

// -----

// A loop of unknown length: a main loop of whole steps without masks, then one more trip for the rest.

// CHECK-LABEL: define void @sum(
// CHECK:         [[REST:%v[0-9]+]] = srem i64 %n.in, 64
// CHECK:         [[END:%v[0-9]+]] = sub i64 %n.in, [[REST]]
// CHECK:         icmp slt i64 {{%i[0-9]+}}, [[END]]
// CHECK:         load <16 x float>
// CHECK:         icmp slt i64 [[END]], %n.in
// CHECK:         call <16 x float> @llvm.masked.load
// CHECK:         call reassoc nsz contract float @llvm.vector.reduce.fadd.v16f32
tile.kernel @sum(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: index) grid [] {
  %zero = tile.const 0 : index -> index
  %v = tile.view %x[%n] : !tile.ptr<f32> -> !tile.view<?xf32, [1]>
  %out = tile.view %y[] : !tile.ptr<f32> -> !tile.view<f32, []>
  %start = tile.const 0.0 : f32 -> !tile.tile<64xf32>
  %r = tile.for %i = %zero to %n step 64 init(%t = %start) : !tile.tile<64xf32> {
    %a = tile.load %v[%i] block [64] : !tile.view<?xf32, [1]> -> !tile.tile<64xf32>
    %u = tile.add %t, %a : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xf32>
    tile.yield %u : !tile.tile<64xf32>
  }
  %s = tile.reduce sum %r axis 0 : !tile.tile<64xf32> -> f32
  tile.store %s, %out[] block [] : f32, !tile.view<f32, []>
}

// -----

// Two stores of what has something in common: one loop, in which both memories are read before they are written.

// CHECK-LABEL: define void @moment(ptr %m.in, ptr %w.in, ptr %scratch)
// CHECK-NOT:     alloca
// CHECK:         phi
// CHECK:         [[MOMENT:%v[0-9]+]] = fmul nsz contract <16 x float>
// CHECK:         [[NEXT:%v[0-9]+]] = fsub nsz contract <16 x float> {{%v[0-9]+}}, [[MOMENT]]
// CHECK:         store <16 x float> [[MOMENT]], ptr
// CHECK:         store <16 x float> [[NEXT]], ptr
// CHECK-NOT:     phi
// CHECK:         ret void
tile.kernel @moment(%m: !tile.ptr<f32>, %w: !tile.ptr<f32>) grid [] {
  %zero = tile.const 0 : index -> index
  %ms = tile.view %m[] : !tile.ptr<f32> -> !tile.view<256xf32, [1]>
  %ws = tile.view %w[] : !tile.ptr<f32> -> !tile.view<256xf32, [1]>
  %a = tile.load %ms[%zero] block [256] : !tile.view<256xf32, [1]> -> !tile.tile<256xf32>
  %b = tile.load %ws[%zero] block [256] : !tile.view<256xf32, [1]> -> !tile.tile<256xf32>
  %half = tile.const 0.5 : f32 -> f32
  %c = tile.mul %a, %half : (!tile.tile<256xf32>, f32) -> !tile.tile<256xf32>
  %d = tile.sub %b, %c : (!tile.tile<256xf32>, !tile.tile<256xf32>) -> !tile.tile<256xf32>
  tile.store %c, %ms[%zero] block [256] : !tile.tile<256xf32>, !tile.view<256xf32, [1]>
  tile.store %d, %ws[%zero] block [256] : !tile.tile<256xf32>, !tile.view<256xf32, [1]>
}
