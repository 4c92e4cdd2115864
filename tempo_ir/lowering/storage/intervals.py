"""
When each buffer of a loop program is live, as an interval of positions in the program: buffers whose intervals do not
meet may lie in the same memory.

A buffer is made by an operation of some block, and holds nothing that is read in another run of that block. So it is
live from the first to the last operation *of that block* that it is used in: a loop of the block counts as a whole,
since what one iteration writes a later one may read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects.loop import BufferOperation, CheckOp, FreeOp, ProgramOp


@dataclass(frozen=True, slots=True)
class Interval:
    """From the first to the last position, both included."""

    first: int
    last: int

    def meets(self, other: Interval) -> bool:
        """Whether both are live at some position."""
        return self.first <= other.last and other.first <= self.last


def buffer_intervals(program: ProgramOp) -> dict[SSAValue, Interval]:
    """
    The interval of every buffer, in program order.

    A buffer that is never used is live where it is made. One that a check reads must hold zero when the program starts,
    so it is live from the start.
    """
    positions = _Positions()
    positions.number(program.body.block)
    return {op.buffer: _interval(op, positions.spans) for op in program.operations() if isinstance(op, BufferOperation)}


@dataclass(slots=True)
class _Positions:
    """The positions of operations: the first and the last of each with all that is inside of it."""

    spans: dict[Operation, Interval] = field(default_factory=dict[Operation, Interval])
    count: int = 0

    def number(self, block: Block) -> None:
        """Number the operations of a block and of the blocks inside."""
        for op in block.ops:
            first = self.count
            self.count += 1
            for region in op.regions:
                for inner in region.blocks:
                    self.number(inner)
            self.spans[op] = Interval(first, self.count - 1)


def _interval(op: BufferOperation, spans: Mapping[Operation, Interval]) -> Interval:
    users = [use.operation for use in op.buffer.uses if not isinstance(use.operation, FreeOp)]
    used = [spans[_in_block(user, op.parent)] for user in users]
    first = min((span.first for span in used), default=spans[op].first)
    last = max((span.last for span in used), default=spans[op].last)
    return Interval(0 if any(isinstance(user, CheckOp) for user in users) else first, last)


def _in_block(op: Operation, block: Block | None) -> Operation:
    """The operation of a block that is or contains another."""
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op()
    assert current is not None, "a buffer is used outside of the block that makes it"
    return current
