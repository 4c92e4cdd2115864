"""Where an operation runs, and whether the rows that it would read are there by then.

A leaf in the place of a loop reads at once what the iterations read one by one, and where there is no iteration too. So
what formation moves is read only where the row is the caller's and inside of its array, or where an operation that
stands before, in the same iteration of the loops round both, is known to have written it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Block, Operation

from tempo_ir.dialects.loop import (
    AccessOperation,
    BufferAccess,
    BufferOperation,
    ForOp,
    IfOp,
    InputOp,
    ParameterOp,
    ProgramOp,
)
from tempo_ir.index import (
    FALSE,
    Cond,
    Const,
    Expr,
    IndexExpressionError,
    Slice,
    Space,
    Sym,
    compare,
    conj,
    disj,
    negate,
    substitute,
)


@dataclass(frozen=True)
class Scope:
    """The points at which an operation runs: the iterators of the loops round it, and what holds of them."""

    space: Space
    names: tuple[str, ...]
    held: tuple[Cond, ...]

    @staticmethod
    def of(op: Operation, space: Space) -> Scope:
        """The loops and guards round an operation."""
        loops = [parent for parent in parents(op) if isinstance(parent, ForOp)]
        return Scope(space, tuple(loop.iterator for loop in reversed(loops)), tuple(conditions(op)))

    def inside(self, *ranges: tuple[str, Expr, Expr]) -> Scope:
        """With more names, each in a range."""
        more = [conj(compare("<=", first, Sym(name)), compare("<", Sym(name), end)) for name, first, end in ranges]
        return Scope(self.space, (*self.names, *(name for name, *_ in ranges)), (*self.held, *more))

    def holds(self, cond: Cond) -> bool:
        """Whether a condition is proved at all of these points."""
        from tempo_ir.index import isl

        try:
            points = isl.condition_set(self.space, self.names, conj(*self.held, negate(cond)))
        except IndexExpressionError:
            return False
        return points.intersect_params(isl.params_set(self.space)).is_empty()


def parents(op: Operation) -> Iterator[Operation]:
    """The operations round an operation, innermost first, without the program."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, ProgramOp):
        yield parent
        parent = parent.parent_op()


def conditions(op: Operation) -> Iterator[Cond]:
    """What the loops and guards round an operation say, innermost first."""
    block = op.parent
    for parent in parents(op):
        if isinstance(parent, ForOp):
            iterator = Sym(parent.iterator)
            yield compare("<=", parent.lower, iterator)
            yield compare("<", iterator, parent.upper)
            if parent.step != 1:
                yield compare("=", (iterator - parent.lower) % parent.step, 0)
        elif isinstance(parent, IfOp):
            yield parent.condition if block is parent.then.block else negate(parent.condition)
        block = parent.parent


def are_there(access: BufferAccess, place: Operation, space: Space) -> bool:
    """Whether all the rows of an access are there whenever an operation in that place runs."""
    rows: list[Expr] = []
    ranges: list[tuple[str, Expr, Expr]] = []
    for number, entry in enumerate(access.index):
        if isinstance(entry, Slice):
            ranges.append((f"row.{number}", entry.start, entry.stop))
        rows.append(Sym(f"row.{number}") if isinstance(entry, Slice) else entry)
    scope = Scope.of(place, space).inside(*ranges)
    owner = access.buffer.owner
    if isinstance(owner, InputOp | ParameterOp):
        return scope.holds(_in_bounds(owner, rows, space))
    writers = dict.fromkeys(use.operation for use in access.buffer.uses)
    found = [
        _writes(write, rows, op, place)
        for op in writers
        if isinstance(op, AccessOperation)
        for write in op.writes
        if write.buffer is access.buffer
    ]
    return any(cond != FALSE for cond in found) and scope.holds(disj(*found))


def _in_bounds(owner: BufferOperation, rows: list[Expr], space: Space) -> Cond:
    ends = [space.bound(dim.name) if dim.extent is None else dim.extent for dim in owner.buffer_type.dims]
    inside = [(compare("<=", 0, row), compare("<", row, end)) for row, end in zip(rows, ends, strict=True)]
    return conj(*(cond for pair in inside for cond in pair))


def _writes(write: BufferAccess, rows: list[Expr], writer: Operation, place: Operation) -> Cond:
    """What is to hold for the writer to have written a row before an operation in that place runs: in the iteration of
    the loops round the writer alone that the row itself names."""
    loops = _loops_before(writer, place)
    if loops is None or any(_ends_by_data(loop) for loop in loops):
        return FALSE
    own = {loop.iterator for loop in loops}
    at: dict[str, Expr] = {}
    for entry, row in zip(write.index, rows, strict=True):
        if isinstance(entry, Sym) and entry.name in own:
            at.setdefault(entry.name, row)
    if at.keys() != own:
        return FALSE
    same: list[Cond] = []
    for entry, row in zip(write.index, rows, strict=True):
        written = substitute(entry, at)
        if not isinstance(written, Slice):
            same.append(compare("=", written, row))
            continue
        same += [compare("<=", written.start, row), compare("<", row, written.stop)]
        same.append(compare("=", (row - written.start) % written.step, Const(0)))
    return conj(*same, *(substitute(cond, at) for cond in conditions(writer)))


def _ends_by_data(loop: ForOp) -> bool:
    """Whether a loop may have fewer iterations than its range says, once it is over."""
    return loop.until is not None and (loop.gives is None or loop.upper != Sym(loop.gives))


def _loops_before(op: Operation, place: Operation) -> list[ForOp] | None:
    """The loops round an operation alone, if it stands before a place; None if it does not."""
    blocks: dict[Block, Operation] = {}
    for around in (place, *parents(place)):
        assert around.parent is not None
        blocks[around.parent] = around
    own: list[ForOp] = []
    for around in (op, *parents(op)):
        if isinstance(around, ForOp):
            own.append(around)
        if around.parent is not None and around.parent in blocks:
            return own if around.is_before_in_block(blocks[around.parent]) else None
    return None
