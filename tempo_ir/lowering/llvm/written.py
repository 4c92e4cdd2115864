"""What a kernel writes, by the pointers that lead there: where an output lies in the array of its parameter, two do."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tempo_ir.dialects.tile.attributes import IntegersAttr
from tempo_ir.dialects.tile.memory import AccessOp, IndexedWriteOp, WriteOp
from tempo_ir.dialects.tile.structure import SHARES, KernelOp


def writes_of(kernel: KernelOp) -> dict[SSAValue, list[AccessOp]]:
    """The writes of a kernel by each pointer whose memory they may change, in order."""
    pairs, arguments = kernel.attributes.get(SHARES), kernel.body.block.args
    numbers = pairs.data if isinstance(pairs, IntegersAttr) else ()
    read = dict[SSAValue, SSAValue]()
    read.update((arguments[b], arguments[a]) for a, b in zip(numbers[::2], numbers[1::2], strict=True))
    writes: dict[SSAValue, list[AccessOp]] = {}
    for op in kernel.walk():
        if isinstance(op, WriteOp | IndexedWriteOp):
            pointer = op.view_op.pointer
            for one in dict.fromkeys((pointer, read.get(pointer, pointer))):
                writes.setdefault(one, []).append(op)
    return writes
