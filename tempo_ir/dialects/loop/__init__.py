"""
The loop dialect: a program as loops, guards and leaves over buffers.

Loop iterators and bounds are *names*, used by index expressions; buffers are SSA values. `sdg-schedule` makes a leaf
of each sdg op and a buffer with a row per point of each value (single assignment); `loop-form-kernels` makes kernels
of runs of leaves, `loop-plan-storage` then decides how each buffer stores its dims, and `loop-lower-kernels` turns
kernels into launches of tile kernels. Invariants: a row is written before it is read, iterators do not shadow, an
index has an entry for each dim that the buffer stores, bodies hold sdg ops in tensor form (no domain, no index) whose
free names are iterators or bounds, `loop.fold`, a loop over such ops inside of a kernel, and `loop.shares`, a sum
weighted by a softmax whose shares are computed apart.

```mlir
loop.program @rnn dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 16xf32>
  %h = loop.output "h" : !loop.buffer<(t: full) 16xf32>
  loop.for t = 0 to T {
    loop.if t = 0 {
      loop.compute at (t = t) ins(%a = %x[t]) outs(%h[t]) { loop.yield %a : tensor<16xf32> }
    } else {
      loop.compute at (t = t) ins(%a = %x[t], %b = %h[t - 1]) outs(%h[t]) {
        %r = sdg.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
        loop.yield %r : tensor<16xf32>
      }
    }
  }
}
```
"""

from __future__ import annotations

from xdsl.ir import Dialect

from tempo_ir.dialects.loop.attributes import BufferDim, BufferType, PointAttr, StorageAttr, TouchedAttr
from tempo_ir.dialects.loop.checks import CheckOp
from tempo_ir.dialects.loop.fold import FoldOp
from tempo_ir.dialects.loop.leaves import (
    AccessOperation,
    BodyOperation,
    BufferAccess,
    ComputeOp,
    HostOp,
    KernelOp,
    LaunchOp,
    YieldOp,
)
from tempo_ir.dialects.loop.parts import PartsOp
from tempo_ir.dialects.loop.shares import SharesOp
from tempo_ir.dialects.loop.structure import (
    CALL_SEED,
    DEALLOC,
    DONATES,
    HOST,
    SWAP,
    AllocOp,
    BufferOperation,
    ForOp,
    FreeOp,
    IfOp,
    InputOp,
    LoopOperation,
    NamedBufferOperation,
    OutputOp,
    ParameterOp,
    ProgramOp,
    call_most,
    call_start,
    enclosing_loops,
    is_host,
)
from tempo_ir.dialects.loop.transfers import FetchOp, OffloadOp, TransferOp

__all__ = [
    "CALL_SEED",
    "DEALLOC",
    "DONATES",
    "HOST",
    "SWAP",
    "AccessOperation",
    "AllocOp",
    "BodyOperation",
    "BufferAccess",
    "BufferDim",
    "BufferOperation",
    "BufferType",
    "CheckOp",
    "ComputeOp",
    "FetchOp",
    "FoldOp",
    "ForOp",
    "FreeOp",
    "HostOp",
    "IfOp",
    "InputOp",
    "KernelOp",
    "LaunchOp",
    "Loop",
    "LoopOperation",
    "NamedBufferOperation",
    "OffloadOp",
    "OutputOp",
    "ParameterOp",
    "PartsOp",
    "PointAttr",
    "ProgramOp",
    "SharesOp",
    "StorageAttr",
    "TransferOp",
    "YieldOp",
    "call_most",
    "call_start",
    "enclosing_loops",
    "is_host",
]

Loop = Dialect(
    "loop",
    [
        ProgramOp,
        InputOp,
        ParameterOp,
        OutputOp,
        AllocOp,
        FreeOp,
        ForOp,
        IfOp,
        ComputeOp,
        KernelOp,
        FoldOp,
        SharesOp,
        PartsOp,
        HostOp,
        LaunchOp,
        OffloadOp,
        FetchOp,
        CheckOp,
        YieldOp,
    ],
    [StorageAttr, BufferType, PointAttr, TouchedAttr],
)
