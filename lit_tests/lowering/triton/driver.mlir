// RUN: tempo-opt %s -t triton | filecheck %s

// The loop program is printed as a Python driver after its kernels: buffers lie in one piece of memory, where those that are
// not needed at once share their bytes; a launch has its grid, the pointers, and the scalars that the host computes.

// All scalars of this kernel are multiples of 16, so that Triton may know it.

// CHECK:       # sdg.mul, sdg.add
// CHECK-NEXT:  # driver.mlir:{{[0-9]+}}-{{[0-9]+}}
// CHECK-NEXT:  # grid (?), num_warps 4
// CHECK-NEXT:  @triton.jit
// CHECK-NEXT:  def mul_add(x_ptr, ring_ptr, n0: "i64", n1: "i64", n2: "i64", n3: "i64"):
// CHECK:           p = x * ring
// CHECK-NEXT:      s = p + x
// CHECK-NEXT:      tl.debug_barrier()
// CHECK-NEXT:      tl.store(ring_ptr + (n3 + start) + range_1024, s, mask=inside)
// CHECK:       # ---- driver.py
// CHECK-NEXT:  """The program @walk: its loops, over Triton kernels."""
// CHECK:       import torch
// CHECK:       from .kernels.copy_kernel import copy_kernel
// CHECK:       from .support import Arena, Bound, Buffer, Rows, call_host, make_host, placed

// CHECK:       copy_kernel = Bound(copy_kernel, num_warps=4)
// CHECK:       arena = Arena()
// CHECK:       def buffers(N, T):
// CHECK:           return {
// CHECK-NEXT:          "ring": Buffer((min(T, 4), 16 * N), torch.float32, 3, 8),
// CHECK-NEXT:      }
// CHECK:       def walk(arrays, *, T, N, seed=0, start=None, hosts=None):
// CHECK:           input x: f32[T, 16 * N]
// CHECK:           output y: f32[T, 16 * N]
// CHECK:           device = arrays["x"].device
// CHECK-NEXT:      env = make_host(hosts, "env")
// CHECK-NEXT:      x = placed(arrays["x"])
// CHECK-NEXT:      y = torch.zeros((T, 16 * N), dtype=torch.float32, device=device)
// CHECK-NEXT:      memory = arena.take(buffers(N, T), device)
// CHECK-NEXT:      ring, = memory.tensors
// CHECK-NEXT:      for t in range(T):
// CHECK-NEXT:          if t == 0:
// CHECK-NEXT:              copy_kernel[{{.*}}](x, ring, 16 * N, 16 * N * t, 16 * N * (t % 4))
// CHECK-NEXT:          else:
// CHECK-NEXT:              mul_add[((N + 63) // 64,)](x, ring, 16 * N, 16 * N * t, 16 * ((t - 1) % 4) * N, 16 * N * (t % 4))
// CHECK-NEXT:          call_host(
// CHECK-NEXT:              env,
// CHECK-NEXT:              ("env", "step"),
// CHECK-NEXT:              [Rows(ring, 16 * N * (t % 4), (16 * N,), (1,))],
// CHECK-NEXT:              [Rows(y, 16 * N * t, (16 * N,), (1,))],
// CHECK-NEXT:              "sdg.host ({{.*}}driver.mlir:{{[0-9]+}})",
// CHECK-NEXT:              {"t": t},
// CHECK-NEXT:          )
// CHECK-NEXT:      for t in reversed(range(1, T, 2)):
// CHECK-NEXT:          if t >= 3 and (t < T - 1 or T == 7):
// CHECK-NEXT:              copy_kernel_2[((N + 63) // 64,)](y, 16 * N, 16 * N * t, 16 * N * t - 16 * N)
// CHECK-NEXT:      arena.give(memory)
// CHECK-NEXT:      return {"y": y}
loop.program @walk dims(t: T, n: N) {
  %x = loop.input "x" : !loop.buffer<(t: full) ?xf32, [16 * N]>
  %y = loop.output "y" : !loop.buffer<(t: full) ?xf32, [16 * N]>
  %ring = loop.alloc : !loop.buffer<(t: ring 4) ?xf32, [16 * N]>
  loop.for t = 0 to T {
    loop.if t = 0 {
      loop.compute at (t = t) ins(%a = %x[t]) outs(%ring[t]) { loop.yield %a : tensor<?xf32, #sdg.size<16 * N>> }
    } else {
      loop.kernel at (t = t) ins(%a = %x[t], %b = %ring[t - 1]) outs(%ring[t]) {
        %p = sdg.mul %a, %b : (tensor<?xf32, #sdg.size<16 * N>>, tensor<?xf32, #sdg.size<16 * N>>) -> tensor<?xf32, #sdg.size<16 * N>>
        %s = sdg.add %p, %a : (tensor<?xf32, #sdg.size<16 * N>>, tensor<?xf32, #sdg.size<16 * N>>) -> tensor<?xf32, #sdg.size<16 * N>>
        loop.yield %s : tensor<?xf32, #sdg.size<16 * N>>
      }
    }
    loop.host @env::@step at (t = t) ins(%ring[t]) outs(%y[t])
    loop.free %ring[t - 3]
  }
  loop.for t = T - 1 down to 1 step 2 {
    loop.if t >= 3 and (t < T - 1 or T = 7) {
      loop.compute at (t = t) ins(%a = %y[t]) outs(%y[t - 1]) { loop.yield %a : tensor<?xf32, #sdg.size<16 * N>> }
    }
  }
}
