"""
Frees: rows that are read no more while the buffer lives on, `loop.free %k[t - 63]` after the step that reads them last.

The rows that are left when the buffer itself ends have no free, nor has a buffer with one slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, Region, SSAValue

from tempo_ir.dialects.loop import AccessOperation, FreeOp, IfOp
from tempo_ir.dialects.loop.ending import Unknown
from tempo_ir.index.expr import TRUE, Cond, Index, free_symbols
from tempo_ir.lowering.storage.liveness import OPERAND, CellUse, Liveness
from tempo_ir.lowering.storage.plan import Planned


@dataclass(frozen=True, slots=True)
class Free:
    """After an operation, where the guard holds, the rows of a memory at `cells` are read no more."""

    after: AccessOperation
    guard: Cond
    planned: Planned
    cells: Index


def last_reads(plan: Sequence[Planned], liveness: Liveness, unknown: Unknown) -> list[Free]:
    """What to free, in program order; what only the end of a loop could tell is left to the end of its buffer."""
    frees = dict.fromkeys(free for planned in plan for free in _of(planned, liveness))
    return [free for free in frees if not unknown.at(free.after, free_symbols(free.guard), free_symbols(free.cells))]


def _of(planned: Planned, liveness: Liveness) -> Iterator[Free]:
    if planned.group.output is not None or not planned.stored:
        return
    for number, use in enumerate(planned.uses):
        if use.use.writes or not isinstance(use.use.op, AccessOperation) or _overwrites(planned, use):
            continue
        for guard, cells in liveness.last_reads(planned.question, number):
            if _varies(planned.index(cells), use):
                yield Free(use.use.op, guard, planned, cells)


def _overwrites(planned: Planned, use: CellUse) -> bool:
    """Whether the operation may write in place what it reads, which is the end of that row."""
    op = use.use.op
    return use.moment == OPERAND and any(other.use.writes and other.use.op is op for other in planned.uses)


def _varies(index: Index, use: CellUse) -> bool:
    """Whether other rows are freed in other iterations of the loops."""
    return bool(free_symbols(index) & set(use.frame.iterators))


def insert_frees(
    frees: Sequence[Free], buffers: Mapping[SSAValue, SSAValue], operations: Mapping[Operation, Operation]
) -> dict[Operation, Index]:
    """
    Write frees into a program, those after one operation with one guard together; returns the cells of each.

    `buffers` holds the buffer in which each lies, `operations` those that replaced others.
    """
    grouped: dict[tuple[Operation, Cond], list[Free]] = {}
    for free in frees:
        grouped.setdefault((operations.get(free.after, free.after), free.guard), []).append(free)
    cells: dict[Operation, Index] = {}
    for (after, guard), together in reversed(grouped.items()):
        made: list[Operation] = []
        for free in together:
            buffer = buffers[next(iter(free.planned.group.members))]
            op = FreeOp(buffer, free.planned.index(free.cells))
            op.location = after.location
            cells[op] = free.cells
            made.append(op)
        block = after.parent
        assert block is not None
        block.insert_ops_after(made if guard == TRUE else [IfOp(guard, Region(Block(made)))], after)
    return cells
