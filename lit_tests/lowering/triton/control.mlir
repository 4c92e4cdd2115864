// RUN: tempo-opt %s -t triton | filecheck %s

// Carried values are exchanged at once; what a loop gives goes by the name that it carries it by.

// CHECK:       # ---- fibonacci.py
// CHECK-NEXT:  import triton
// CHECK-NEXT:  import triton.language as tl
// CHECK:       num_warps = 4
// CHECK-NEXT:  num_stages = 1
// CHECK:       # control.mlir:{{.*}}
// CHECK-NEXT:  # grid: one program
// CHECK-NEXT:  @triton.jit(do_not_specialize=["n"])
// CHECK-NEXT:  def fibonacci(out_ptr, n: "i64"):
// CHECK-NEXT:      a = tl.full((), 0, tl.int32)
// CHECK-NEXT:      b = tl.full((), 1, tl.int32)
// CHECK-NEXT:      place = tl.cast(7, tl.int64)
// CHECK-NEXT:      for t in range(n):
// CHECK-NEXT:          sum_of = a + b
// CHECK-NEXT:          even = t % 2
// CHECK-NEXT:          if even == 0:
// CHECK-NEXT:              tl.store(out_ptr + t, sum_of)
// CHECK-NEXT:          else:
// CHECK-NEXT:              tl.store(out_ptr + t, a)
// CHECK-NEXT:          a, b, place = b, sum_of, t
// CHECK-NEXT:      tl.debug_barrier()
// CHECK-NEXT:      tl.store(out_ptr + place, b)
tile.kernel @fibonacci(%out: !tile.ptr<i32>, %n: index) grid [] {
  %z = tile.const 0 : index -> index
  %c2 = tile.const 2 : index -> index
  %c7 = tile.const 7 : index -> index
  %zero = tile.const 0 : i32 -> i32
  %one = tile.const 1 : i32 -> i32
  %v = tile.view %out [%n] : !tile.ptr<i32> -> !tile.view<?xi32, [1]>
  %p, %q, %last = tile.for %t = %z to %n step 1 init(%a = %zero, %b = %one, %place = %c7) : i32, i32, index {
    %0 = tile.add %a, %b : (i32, i32) -> i32
    %even = tile.mod %t, %c2 : (index, index) -> index
    %first = tile.eq %even, %z : (index, index) -> i1
    tile.if %first {
      tile.store %0, %v[%t] block [0] : i32, !tile.view<?xi32, [1]>
    } else {
      tile.store %a, %v[%t] block [0] : i32, !tile.view<?xi32, [1]>
    }
    tile.yield %b, %0, %t : i32, i32, index
  }
  tile.store %q, %v[%last] block [0] : i32, !tile.view<?xi32, [1]>
}
