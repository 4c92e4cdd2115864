"""Which pointers of a kernel may lead to the same memory: a parameter that it reads, and the output of the same state,
which lies in the parameter's array where the call lets it (`donate=True`).

```mlir
%w_last = loop.output "w" {donates} : ...         tile.kernel @sub(%w: !tile.ptr<f32>, %g: ..., %w_last: ...) grid []
loop.kernel ins(%w, %g) outs(%w_last, %d)    ->       attributes {shares = #tile.integers[0, 2]}
```
A kernel that writes to one place only reads each element before it writes it anyway.
"""

from __future__ import annotations

from tempo_ir.dialects.loop import DONATES, BodyOperation, OutputOp, ParameterOp
from tempo_ir.lowering.kernels.translation import leaf_buffers


def shared_pointers(leaf: BodyOperation) -> tuple[int, ...]:
    """The numbers of such pointers of the kernel of a leaf, in pairs: that of the parameter, and that of the output."""
    if len(leaf.outs) < 2:
        return ()
    makers = [buffer.owner for buffer in leaf_buffers(leaf)]
    outputs = {
        op.key: number for number, op in enumerate(makers) if isinstance(op, OutputOp) and DONATES in op.attributes
    }
    parameters = {op.key: number for number, op in enumerate(makers) if isinstance(op, ParameterOp)}
    return tuple(n for key, number in parameters.items() if key in outputs for n in (number, outputs[key]))
