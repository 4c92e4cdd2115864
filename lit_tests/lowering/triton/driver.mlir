// RUN: tempo-opt %s -t triton | filecheck %s

// The loop program is printed as a Python driver after its kernels: buffers lie in one piece of memory, where those that are
// not needed at once share their bytes; a launch has its grid, the pointers, and the scalars that are the same in each step.
// The others stand in a table, which a kernel of each loop fills when a step begins. What of a body only launches kernels is
// a function, which a CUDA graph may repeat: there is one for each combination of its guards.

// All scalars of this kernel are multiples of 16, so that Triton may know it.

// CHECK:       # sdg.mul, sdg.add
// CHECK-NEXT:  # driver.mlir:{{[0-9]+}}-{{[0-9]+}}
// CHECK-NEXT:  # grid: the launch says how many (offsets by BLOCK)
// CHECK-NEXT:  @triton.jit(do_not_specialize=["at"])
// CHECK-NEXT:  def mul_add(x_ptr, ring_ptr, n0: "i64", scalars_ptr, at: "i64"):
// CHECK:           n1 = tl.multiple_of(tl.load(scalars_ptr + at), 16)
// CHECK-NEXT:      n2 = tl.multiple_of(tl.load(scalars_ptr + at + 1), 16)
// CHECK:           p = x * ring
// CHECK-NEXT:      s = p + x
// CHECK-NEXT:      tl.debug_barrier()
// CHECK-NEXT:      tl.store(ring_ptr + n3 + offsets, s, mask=inside_offsets)
// CHECK:       # a step of t: its scalars
// CHECK-NEXT:  # grid: one program
// CHECK-NEXT:  @triton.jit(do_not_specialize=["N"])
// CHECK-NEXT:  def next_t(scalars_ptr, N: "i64"):
// CHECK-NEXT:      N = N.to(tl.int64)
// CHECK-NEXT:      t = tl.load(scalars_ptr + 0) + 1
// CHECK-NEXT:      tl.store(scalars_ptr + 0, t)
// CHECK-NEXT:      tl.store(scalars_ptr + 1, 16 * N * t)
// CHECK-NEXT:      tl.store(scalars_ptr + 2, 16 * N * (t % 4))
// CHECK-NEXT:      tl.store(scalars_ptr + 3, 16 * N * t)
// CHECK-NEXT:      tl.store(scalars_ptr + 4, 16 * floor_modulo(t - 1, tl.full((), 4, tl.int64)) * N)
// CHECK:       def next_t_2(scalars_ptr, N: "i64"):
// CHECK:           t = tl.load(scalars_ptr + 0) - 2
// CHECK:       # ---- driver.py
// CHECK-NEXT:  """The program @walk: its loops, over Triton kernels."""
// CHECK:       import torch
// CHECK:       from . import kernels
// CHECK-NEXT:  from .support import Arena, Bound, Buffer, Rows, Steps, call_host, make_host, placed

// CHECK:       copy_kernel = Bound(kernels.copy_kernel)
// CHECK:       arena = Arena()
// CHECK:       def buffers(N, T):
// CHECK:           return {
// CHECK-NEXT:          "scalars": Buffer((8,), torch.int64, 0, 13),
// CHECK-NEXT:          "ring": Buffer((min(T, 4), 16 * N), torch.float32, 3, 10),
// CHECK-NEXT:      }
// CHECK:       def walk(arrays, *, T, N, seed=0, start=None, hosts=None, graphs=None):
// CHECK:           input x: f32[T, 16 * N]
// CHECK:           output y: f32[T, 16 * N]
// CHECK:           device = arrays["x"].device
// CHECK-NEXT:      env = make_host(hosts, "env")
// CHECK-NEXT:      x = placed(arrays["x"])
// CHECK-NEXT:      y = torch.zeros((T, 16 * N), dtype=torch.float32, device=device)
// CHECK-NEXT:      memory = arena.take(buffers(N, T), device)
// CHECK-NEXT:      scalars, ring = memory.tensors
// CHECK-NEXT:      steps = Steps(device, graphs)
// CHECK-EMPTY:
// CHECK-NEXT:      def step_t(guard, guard_2):
// CHECK-NEXT:          next_t[(1,)](scalars, N)
// CHECK-NEXT:          if guard:  # t == 0
// CHECK-NEXT:              copy_kernel[((N + 63) // 64,)](x, ring, 16 * N, scalars, 1)
// CHECK-NEXT:          else:
// CHECK-NEXT:              mul_add[((N + 63) // 64,)](x, ring, 16 * N, scalars, 3)
// CHECK-NEXT:          if guard_2:  # t == T - 1
// CHECK-NEXT:              copy_kernel[((N + 63) // 64,)](x, ring, 16 * N, scalars, 1)
// CHECK-EMPTY:
// CHECK-NEXT:      scalars[0] = -1
// CHECK-NEXT:      for t in range(T):
// CHECK-NEXT:          steps.run(step_t, t == 0, t == T - 1)
// CHECK-NEXT:          call_host(
// CHECK-NEXT:              env,
// CHECK-NEXT:              ("env", "step"),
// CHECK-NEXT:              [Rows(ring, 16 * N * (t % 4), (16 * N,), (1,))],
// CHECK-NEXT:              [Rows(y, 16 * N * t, (16 * N,), (1,))],
// CHECK-NEXT:              "sdg.host ({{.*}}driver.mlir:{{[0-9]+}})",
// CHECK-NEXT:              {"t": t},
// CHECK-NEXT:          )
// CHECK-NEXT:      scalars[0] = 2 * (T // 2) + 1
// CHECK-NEXT:      for t in reversed(range(1, T, 2)):
// CHECK-NEXT:          next_t_2[(1,)](scalars, N)
// CHECK-NEXT:          if t >= 3 and (t < T - 1 or T == 7):
// CHECK-NEXT:              copy_kernel_2[((N + 63) // 64,)](y, 16 * N, scalars, 6)
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
    loop.if t = T - 1 {
      loop.compute at (t = t) ins(%a = %x[t]) outs(%ring[t]) { loop.yield %a : tensor<?xf32, #sdg.size<16 * N>> }
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
