"""What the programs of a grid share: ops of a kernel that give the same for all programs along some axes."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.tile.memory import GatherOp, IndexedWriteOp, LoadOp, WriteOp
from tempo_ir.dialects.tile.structure import IfOp, KernelOp, ProgramIdOp, YieldOp


def program_levels(kernel: KernelOp) -> dict[Operation, int]:
    """
    Per op of a kernel's body, in order, the least axis of the grid whose program it depends on; as many as there are
    axes for what depends on none. What writes memory, or reads what the kernel writes, depends on all.
    """
    written = {op.view_op.pointer for op in kernel.walk() if isinstance(op, WriteOp | IndexedWriteOp)}
    levels: dict[SSAValue, int] = {}
    found: dict[Operation, int] = {}
    for op in kernel.body.block.ops:
        level = len(kernel.grid.data)
        for inner in op.walk():
            if isinstance(inner, ProgramIdOp):
                level = min(level, inner.axis.value.data)
            elif isinstance(inner, WriteOp | IndexedWriteOp | IfOp) or (
                isinstance(inner, LoadOp | GatherOp) and inner.view_op.pointer in written
            ):
                level = 0
            level = min([level, *(levels[operand] for operand in inner.operands if operand in levels)])
        if isinstance(op, YieldOp):
            level = 0
        found[op] = level
        levels |= dict.fromkeys(op.results, level)
    return found
