"""How each memory of a program keeps its rows: which buffers it holds, and how many rows of each dim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from math import prod

from xdsl.ir import SSAValue

from tempo_ir.dialects.loop import AllocOp, BodyOperation, BufferDim, FreeOp, OutputOp, ProgramOp
from tempo_ir.dialects.loop.ending import Unknown
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import Const, Expr, Index, Slice, Sym, compare, free_symbols
from tempo_ir.index.isl import NotAffine, prove
from tempo_ir.lowering.storage.groups import Cells, Copy, Group, Member, blocks_side_by_side, merged, points_of
from tempo_ir.lowering.storage.liveness import RESULT, CellUse, Liveness, Question
from tempo_ir.lowering.storage.starts import Start, possible_starts
from tempo_ir.lowering.storage.uses import Numbers, Use, copied_argument, program_uses
from tempo_ir.passes.remarks import remark

SPARED = 64
"""A ring spares more than one row of so many: one of nearly as many slots as there are rows only hides that these lie
one after the other."""
MOST_DIMS_PERMUTED = 3
"""Up to so many dims all orders are tried in which a window of one is taken for given rows of the others."""


@dataclass(frozen=True)
class Planned:
    """A memory and how it keeps its rows: per dim of the group a `BufferDim`, None for a dim with one slot."""

    group: Group
    uses: tuple[CellUse, ...]
    dims: tuple[BufferDim | None, ...]
    starts: tuple[Start, ...] = ()

    @property
    def stored(self) -> tuple[BufferDim, ...]:
        """The dims that have more than a slot."""
        return tuple(dim for dim in self.dims if dim is not None)

    @cached_property
    def question(self) -> Question:
        """The uses, for who asks of them."""
        return Question(self.uses, len(self.group.dims))

    def index(self, cells: Index) -> Index:
        """The entries of the dims that have more than a slot."""
        return tuple(entry for entry, dim in zip(cells, self.dims, strict=True) if dim is not None)


def starts_of(plan: Sequence[Planned]) -> list[Start]:
    """The starts of all memories, in the order in which those of one place stand: of outputs last, since an output may
    lie in an array of the caller that another memory begins with."""
    ordered = sorted(plan, key=lambda planned: planned.group.output is not None)
    return [start for planned in ordered for start in planned.starts]


@dataclass(frozen=True, slots=True)
class _Shape:
    """How many rows of each dim live at once: None where no number says."""

    windows: tuple[int | None, ...]

    @property
    def unbounded(self) -> int:
        """How many dims keep all rows."""
        return sum(window is None for window in self.windows)

    @property
    def slots(self) -> int:
        """Slots per row of the dims that keep all."""
        return prod(window for window in self.windows if window is not None)


@dataclass
class Planner:
    """Plans one program. Every buffer that is planned is in a group, at first alone; `only` names those to plan, if
    not all."""

    program: ProgramOp
    liveness: Liveness
    cells: Cells
    numbers: Numbers
    groups: dict[SSAValue, Group] = field(default_factory=dict[SSAValue, Group])
    only: Sequence[SSAValue] | None = None

    @staticmethod
    def of(program: ProgramOp, only: Sequence[SSAValue] | None = None) -> Planner:
        """A planner of a program whose buffers keep every row, or those do that it is to plan."""
        uses, numbers = program_uses(program)
        return Planner(program, Liveness(program.space), Cells(uses), numbers, only=only)

    @property
    def space(self) -> Space:
        """The dims and bounds of the program."""
        return self.program.space

    @cached_property
    def unknown(self) -> Unknown:
        """The bound that data decides, where it is not known yet."""
        return Unknown.of(self.program)

    def plan(self) -> list[Planned]:
        """The memories of the program that are not the caller's alone, in program order."""
        for op in self.program.body.block.ops:
            if isinstance(op, AllocOp | OutputOp) and (group := self._alone(op)) is not None:
                self.groups[op.results[0]] = group
        copies = list(self._copies())
        into: dict[SSAValue, list[Copy]] = {}
        for copy in copies:
            into.setdefault(copy.written.buffer, []).append(copy)
        for copy in sorted(copies, key=self._rank):
            if copy not in self.groups[copy.read.buffer].copies:
                self._merge(copy, into[copy.written.buffer])
        return [planned for group in dict.fromkeys(self.groups.values()) for planned in self._planned(group)]

    def _alone(self, op: AllocOp | OutputOp) -> Group | None:
        """The group of a buffer that is used and keeps every row, each written once; None of one that is planned
        already."""
        buffer = op.results[0]
        if self.only is not None and buffer not in self.only:
            return None
        if buffer not in self.cells.uses or any(dim.storage != "full" for dim in op.buffer_type.dims):
            return None
        if any(isinstance(use.operation, FreeOp) for use in buffer.uses):
            return None
        group = Group.of(op)
        uses = self.cells.of(group) or ()
        writes = [use for use in uses if use.use.writes]
        try:
            once = bool(writes) and self.liveness.written_once(writes)
        except NotAffine:
            once = False
        if not once:
            remark(op, "every row is kept: it is not proved that each is written once")
        return group if once else None

    # -- copies

    def _copies(self) -> Iterator[Copy]:
        for use in [use for uses in self.cells.uses.values() for use in uses if use.writes]:
            argument = copied_argument(use)
            if argument is None:
                continue
            assert isinstance(use.op, BodyOperation)
            read = next(other for other in self._reads(use.op) if other.number == argument)
            if read.buffer in self.groups and use.buffer in self.groups and not read.slices:
                yield Copy(use.op, read, use)

    def _reads(self, op: BodyOperation) -> Iterator[Use]:
        for buffer in op.ins:
            yield from (use for use in self.cells.uses[buffer] if use.op is op and not use.writes)

    def _rank(self, copy: Copy) -> int:
        """The order of copies: first those that put blocks of rows into one row of them, which others would move, last
        those of other outputs, since the caller's array has no room for more."""
        source = self.groups[copy.read.buffer]
        read, written = points_of(copy.read.index), points_of(copy.written.index)
        if blocks_side_by_side(source.dims, read, written) is not None:
            return 0
        return 2 if any(isinstance(use.buffer.owner, OutputOp) for use in (copy.read, copy.written)) else 1

    def _merge(self, copy: Copy, cases: Sequence[Copy]) -> None:
        """Make one memory of both sides of a copy where that is right and needs no more room; other `cases` in which
        the same is written may be no work then either."""
        source, target = self.groups[copy.read.buffer], self.groups[copy.written.buffer]
        group = merged(copy, source, target)
        if group is not None and source is not target:
            group = _with_cases(group, [case for case in cases if case is not copy])
        refusal = "their rows do not lie side by side" if group is None else self._refusal(group, source, target)
        if refusal is not None:
            remark(copy.op, f"the copy stays: {refusal}")
            return
        assert group is not None
        for buffer in group.members:
            self.groups[buffer] = group

    def _refusal(self, group: Group, source: Group, target: Group) -> str | None:
        """Why a group should not be; None if it should."""
        uses = self.cells.of(group)
        if uses is None:
            return "a slice would read rows that do not lie side by side"
        if source is target:
            return None
        if any(self.unknown.at(use.use.op, free_symbols(use.cells)) for use in uses):
            return f"where a row lies is not known before the loop that gives {self.unknown.bound} is done"
        here = [[use for use in uses if use.use.writes and use.use.buffer in side.members] for side in (source, target)]
        if any(not self.liveness.are_disjoint(left, right) for left in here[0] for right in here[1]):
            return "a row of one memory would have two values"
        shape = self._shape(group)
        before = [self._shape(side) for side in (source, target)]
        if shape is None:
            return "the rows do not fit into the array of the caller"
        if not _fits(shape, [side for side in before if side is not None]):
            return "one memory would keep more rows than two"
        if not self._has_rows(group, shape, uses):
            return "a row is written also where the memory has none"
        return None

    def _has_rows(self, group: Group, shape: _Shape, uses: Sequence[CellUse]) -> bool:
        """Whether rows at a fixed cell, such as `T - 1` of a value over no dim, are there for all bounds."""
        extents = group.extents(self.space)
        return all(
            self.liveness.lies_within(use, position, extents[position])
            for use in uses
            for position, window in enumerate(shape.windows)
            if use.use.writes
            and (window != 1 or _is_sliced(uses, position))
            and not free_symbols(use.cells[position]) & set(use.frame.iterators)
        )

    # -- shapes

    def _shape(self, group: Group, uses: tuple[CellUse, ...] | None = None) -> _Shape | None:
        """How many rows live at once; None where the caller's array has no room for them."""
        uses = self.cells.of(group) if uses is None else uses
        assert uses is not None
        output = group.output
        try:
            if output is None:
                return self._best_shape(Question(uses, len(group.dims)), len(group.dims))
            return self._shape_in_output(group, output, uses)
        except NotAffine:
            return None if output is not None else _Shape((None,) * len(group.dims))

    def _best_shape(self, question: Question, rank: int) -> _Shape:
        first = _Shape(self.liveness.windows(question, range(rank)))
        if sum(window != 1 for window in first.windows) <= 1 or rank > MOST_DIMS_PERMUTED:
            return first
        shapes = [_Shape(self.liveness.windows(question, order)) for order in permutations(range(rank))]
        return min(shapes, key=lambda shape: (shape.unbounded, shape.slots))

    def _shape_in_output(self, group: Group, output: Member, uses: Sequence[CellUse]) -> _Shape | None:
        own = [position for position, cell in enumerate(output.cells) if free_symbols(cell) & set(output.dims)]
        if tuple(output.cells[position] for position in own) != tuple(map(Sym, output.dims)):
            return None
        for position, dim in zip(own, output.op.buffer_type.dims, strict=True):
            extent = self.space.bound(dim.name) if dim.extent is None else dim.extent
            if not all(self.liveness.lies_within(use, position, extent) for use in uses if use.use.writes):
                return None
        if not self._shows_no_more(output, own, uses):
            return None
        others = [position for position in range(len(group.dims)) if position not in own]
        question = Question(tuple(uses), len(group.dims), (_rows(output, self.space),))
        windows = self.liveness.windows(question, [*own, *others])
        if any(windows[position] != 1 or _is_sliced(uses, position) for position in others):
            return None
        return _Shape(tuple(None if position in own else 1 for position in range(len(group.dims))))

    def _shows_no_more(self, output: Member, own: Sequence[int], uses: Sequence[CellUse]) -> bool:
        """Whether the caller finds nothing in rows that the program leaves out, which are zero."""
        kept = [CellUse(use, use.index, RESULT) for use in self.cells.uses[output.op.buffer] if use.writes]
        written = [use for use in uses if use.use.writes]
        rows = [CellUse(use.use, tuple(use.cells[position] for position in own), RESULT) for use in written]
        return self.liveness.are_among(rows, kept)

    def _planned(self, group: Group) -> Iterator[Planned]:
        uses, shape = self.cells.of(group), self._shape(group)
        if uses is None or shape is None:
            return
        uses, starts = self._started(group, uses, shape)
        extents = group.extents(self.space)
        dims = tuple(
            self._dim(group, position, window, extents[position], uses) for position, window in enumerate(shape.windows)
        )
        yield Planned(group, uses, dims, starts)

    def _started(
        self, group: Group, uses: tuple[CellUse, ...], shape: _Shape
    ) -> tuple[tuple[CellUse, ...], tuple[Start, ...]]:
        """The uses with first values written before the loops where nothing is in their way."""
        starts: list[Start] = []
        for start in possible_starts(uses, self.numbers, self.space):
            moved = (start.use, *(use for use in uses if use.use.op not in start.replaced))
            there = len(moved) == len(uses) + 1 - len(start.replaced)
            known = not self.unknown.at(start.anchor, free_symbols(start.use.cells), free_symbols(start.guard))
            if (
                there
                and known
                and self._has_room(group, start.use, shape, uses)
                and self._may_start(group, moved, shape)
            ):
                uses = moved
                starts.append(start)
            else:
                start.op.erase()
        return uses, tuple(starts)

    def _may_start(self, group: Group, uses: tuple[CellUse, ...], shape: _Shape) -> bool:
        """Whether each row is still written once, and no more rows live at once."""
        try:
            once = self.liveness.written_once([use for use in uses if use.use.writes])
        except NotAffine:
            return False
        return once and self._shape(group, uses) == shape

    def _has_room(self, group: Group, use: CellUse, shape: _Shape, uses: Sequence[CellUse]) -> bool:
        """Whether the rows of a use are there even if the loops do not run; a ring too has none before the first."""
        extents = group.extents(self.space)
        stored = [n for n, window in enumerate(shape.windows) if window != 1 or _is_sliced(uses, n)]
        return all(self.liveness.lies_within(use, position, extents[position]) for position in stored)

    def _dim(
        self, group: Group, position: int, window: int | None, extent: Expr, uses: Sequence[CellUse]
    ) -> BufferDim | None:
        name = group.dims[position]
        declared = dict(self.space.dims).get(name)
        if window == 1 and not _is_sliced(uses, position):
            return None
        if window is not None and not prove(compare("<=", extent, window + window // SPARED), self.space):
            room = self._room(extent, declared)
            return BufferDim(name, "ring", None if room == declared else room, slots=window)
        storage = "growing" if group.output is None and _grows(uses, position) else "full"
        return BufferDim(name, storage, None if extent == declared else extent)

    def _room(self, extent: Expr, declared: Expr | None) -> Expr:
        """How many rows a ring has at most, said simply: as many as the program declares, or one more."""
        for simple in () if declared is None else (declared, declared + 1):
            if prove(compare("<=", extent, simple), self.space):
                return simple
        return extent


def _with_cases(group: Group, cases: Sequence[Copy]) -> Group:
    """A group with those copies that are no work in it either."""
    for case in cases:
        if case.read.buffer in group.members:
            group = merged(case, group, group) or group
    return group


def _fits(shape: _Shape, parts: Sequence[_Shape]) -> bool:
    """Whether one memory needs no more room than several."""
    most = max((part.unbounded for part in parts), default=0)
    if shape.unbounded != most:
        return shape.unbounded < most
    return shape.slots <= sum(part.slots for part in parts if part.unbounded == most)


def _rows(output: Member, space: Space) -> Index:
    """The cells of the array of the caller."""
    bounds: Mapping[str, Expr] = {
        dim.name: space.bound(dim.name) if dim.extent is None else dim.extent for dim in output.op.buffer_type.dims
    }
    return tuple(
        Slice(Const(0), bounds[cell.name]) if isinstance(cell, Sym) and cell.name in bounds else cell
        for cell in output.cells
    )


def _is_sliced(uses: Sequence[CellUse], position: int) -> bool:
    """Whether an access has an axis for a dim, which it keeps if the dim has one slot."""
    return any(isinstance(use.cells[position], Slice) for use in uses)


def _grows(uses: Sequence[CellUse], position: int) -> bool:
    """Whether rows are written upwards and some reader takes a prefix of them that varies: `0:t + 1`."""
    for use in uses:
        names = free_symbols(use.cells[position])
        if use.use.writes and any(loop.down and loop.iterator in names for loop in use.frame.loops):
            return False
    return any(_is_prefix(use, position) for use in uses if not use.use.writes)


def _is_prefix(use: CellUse, position: int) -> bool:
    entry = use.cells[position]
    if not isinstance(entry, Slice) or entry.start != Const(0) or entry.step != 1:
        return False
    return bool(free_symbols(entry.stop) & set(use.frame.iterators))
