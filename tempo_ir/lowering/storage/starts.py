"""
Starts: the first value of a memory, written once before the loops instead of in their first iteration.

```mlir
loop.for i = 0 to I {                         loop.compute ins(%a = %w0) outs(%w) { copy }
  loop.if i = 0 {                             loop.for i = 0 to I {
    loop.compute ins(%a = %w0) outs(%w)  ->     ...
  }                                           }
  ...
```

That is right where the row that is written does not depend on the loop, where what is written is a constant or an array
of the caller, and where nothing that lies in its place is still read; whoever plans asks for the last.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects.loop import (
    BodyOperation,
    BufferType,
    ForOp,
    IfOp,
    InputOp,
    ParameterOp,
    PointAttr,
    ProgramOp,
    YieldOp,
)
from tempo_ir.dialects.sdg import ConstantOp
from tempo_ir.index.expr import Index, free_symbols, negate, substitute
from tempo_ir.lowering.storage.liveness import CellUse
from tempo_ir.lowering.storage.uses import Frame, Numbers, Use


@dataclass(frozen=True)
class Start:
    """`op`, to stand before `anchor`, takes the place of the operations that wrote `use.cells` when they ran."""

    op: BodyOperation
    replaced: tuple[BodyOperation, ...]
    anchor: Operation
    use: CellUse


def possible_starts(uses: Sequence[CellUse], numbers: Numbers) -> Iterator[Start]:
    """Each way to begin a memory before a loop."""
    candidates: dict[tuple[Hashable, Index], list[CellUse]] = {}
    for use in uses:
        value = _value(use.use) if use.use.writes else None
        if value is not None:
            candidates.setdefault((value, _fixed_cells(use)), []).append(use)
    for (_, cells), writers in candidates.items():
        start = _start(writers, cells, numbers)
        if start is not None:
            yield start


def _value(use: Use) -> Hashable | None:
    """What an operation writes, if it is a constant or an array of the caller; None if it is not."""
    op = use.op
    if not isinstance(op, BodyOperation) or len(op.outs) != 1:
        return None
    (result,) = op.yielded
    if isinstance(result.owner, ConstantOp):
        return result.owner.value, result.type
    if result in op.body.block.args and all(isinstance(inner, YieldOp) for inner in op.body.block.ops):
        return _callers_array(op.ins[0])
    return None


def _callers_array(buffer: SSAValue) -> SSAValue | None:
    """The buffer, if it is the caller's and has one row."""
    assert isinstance(buffer.type, BufferType)
    return buffer if isinstance(buffer.owner, InputOp | ParameterOp) and not buffer.type.dims else None


def _fixed_cells(use: CellUse) -> Index:
    """The cells with the iterators that have one value there replaced by it."""
    values = use.frame.only_values()
    return tuple(substitute(entry, values) for entry in use.cells)


def _start(writers: Sequence[CellUse], cells: Index, numbers: Numbers) -> Start | None:
    """One operation that writes the cells before the loops on which they do not depend; None if there are none."""
    loops = writers[0].frame.loops
    needed = free_symbols(cells) & set(writers[0].frame.iterators)
    depth = next(n for n in range(len(loops) + 1) if needed <= {loop.iterator for loop in loops[:n]})
    outer = loops[:depth]
    if any(len(use.frame.loops) < depth or use.frame.loops[:depth] != outer for use in writers):
        return None
    if all(len(use.frame.loops) == depth for use in writers):
        return None
    first = min(writers, key=lambda use: use.use.order)
    assert isinstance(first.use.op, BodyOperation)
    body = outer[-1].body.block if outer else _program(first.use.op).body.block
    block = _inside_guards([*use.frame.loops[depth:], use.use.op][0] for use in writers) or body
    anchor = _ancestor(first.use.op, block)
    op = first.use.op.clone()
    op.point_attr = PointAttr(())  # those that it replaces had several; no body here asks for it
    order = (*first.use.order[:depth], numbers[anchor] - 1)
    use = Use(op, True, 0, first.use.buffer, first.use.index, frame_of(block), order)
    replaced = tuple(use.use.op for use in writers if isinstance(use.use.op, BodyOperation))
    return Start(op, replaced, anchor, CellUse(use, cells, first.moment))


def _inside_guards(operations: Iterable[Operation]) -> Block | None:
    """The innermost block that operations have in common, where that is part of a guard."""
    chains = [_guarded_blocks(op) for op in operations]
    common = [block for block in chains[0] if all(block in chain for chain in chains[1:])]
    return common[0] if common else None


def _guarded_blocks(op: Operation) -> list[Block]:
    """The parts of guards round an operation up to the next loop, innermost first."""
    found: list[Block] = []
    inside = op.parent
    while inside is not None and isinstance(guard := inside.parent_op(), IfOp):
        found.append(inside)
        inside = guard.parent
    return found


def _program(op: Operation) -> ProgramOp:
    current: Operation | None = op
    while not isinstance(current, ProgramOp):
        assert current is not None
        current = current.parent_op()
    return current


def _ancestor(op: Operation, block: Block) -> Operation:
    """The operation of a block that is or contains another."""
    current = op
    while current.parent is not block:
        parent = current.parent_op()
        assert parent is not None
        current = parent
    return current


def frame_of(block: Block) -> Frame:
    """The loops and guards round a block."""
    owners: list[tuple[Operation, Block]] = []
    inside: Block | None = block
    while inside is not None:
        owner = inside.parent_op()
        if owner is None or isinstance(owner, ProgramOp):
            break
        owners.append((owner, inside))
        inside = owner.parent
    frame = Frame()
    for owner, inside in reversed(owners):
        if isinstance(owner, ForOp):
            frame = frame.inside(owner)
        elif isinstance(owner, IfOp):
            frame = frame.where(owner.condition if owner.then.block is inside else negate(owner.condition))
    return frame
