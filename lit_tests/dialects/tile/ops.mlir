// RUN: tempo-opt %s | tempo-opt | filecheck %s
// RUN: tempo-opt %s --print-op-generic | tempo-opt | filecheck %s

// CHECK-LABEL: tile.kernel @attention(%q: !tile.ptr<f32>, %k: !tile.ptr<f32>, %o: !tile.ptr<f32>, %length: index) grid [4, ?] {
// CHECK-NEXT:    %head = tile.program_id 0
// CHECK-NEXT:    %zero = tile.const 0 : index -> index
// CHECK-NEXT:    %queries = tile.view %q[] : !tile.ptr<f32> -> !tile.view<4x2x64xf32, [128, 64, 1]>
// CHECK-NEXT:    %keys = tile.view %k offset %zero[%length] : !tile.ptr<f32> -> !tile.view<4x64x?xf32, [262144, 4096, 1]>
// CHECK-NEXT:    %out = tile.view %o[] : !tile.ptr<f32> -> !tile.view<4x2xf32, [2, 1]>
// CHECK-NEXT:    %query = tile.load %queries[%head, %zero, %zero] block [0, 2, 64] : !tile.view<4x2x64xf32, [128, 64, 1]> -> !tile.tile<2x64xf32>
// CHECK-NEXT:    %low = tile.const -1.000000e+30 : f32 -> !tile.tile<2xf32>
// CHECK-NEXT:    %top = tile.for %t = %zero to %length step 64 init(%top0 = %low) : !tile.tile<2xf32> {
// CHECK-NEXT:      %key = tile.load %keys[%head, %zero, %t] block [0, 64, 64] other -1.000000e+00 : f32 : !tile.view<4x64x?xf32, [262144, 4096, 1]> -> !tile.tile<64x64xf32>
// CHECK-NEXT:      %start = tile.const 0.000000e+00 : f32 -> !tile.tile<2x64xf32>
// CHECK-NEXT:      %score = tile.dot %query, %key, %start : !tile.tile<2x64xf32>, !tile.tile<64x64xf32>, !tile.tile<2x64xf32> -> !tile.tile<2x64xf32>
// CHECK-NEXT:      %inside = tile.in_range %t below %length : !tile.tile<64xi1>
// CHECK-NEXT:      %mask = tile.expand %inside axis 0 : !tile.tile<64xi1> -> !tile.tile<1x64xi1>
// CHECK-NEXT:      %far = tile.const -1.000000e+30 : f32 -> f32
// CHECK-NEXT:      %masked = tile.select %mask, %score, %far : (!tile.tile<1x64xi1>, !tile.tile<2x64xf32>, f32) -> !tile.tile<2x64xf32>
// CHECK-NEXT:      %best = tile.reduce max %masked axis 1 : !tile.tile<2x64xf32> -> !tile.tile<2xf32>
// CHECK-NEXT:      %top1 = tile.max %top0, %best : (!tile.tile<2xf32>, !tile.tile<2xf32>) -> !tile.tile<2xf32>
// CHECK-NEXT:      tile.yield %top1 : !tile.tile<2xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    %first = tile.eq %head, %zero : (index, index) -> i1
// CHECK-NEXT:    tile.if %first {
// CHECK-NEXT:      tile.store %top, %out[%head, %zero] block [0, 2] : !tile.tile<2xf32>, !tile.view<4x2xf32, [2, 1]>
// CHECK-NEXT:    } else {
// CHECK-NEXT:      tile.for %i = %zero to %length step 1 {
// CHECK-NEXT:        tile.atomic_add %top, %out[%head, %zero] block [0, 2] : !tile.tile<2xf32>, !tile.view<4x2xf32, [2, 1]>
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:  }
tile.kernel @attention(%q: !tile.ptr<f32>, %k: !tile.ptr<f32>, %o: !tile.ptr<f32>, %length: index) grid [4, ?] {
  %head = tile.program_id 0
  %zero = tile.const 0 : index -> index
  %queries = tile.view %q[] : !tile.ptr<f32> -> !tile.view<4x2x64xf32, [128, 64, 1]>
  %keys = tile.view %k offset %zero[%length] : !tile.ptr<f32> -> !tile.view<4x64x?xf32, [262144, 4096, 1]>
  %out = tile.view %o[] : !tile.ptr<f32> -> !tile.view<4x2xf32, [2, 1]>
  %query = tile.load %queries[%head, %zero, %zero] block [0, 2, 64] : !tile.view<4x2x64xf32, [128, 64, 1]> -> !tile.tile<2x64xf32>
  %low = tile.const -1.0e+30 : f32 -> !tile.tile<2xf32>
  %top = tile.for %t = %zero to %length step 64 init(%top0 = %low) : !tile.tile<2xf32> {
    %key = tile.load %keys[%head, %zero, %t] block [0, 64, 64] other -1.0 : f32 : !tile.view<4x64x?xf32, [262144, 4096, 1]> -> !tile.tile<64x64xf32>
    %start = tile.const 0.0 : f32 -> !tile.tile<2x64xf32>
    %score = tile.dot %query, %key, %start : !tile.tile<2x64xf32>, !tile.tile<64x64xf32>, !tile.tile<2x64xf32> -> !tile.tile<2x64xf32>
    %inside = tile.in_range %t below %length : !tile.tile<64xi1>
    %mask = tile.expand %inside axis 0 : !tile.tile<64xi1> -> !tile.tile<1x64xi1>
    %far = tile.const -1.0e+30 : f32 -> f32
    %masked = tile.select %mask, %score, %far : (!tile.tile<1x64xi1>, !tile.tile<2x64xf32>, f32) -> !tile.tile<2x64xf32>
    %best = tile.reduce max %masked axis 1 : !tile.tile<2x64xf32> -> !tile.tile<2xf32>
    %top1 = tile.max %top0, %best : (!tile.tile<2xf32>, !tile.tile<2xf32>) -> !tile.tile<2xf32>
    tile.yield %top1 : !tile.tile<2xf32>
  }
  %first = tile.eq %head, %zero : (index, index) -> i1
  tile.if %first {
    tile.store %top, %out[%head, %zero] block [0, 2] : !tile.tile<2xf32>, !tile.view<4x2xf32, [2, 1]>
  } else {
    tile.for %i = %zero to %length step 1 {
      tile.atomic_add %top, %out[%head, %zero] block [0, 2] : !tile.tile<2xf32>, !tile.view<4x2xf32, [2, 1]>
    }
  }
}

// CHECK-LABEL: tile.kernel @rows(%table: !tile.ptr<bf16>, %ids: !tile.ptr<i64>, %n: index, %seed: i32) grid [] {
// CHECK-NEXT:    %zero = tile.const 0 : index -> index
// CHECK-NEXT:    %rows = tile.view %table[] : !tile.ptr<bf16> -> !tile.view<1000x256xbf16, [256, 1]>
// CHECK-NEXT:    %list = tile.view %ids[%n, %n] : !tile.ptr<i64> -> !tile.view<?xi64, [?]>
// CHECK-NEXT:    %at = tile.load %list[%zero] block [8] : !tile.view<?xi64, [?]> -> !tile.tile<8xi64>
// CHECK-NEXT:    %x = tile.gather %rows[%zero, %zero] at %at axis 0 block [8, 256] : !tile.view<1000x256xbf16, [256, 1]>, !tile.tile<8xi64> -> !tile.tile<8x256xbf16>
// CHECK-NEXT:    %y = tile.cast %x : (!tile.tile<8x256xbf16>) -> !tile.tile<8x256xf32>
// CHECK-NEXT:    %e = tile.exp %y : (!tile.tile<8x256xf32>) -> !tile.tile<8x256xf32>
// CHECK-NEXT:    %s = tile.scan sum %e axis 1 reverse : !tile.tile<8x256xf32> -> !tile.tile<8x256xf32>
// CHECK-NEXT:    %best = tile.reduce argmax %s axis 1 : !tile.tile<8x256xf32> -> !tile.tile<8xi64>
// CHECK-NEXT:    %turned = tile.trans %x : !tile.tile<8x256xbf16> -> !tile.tile<256x8xbf16>
// CHECK-NEXT:    tile.scatter %x, %rows[%zero, %zero] at %best axis 0 block [8, 256] : !tile.tile<8x256xbf16>, !tile.view<1000x256xbf16, [256, 1]>, !tile.tile<8xi64>
// CHECK-NEXT:    tile.scatter_add %x, %rows[%zero, %zero] at %best axis 0 block [8, 256] : !tile.tile<8x256xbf16>, !tile.view<1000x256xbf16, [256, 1]>, !tile.tile<8xi64>
// CHECK-NEXT:    %i = tile.iota %n : !tile.tile<8xui32>
// CHECK-NEXT:    %many = tile.splat %seed : i32 -> !tile.tile<8xi32>
// CHECK-NEXT:    %w0, %w1, %w2, %w3 = tile.philox key(%seed, %seed) counter(%i, %seed, %many, %i) : (i32, i32, !tile.tile<8xui32>, i32, !tile.tile<8xi32>, !tile.tile<8xui32>) -> (!tile.tile<8xui32>, !tile.tile<8xui32>, !tile.tile<8xui32>, !tile.tile<8xui32>)
// CHECK-NEXT:    %column = tile.expand %w0 axis 1 : !tile.tile<8xui32> -> !tile.tile<8x1xui32>
// CHECK-NEXT:    %wide = tile.broadcast %column : !tile.tile<8x1xui32> -> !tile.tile<8x5xui32>
// CHECK-NEXT:  }
tile.kernel @rows(%table: !tile.ptr<bf16>, %ids: !tile.ptr<i64>, %n: index, %seed: i32) grid [] {
  %zero = tile.const 0 : index -> index
  %rows = tile.view %table[] : !tile.ptr<bf16> -> !tile.view<1000x256xbf16, [256, 1]>
  %list = tile.view %ids[%n, %n] : !tile.ptr<i64> -> !tile.view<?xi64, [?]>
  %at = tile.load %list[%zero] block [8] : !tile.view<?xi64, [?]> -> !tile.tile<8xi64>
  %x = tile.gather %rows[%zero, %zero] at %at axis 0 block [8, 256] : !tile.view<1000x256xbf16, [256, 1]>, !tile.tile<8xi64> -> !tile.tile<8x256xbf16>
  %y = tile.cast %x : (!tile.tile<8x256xbf16>) -> !tile.tile<8x256xf32>
  %e = tile.exp %y : (!tile.tile<8x256xf32>) -> !tile.tile<8x256xf32>
  %s = tile.scan sum %e axis 1 reverse : !tile.tile<8x256xf32> -> !tile.tile<8x256xf32>
  %best = tile.reduce argmax %s axis 1 : !tile.tile<8x256xf32> -> !tile.tile<8xi64>
  %turned = tile.trans %x : !tile.tile<8x256xbf16> -> !tile.tile<256x8xbf16>
  tile.scatter %x, %rows[%zero, %zero] at %best axis 0 block [8, 256] : !tile.tile<8x256xbf16>, !tile.view<1000x256xbf16, [256, 1]>, !tile.tile<8xi64>
  tile.scatter_add %x, %rows[%zero, %zero] at %best axis 0 block [8, 256] : !tile.tile<8x256xbf16>, !tile.view<1000x256xbf16, [256, 1]>, !tile.tile<8xi64>
  %i = tile.iota %n : !tile.tile<8xui32>
  %many = tile.splat %seed : i32 -> !tile.tile<8xi32>
  %w0, %w1, %w2, %w3 = tile.philox key(%seed, %seed) counter(%i, %seed, %many, %i) : (i32, i32, !tile.tile<8xui32>, i32, !tile.tile<8xi32>, !tile.tile<8xui32>) -> (!tile.tile<8xui32>, !tile.tile<8xui32>, !tile.tile<8xui32>, !tile.tile<8xui32>)
  %column = tile.expand %w0 axis 1 : !tile.tile<8xui32> -> !tile.tile<8x1xui32>
  %wide = tile.broadcast %column : !tile.tile<8x1xui32> -> !tile.tile<8x5xui32>
}
