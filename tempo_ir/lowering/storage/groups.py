"""
Groups: buffers that can be one memory, because where one is a copy of the other it lies where the other does.

`s[0] = a; s[t] = h[t - 1]` makes one memory of `s` and `h`: row `t` of `s` lies in cell `t`, row `t` of `h` in cell
`t + 1`. Every cell holds one value, so it does not matter by which name it is read, and the copy is no work at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.ir import SSAValue

from tempo_ir.dialects.loop import SWAP, BodyOperation, BufferOperation, OutputOp
from tempo_ir.dialects.types import Tensor, shape_of, tensor
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import (
    Binary,
    Const,
    Expr,
    Index,
    Slice,
    Sym,
    compose,
    free_symbols,
    maximum,
    substitute,
)
from tempo_ir.index.rules import PROGRAM_FACTS, simplify, terms
from tempo_ir.lowering.storage.in_place import may_be_overwritten
from tempo_ir.lowering.storage.liveness import HELD, OPERAND, RESULT, CellUse
from tempo_ir.lowering.storage.uses import Use


@dataclass(frozen=True, slots=True)
class Copy:
    """A result of an operation that is what it read: `written` is a copy of `read`."""

    op: BodyOperation
    read: Use
    written: Use

    @property
    def result(self) -> tuple[BodyOperation, int]:
        """The operation, and which of its results."""
        return self.op, self.written.number


@dataclass(frozen=True)
class Member:
    """A buffer of a group; `cells` says where its rows lie, over the names of its own dims and bounds."""

    op: BufferOperation
    cells: tuple[Expr, ...]

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """The names of the dims of the buffer."""
        return self.op.buffer_type.dim_names

    @cached_property
    def _is_in_place(self) -> bool:
        """Whether row `t` lies in cell `t`."""
        return self.cells == tuple(map(Sym, self.dims))

    def at(self, index: Index) -> Index | None:
        """The cells of the rows at an index; None where they are no index."""
        if self._is_in_place:
            return index
        return compose(self.cells, self.dims, index)


@dataclass(frozen=True, eq=False)
class Group:
    """
    One memory: cells over `dims`, each a `row`; the buffers whose rows lie in it; the copies that are no work.

    The extents of a row may name dims.
    """

    dims: tuple[str, ...]
    row: Tensor
    members: Mapping[SSAValue, Member]
    copies: tuple[Copy, ...] = ()

    @staticmethod
    def of(op: BufferOperation) -> Group:
        """A buffer alone."""
        dims = op.buffer_type.dim_names
        return Group(dims, op.buffer_type.row, {op.buffer: Member(op, tuple(map(Sym, dims)))})

    @property
    def output(self) -> Member | None:
        """The buffer of the caller in which the memory must lie."""
        return next((member for member in self.members.values() if isinstance(member.op, OutputOp)), None)

    def extents(self, space: Space) -> tuple[Expr, ...]:
        """One past the greatest cell of each dim; where the caller's array has the rows, that of its own."""
        members = self.members.values() if self.output is None else (self.output,)
        return tuple(
            simplify(maximum(*(_end(member, position, space) for member in members)), PROGRAM_FACTS)
            for position in range(len(self.dims))
        )


def _end(member: Member, position: int, space: Space) -> Expr:
    """One past the greatest cell of a dim that a member has."""
    dims = {dim.name: space.bound(dim.name) if dim.extent is None else dim.extent for dim in member.op.buffer_type.dims}
    return substitute(member.cells[position], {name: extent - 1 for name, extent in dims.items()}) + 1


@dataclass
class Cells:
    """The uses of buffers, and those of groups by cell as they were found."""

    uses: Mapping[SSAValue, Sequence[Use]]
    known: dict[Group, tuple[CellUse, ...] | None] = field(default_factory=dict[Group, "tuple[CellUse, ...] | None"])

    def of(self, group: Group) -> tuple[CellUse, ...] | None:
        """What reads and writes the memory, without the copies that are no work; None where a use has no index."""
        if group not in self.known:
            self.known[group] = self._found(group)
        return self.known[group]

    def _found(self, group: Group) -> tuple[CellUse, ...] | None:
        copied = {copy.result for copy in group.copies}
        found: list[CellUse] = []
        for buffer, member in group.members.items():
            for use in self.uses.get(buffer, ()):
                if _is_copy(use, copied):
                    continue
                cells = member.at(use.index)
                if cells is None:
                    return None
                found.append(CellUse(use, cells, RESULT if use.writes else self._read_moment(use, group)))
        return tuple(sorted(found, key=lambda use: use.use.order[-1]))

    @staticmethod
    def _read_moment(use: Use, group: Group) -> int:
        op = use.op
        if not isinstance(op, BodyOperation) or not any(buffer in group.members for buffer in op.outs):
            return OPERAND
        return OPERAND if may_be_overwritten(use) else HELD


def _is_copy(use: Use, copied: set[tuple[BodyOperation, int]]) -> bool:
    """Whether a use is the read or the write of a copy that is no work."""
    op = use.op
    if not isinstance(op, BodyOperation) or not copied:
        return False
    if use.writes:
        return (op, use.number) in copied
    argument = op.body.block.args[use.number]
    readers = [(inner.operation, inner.index) for inner in argument.uses]
    return all(reader is op.body.block.last_op and (op, index) in copied for reader, index in readers)


def merged(copy: Copy, source: Group, target: Group) -> Group | None:
    """
    One group of two, in which the copy is no work, or the group with one more such copy; None where cells do not fit.

    The group of fewer dims is moved into the other one: each of its dims is shifted by a number along a dim of the
    other, whose remaining dims have one value.
    """
    read = source.members[copy.read.buffer].at(copy.read.index)
    written = target.members[copy.written.buffer].at(copy.written.index)
    if read is None or written is None:
        return None
    points_read, points_written = points_of(read), points_of(written)
    if len(points_read) != len(read) or len(points_written) != len(written):
        return None
    if source is not target and source.output is not None and target.output is not None:
        return None
    alignment = _Alignment.of(copy)
    sides = (source, points_read), (target, points_written)
    for (blocks, there), (row, here) in (sides, sides[::-1]):
        moves = blocks_side_by_side(blocks.dims, alignment.pinned(there), alignment.pinned(here))
        if blocks is not row and moves is not None:
            return _joined(row, blocks, moves, copy)
    if source is target:
        same = alignment.pinned(points_read) == alignment.pinned(points_written)
        return Group(source.dims, source.row, source.members, (*source.copies, copy)) if same else None
    into, moved, start, goal = source, target, points_written, points_read
    if len(source.dims) < len(target.dims):
        into, moved, start, goal = target, source, points_read, points_written
    if len(moved.dims) < len(into.dims) and any(SWAP in member.op.attributes for member in moved.members.values()):
        return None  # rows that wait with the host are written once each, not at every point of another dim
    moves = alignment.moves(moved.dims, start, into.dims, goal)
    return None if moves is None else _joined(into, moved, moves, copy)


def blocks_side_by_side(dims: Sequence[str], blocks: Sequence[Expr], row: Sequence[Expr]) -> tuple[Expr, ...] | None:
    """
    Where cells over `dims`, in blocks, lie in one row of them, if a copy between `blocks` and `row` makes that; None if
    it does not: by a copy between `%x[t floordiv 8, t mod 8]` and `%g[t]`, or `%x[b, j]` and `%g[8 * b + j]`, cell
    `(b, j)` lies at `8 * b + j`.
    """
    if len(blocks) != len(row) + 1:
        return None
    for position, entry in enumerate(row):
        outside = (*blocks[:position], *blocks[position + 2 :]), (*row[:position], *row[position + 1 :])
        placed = _steps_and_shift(blocks[position], blocks[position + 1], entry)
        if placed is not None and outside[0] == outside[1]:
            steps, shift = placed
            cell = Sym(dims[position]) * steps + Sym(dims[position + 1]) + shift
            return (*map(Sym, dims[:position]), cell, *map(Sym, dims[position + 2 :]))
    return None


def _steps_and_shift(block: Expr, step: Expr, cell: Expr) -> tuple[int, int] | None:
    """The steps of a block, and the first cell of all, if a cell is the one of a step of a block."""
    match block, step:
        case Binary("//", whole, Const(size)), Binary("%", other, Const(steps)):
            return (size, 0) if size == steps and whole == other == cell else None
        case Sym(), _:
            size = terms(cell).get((block,), 0)
            shift = simplify(cell - block * size - step, PROGRAM_FACTS)
            return (size, shift.value) if size > 1 and isinstance(shift, Const) else None
        case _:
            return None


def points_of(index: Index) -> tuple[Expr, ...]:
    """The entries of an index that are points."""
    return tuple(entry for entry in index if not isinstance(entry, Slice))


def _joined(into: Group, moved: Group, moves: tuple[Expr, ...], copy: Copy) -> Group | None:
    """`into` with the members of `moved`, whose cells move to `moves`; None where rows of one cell differ in shape."""
    if _row_at(into.row, dict(zip(into.dims, moves, strict=True))) != moved.row:
        return None
    members = dict(into.members)
    for buffer, member in moved.members.items():
        inside = dict(zip(moved.dims, member.cells, strict=True))
        members[buffer] = Member(member.op, tuple(substitute(move, inside) for move in moves))
    return _counted(Group(into.dims, into.row, members, (*into.copies, *moved.copies, copy)))


def _counted(group: Group) -> Group:
    """The group with its cells counted as the rows of the caller's array in it are, if any; else the least is 0."""
    output = group.output
    below = [
        min((0, *_shifts(group.members.values(), position))) if output is None else next(_shifts([output], position), 0)
        for position in range(len(group.dims))
    ]
    if not any(below):
        return group
    members = {
        buffer: Member(member.op, tuple(cell - low for cell, low in zip(member.cells, below, strict=True)))
        for buffer, member in group.members.items()
    }
    lifted = {dim: Sym(dim) + low for dim, low in zip(group.dims, below, strict=True)}
    return Group(group.dims, _row_at(group.row, lifted), members, group.copies)


def _shifts(members: Iterable[Member], position: int) -> Iterator[int]:
    """By how much the rows of each member are shifted along a dim that it has."""
    for member in members:
        cell = member.cells[position]
        if free_symbols(cell) & set(member.dims):
            yield terms(cell).get((), 0)


def _row_at(row: Tensor, bindings: Mapping[str, Expr]) -> Tensor:
    """A row type with the names in its extents replaced."""
    extents = [extent if isinstance(extent, int) else substitute(extent, bindings) for extent in shape_of(row)]
    return tensor(row.element_type, extents)


@dataclass(frozen=True, slots=True)
class _Alignment:
    """What is known where a copy runs: the iterators, and the values of those that have one only."""

    iterators: frozenset[str]
    values: Mapping[str, Expr]

    @staticmethod
    def of(copy: Copy) -> _Alignment:
        frame = copy.written.frame
        iterators = frozenset(frame.iterators)
        return _Alignment(iterators, frame.only_values())

    def pinned(self, points: Sequence[Expr]) -> tuple[Expr, ...]:
        """The points with the iterators that have one value replaced by it."""
        return tuple(substitute(point, self.values) for point in points)

    def moves(
        self, dims: Sequence[str], start: Sequence[Expr], into: Sequence[str], goal: Sequence[Expr]
    ) -> tuple[Expr, ...] | None:
        """
        Where cells over `dims` go, if `start` goes to `goal`; None if no shift does that.

        Each dim is used once, in order, so that no two cells go to one, and slices stay in order.
        """
        moves: dict[int, Expr] = {}
        position = 0
        for number, dim in enumerate(dims):
            choices = range(position, len(goal) - (len(dims) - number - 1))
            found = self._target(dim, start[number], [(choice, into[choice], goal[choice]) for choice in choices])
            if found is None:
                return None
            target, distance = found
            moves[target] = Sym(dim) + distance
            position = target + 1
        for target, value in enumerate(self.pinned(goal)):
            if target not in moves and free_symbols(value) & self.iterators:
                return None
            moves.setdefault(target, value)
        return tuple(moves[target] for target in range(len(goal)))

    def _target(self, dim: str, start: Expr, choices: Sequence[tuple[int, str, Expr]]) -> tuple[int, int] | None:
        """The dim along which a dim lies, and the shift: where the same iterator stands in both, else by name."""
        for target, _, goal in choices:
            distance = goal - start
            if free_symbols(start) & self.iterators and isinstance(distance, Const):
                return target, distance.value
        for target, name, goal in choices:
            here, there = self.pinned((start, goal))
            distance = there - here
            if name == dim and isinstance(distance, Const):
                return target, distance.value
        return None
