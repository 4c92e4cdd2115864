"""
Starts: the first values of a memory, written once before the loops instead of in their first iterations.

```mlir
loop.for i = 0 to I {                         loop.compute ins(%a = %w0) outs(%w) { copy }
  loop.if i = 0 {                             loop.for i = 0 to I {
    loop.compute ins(%a = %w0) outs(%w)  ->     ...
  }                                           }
  ...
```

That is right where the row that is written does not depend on the loop, where what is written is a constant or an array
of the caller, and where nothing that lies in its place is still read; whoever plans asks for the last. Rows that are
copied one by one from an array of the caller are copied as one:

```mlir
loop.for t = 0 to T {                                loop.compute ins(%a = %prompt[0:P]) outs(%token[0:P]) { copy }
  loop.if t < P {                                    loop.for t = 0 to T {
    loop.compute ins(%a = %prompt[t]) outs(%token[t])  ->  ...
  } ...                                              }
}
```

Where the loop may have no iteration, or no row be there to be written, the copy stands under the guard that there is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, Region, SSAValue

from tempo_ir.dialects.loop import (
    AccessOperation,
    BodyOperation,
    BufferAccess,
    BufferType,
    ComputeOp,
    ForOp,
    IfOp,
    InputOp,
    ParameterOp,
    PointAttr,
    ProgramOp,
    YieldOp,
)
from tempo_ir.dialects.sdg import ConstantOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import TRUE, Cond, Expr, Index, Slice, conj, free_symbols, negate, substitute
from tempo_ir.lowering.storage.boxes import Box, conjuncts
from tempo_ir.lowering.storage.liveness import CellUse
from tempo_ir.lowering.storage.uses import Frame, Numbers, Use, copied_argument


@dataclass(frozen=True)
class Start:
    """`op`, to stand before `anchor` under `guard`, takes the place of the operations that wrote `use.cells` when they
    ran."""

    op: BodyOperation
    replaced: tuple[BodyOperation, ...]
    anchor: Operation
    use: CellUse
    guard: Cond = TRUE


def possible_starts(uses: Sequence[CellUse], numbers: Numbers, space: Space) -> Iterator[Start]:
    """Each way to begin a memory before a loop; of those that replace one operation, one can be taken."""
    candidates: dict[tuple[Hashable, Index], list[CellUse]] = {}
    for use in uses:
        value = _value(use.use) if use.use.writes else None
        if value is not None:
            candidates.setdefault((value, _fixed_cells(use)), []).append(use)
    for (_, cells), writers in candidates.items():
        start = _start(writers, cells, numbers)
        if start is not None:
            yield start
    for use in [use for use in uses if use.use.writes and _begins(use.use)]:
        starts = (_at_once(use, depth, numbers, space) for depth in range(len(use.frame.loops)))
        yield from (start for start in starts if start is not None)


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


def _begins(use: Use) -> bool:
    """Whether a write is of a constant or of what an array of the caller has."""
    op = use.op
    assert isinstance(op, AccessOperation)
    number = copied_argument(use)
    return _value(use) is not None if number is None else isinstance(op.ins[number].owner, InputOp | ParameterOp)


def _callers_array(buffer: SSAValue) -> SSAValue | None:
    """The buffer, if it is the caller's and has one row."""
    assert isinstance(buffer.type, BufferType)
    return buffer if isinstance(buffer.owner, InputOp | ParameterOp) and not buffer.type.dims else None


def _fixed_cells(use: CellUse) -> Index:
    """The cells with the iterators that have one value there replaced by it."""
    values = use.frame.only_values()
    return tuple(substitute(entry, values) for entry in use.cells)


def _at_once(use: CellUse, depth: int, numbers: Numbers, space: Space) -> Start | None:
    """One operation that writes what another writes in all iterations of the loops inside of the `depth` outermost
    ones: a row, or all rows that it copies; None where it does something else, or they do not lie side by side."""
    op = use.use.op
    if not isinstance(op, BodyOperation) or len(op.outs) != 1 or not _takes_whole_rows(op, space):
        return None
    box, value = Box.of(use.frame, depth, space), _value(use.use)
    if box is None or (value is not None and not box.ranges and box.guard == TRUE):  # the latter `_start` has
        return None
    cells, written = box.rows(use.cells), box.rows(op.writes[0].index)
    if cells is None or written is None or sorted(cells[1]) != sorted(box.ranges) or written[1] != cells[1]:
        return None
    moved = op.clone() if value is not None and not box.ranges else _copy_of_rows(op, box, written)
    if moved is None:
        return None
    moved.point_attr = PointAttr(())  # as those of `_start`
    anchor, block = _place([use], depth)
    around = frame_of(block)
    guard = conj(*(one for one in conjuncts(box.guard) if one not in conjuncts(around.guard)))
    order = (*use.use.order[:depth], numbers[anchor] - 1)
    moved_use = Use(moved, True, 0, use.use.buffer, written[0], around.where(guard), order)
    return Start(moved, (op,), anchor, CellUse(moved_use, cells[0], use.moment), guard)


def _copy_of_rows(op: BodyOperation, box: Box, written: tuple[Index, tuple[str, ...]]) -> ComputeOp | None:
    """A copy of all rows of a caller's array that a copy moves; None where it moves others, or in another order."""
    if len(op.ins) != 1:
        return None
    taken = box.rows(op.reads[0].index)
    if taken is None or taken[1] != written[1]:
        return None
    read = BufferAccess.of(op.ins[0], taken[0])
    body = Block(arg_types=[read.type])
    body.args[0].name_hint = op.body.block.args[0].name_hint
    body.add_op(YieldOp(body.args))
    moved = ComputeOp([read], [BufferAccess(op.outs[0], written[0], read.type)], Region(body))
    moved.location = op.location
    return moved


def _takes_whole_rows(op: BodyOperation, space: Space) -> bool:
    """Whether an operation reads and writes whole rows, of one shape everywhere."""
    for access in (*op.reads, *op.writes):
        extents = [extent for extent in shape_of(access.type) if isinstance(extent, Expr)]
        if access.type != BufferAccess.of(access.buffer, access.index).type:
            return False
        if any(isinstance(entry, Slice) for entry in access.index):
            return False
        if not free_symbols(tuple(extents)) <= set(space.params):
            return False
    return True


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
    anchor, block = _place(writers, depth)
    op = first.use.op.clone()
    op.point_attr = PointAttr(())  # those that it replaces had several; no body here asks for it
    order = (*first.use.order[:depth], numbers[anchor] - 1)
    use = Use(op, True, 0, first.use.buffer, first.use.index, frame_of(block), order)
    replaced = tuple(use.use.op for use in writers if isinstance(use.use.op, BodyOperation))
    return Start(op, replaced, anchor, CellUse(use, cells, first.moment))


def _place(writers: Sequence[CellUse], depth: int) -> tuple[Operation, Block]:
    """Before which operation of which block to write what some write in the loops inside of the `depth` outermost."""
    first = min(writers, key=lambda use: use.use.order).use
    outer = first.frame.loops[:depth]
    body = outer[-1].body.block if outer else _program(first.op).body.block
    block = _inside_guards([*use.frame.loops[depth:], use.use.op][0] for use in writers) or body
    return _ancestor(first.op, block), block


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
