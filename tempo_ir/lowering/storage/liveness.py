# pyright: basic
"""
Which rows of a memory live together, by isl: relations between rows and the times at which they are written and read.

A time is a vector that orders all operations: the number of the outermost loop, its iteration, the number of the loop
or operation inside, and so on (Feautrier 1992). A row lives from its write to its last read; the distance of two rows
that live together bounds how many slots a dim needs (Lefebvre and Feautrier 1998, "successive modulo").

Numbers are counted anew in each question and questions are remembered, so that equal layers ask once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import TypeVar, cast

from tempo_ir.dialects.loop import ForOp
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import Cond, Const, Expr, Index, Slice, Sym, conj, free_symbols
from tempo_ir.index.inverse import inverse
from tempo_ir.index.isl import (
    DIM,
    Inexact,
    Map,
    Set,
    Writer,
    coalesced,
    encode,
    entry_text,
    params_set,
    read_map,
    read_set,
    tuple_text,
)
from tempo_ir.index.limits import TooLarge, limited
from tempo_ir.lowering.storage.uses import Frame, Use, iterations

Answer = TypeVar("Answer")

MOST_OPERATIONS = 4_000_000
"""Elementary operations of isl in one question, about a second; that is eight times what the examples need."""
OPERAND, RESULT, HELD = 0, 1, 2
"""When within an operation a row is accessed: read before the results are written, written, read until after them."""


@dataclass(frozen=True, slots=True)
class CellUse:
    """A use of the rows at `cells` of a memory. `moment` orders it among the uses by the same operation."""

    use: Use
    cells: Index
    moment: int

    @property
    def frame(self) -> Frame:
        """The loops and guards round it."""
        return self.use.frame

    def signature(self, ranks: Mapping[int, int]) -> Hashable:
        """All that answers depend on."""
        order = tuple([ranks[number] for number in self.use.order])
        return self.use.frame.pattern, self.cells, self.use.writes, self.moment, order


@dataclass(frozen=True)
class Question:
    """The uses of one memory of `rank` dims; the cells of `kept`, boxes over the bounds, are read after the program."""

    uses: tuple[CellUse, ...]
    rank: int
    kept: tuple[Index, ...] = ()

    @cached_property
    def ranks(self) -> dict[int, int]:
        """The numbers of operations and loops, counted anew."""
        numbers = sorted({number for use in self.uses for number in use.use.order})
        return {number: rank for rank, number in enumerate(numbers)}

    @cached_property
    def key(self) -> Hashable:
        """Questions of equal keys have equal answers."""
        ranks = self.ranks
        return self.rank, self.kept, tuple([use.signature(ranks) for use in self.uses])

    @cached_property
    def common_loops(self) -> tuple[ForOp, ...]:
        """The loops round all uses, outermost first."""
        first, *others = (use.frame.loops for use in self.uses)
        count = len(first)
        for loops in others:
            equal = [left is right for left, right in zip(first, loops, strict=False)]
            count = min(count, equal.index(False) if False in equal else len(equal))
        return first[:count]


@dataclass
class Liveness:
    """Answers questions about one program."""

    space: Space
    answers: dict[Hashable, object] = field(default_factory=dict)

    def windows(self, question: Question, order: Sequence[int]) -> tuple[int | None, ...]:
        """
        How many consecutive rows of each dim live at once, dims taken in `order`; None where no number bounds them.

        Raises NotAffine.
        """
        return self._asked(("windows", tuple(order), question.key), lambda: self._windows(question, order))

    def private_loops(self, question: Question) -> int:
        """How many of the common loops, outermost first, have iterations that read only what they wrote themselves."""
        return self._asked(("private", question.key), lambda: self._private_loops(question))

    def written_once(self, uses: Sequence[CellUse]) -> bool:
        """Whether no two writes are of the same cell."""
        return all(
            self._writes_once(use) and all(self.are_disjoint(use, other) for other in uses[:number])
            for number, use in enumerate(uses)
        )

    def are_disjoint(self, left: CellUse, right: CellUse) -> bool:
        """Whether two uses touch no common cell."""
        key = ("disjoint", *((use.frame.pattern, use.cells) for use in (left, right)))
        return self._asked(key, lambda: self._cells(left).is_disjoint(self._cells(right)))

    def lies_within(self, use: CellUse, position: int, extent: Expr) -> bool:
        """Whether the cells of a use are in `[0, extent)` of a dim."""
        key = ("within", use.frame.pattern, use.cells, position, extent)
        return self._asked(key, lambda: self._lies_within(use, position, extent))

    def are_among(self, inner: Sequence[CellUse], outer: Sequence[CellUse]) -> bool:
        """Whether the uses of `outer` touch all cells that those of `inner` touch."""
        keys = [tuple((use.frame.pattern, use.cells) for use in uses) for uses in (inner, outer)]
        if set(keys[0]) <= set(keys[1]):
            return True
        return self._asked(("among", *keys), lambda: self._all_cells(inner).is_subset(self._all_cells(outer)))

    def last_reads(self, question: Question, number: int) -> list[tuple[Cond, Index]]:
        """
        The cells that are read no more after a use, in pieces: a guard over the iterators, and an index.

        What is only known to be read no more because a loop ends there is left out. Where the cells are no such pieces,
        or only after much work, none is found. Raises NotAffine.
        """
        key = ("last", number, question.key)
        return self._asked(key, lambda: self._exact_last_reads(question, number))

    def comes_before(self, earlier: Sequence[CellUse], later: Sequence[CellUse]) -> bool:
        """Whether no use of `later` runs before one of `earlier`; of one operation reads run before writes."""
        question = Question((*earlier, *later), 0)
        key = ("before", len(earlier), question.key)
        return self._asked(key, lambda: self._comes_before(question, len(earlier)))

    def _asked(self, key: Hashable, compute: Callable[[], Answer]) -> Answer:
        if key not in self.answers:
            self.answers[key] = compute()
        return cast("Answer", self.answers[key])

    # -- answers

    def _windows(self, question: Question, order: Sequence[int]) -> tuple[int | None, ...]:
        if _lives_in_one_iteration(question):
            return (1,) * question.rank
        distances = self._asked(("distances", question.key), lambda: self._distances(question))
        if distances is None:
            return (None,) * question.rank
        found: list[int | None] = [1] * question.rank
        for position in order:
            if distances.is_empty():
                break
            greatest = distances.dim_max_val(position)
            found[position] = greatest.to_python() + 1 if greatest.is_int() else None
            distances = distances.fix_val(DIM.set, position, 0)
        return tuple(found)

    def _distances(self, question: Question) -> Set | None:
        """
        The distances of rows of which one is written while the other lives, for all bounds together.

        None where that is too much to ask, so that every row is kept.
        """
        try:
            with limited(MOST_OPERATIONS):
                writes, reads = self._times(question)
                read_after, written_before = coalesced(reads.lex_gt_map(writes)), coalesced(writes.lex_le_map(writes))
                distances = read_after.intersect(written_before).intersect_params(params_set(self.space)).deltas()
                return coalesced(distances.union(distances.neg()).project_out(DIM.param, 0, distances.dim(DIM.param)))
        except TooLarge:
            return None

    def _private_loops(self, question: Question) -> int:
        common = question.common_loops
        if _lives_in_one_iteration(question):
            return len(common)
        try:
            with limited(MOST_OPERATIONS):
                writes, reads = self._times(question)
                passed = writes.reverse().apply_range(reads).intersect_params(params_set(self.space)).deltas()
        except TooLarge:
            return 0
        if passed.is_empty():
            return len(common)
        for number in range(len(common)):
            position = 2 * number + 1
            least, greatest = passed.dim_min_val(position), passed.dim_max_val(position)
            if not (least.is_zero() and greatest.is_zero()):
                return number
        return len(common)

    def _writes_once(self, use: CellUse) -> bool:
        if set(use.frame.iterators) <= _shifted_names(use.cells):
            return True
        key = ("once", use.frame.pattern, use.cells)
        return self._asked(key, lambda: self._relation(use, [Sym(n) for n in use.frame.iterators]).is_single_valued())

    def _lies_within(self, use: CellUse, position: int, extent: Expr) -> bool:
        outer = Writer((), self.space.params)
        names = [f"c{number}'" for number in range(len(use.cells))]
        body = f"{tuple_text('', names)} : 0 <= {names[position]} < {outer.expr(extent)}"
        return self._cells(use).is_subset(read_set(outer.declared(body)))

    def _exact_last_reads(self, question: Question, number: int) -> list[tuple[Cond, Index]]:
        try:
            with limited():
                return self._last_reads(question, number)
        except Inexact:
            return []

    def _last_reads(self, question: Question, number: int) -> list[tuple[Cond, Index]]:
        use = question.uses[number]
        writes, reads = self._times(question, use.frame.loops[-1] if use.frame.loops else None)
        ranks, length = question.ranks, self._length(question)
        here = self._use_times(use, ranks, length, None).intersect_params(params_set(self.space))
        for other in question.uses[:number]:
            if other.use.op is use.use.op:  # one operation may read a row twice, as %h[t] and %h[T - t - 1]
                here = here.subtract(self._use_times(other, ranks, length, None))
        earlier = reads.union(writes).apply_range(Map.lex_gt(here.range().get_space()))
        times = self._iteration_times(use, ranks, length)
        freed = here.subtract(earlier).apply_range(times.reverse())
        freed = freed.intersect(self._relation(use, [Sym(name) for name in use.frame.iterators]))
        within = self._iterations(use)
        return inverse(_named(freed, use.frame.iterators), within)

    def _comes_before(self, question: Question, count: int) -> bool:
        ranks, length = question.ranks, self._length(question)
        maps = [self._use_times(use, ranks, length, None) for use in question.uses]
        earlier, later = _union(maps[:count]), _union(maps[count:])
        wrong = earlier.lex_gt_map(later).intersect_params(params_set(self.space))
        return wrong.is_empty()

    # -- relations

    def _times(self, question: Question, endless: ForOp | None = None) -> tuple[Map, Map]:
        """From cells to the times at which they are written, and read. The loop `endless` has no last iteration."""
        ranks, length = question.ranks, self._length(question)
        maps = [(use.use.writes, self._use_times(use, ranks, length, endless)) for use in question.uses]
        reads = [relation for writes, relation in maps if not writes]
        reads += [self._after(kept, len(ranks), length) for kept in question.kept]
        writes = _union([relation for writes, relation in maps if writes])
        return writes, _union(reads) if reads else writes

    @staticmethod
    def _length(question: Question) -> int:
        return max(2 * len(use.use.order) for use in question.uses)

    def _use_times(self, use: CellUse, ranks: Mapping[int, int], length: int, endless: ForOp | None) -> Map:
        return self._relation(use, self._time(use, ranks, length), endless)

    def _iteration_times(self, use: CellUse, ranks: Mapping[int, int], length: int) -> Map:
        writer = Writer(use.frame.iterators, self.space.params)
        source = [encode(name) for name in use.frame.iterators]
        target = [writer.expr(value) for value in self._time(use, ranks, length)]
        return read_map(writer.declared(f"{tuple_text('', source)} -> {tuple_text('', target)}"))

    @staticmethod
    def _time(use: CellUse, ranks: Mapping[int, int], length: int) -> tuple[Expr, ...]:
        """The number of each loop and its iteration, then the operation and the moment; padded."""
        time: list[Expr] = []
        for number, loop in zip(use.use.order, use.frame.loops, strict=False):
            iterator = Sym(loop.iterator)
            time += [Const(ranks[number]), -iterator if loop.down else iterator]
        time += [Const(ranks[use.use.order[-1]]), Const(use.moment)]
        return (*time, *[Const(0)] * (length - len(time)))

    def _relation(self, use: CellUse, values: Sequence[Expr], endless: ForOp | None = None) -> Map:
        """From each cell that a use touches to `values` at the iterations in which it does."""
        without = next((number for number, loop in enumerate(use.frame.loops) if loop is endless), None)
        key = ("relation", use.frame.pattern, use.cells, tuple(values), without)
        return self._asked(key, lambda: self._written_out(use, values, endless))

    def _written_out(self, use: CellUse, values: Sequence[Expr], endless: ForOp | None) -> Map:
        iterators = use.frame.iterators
        writer = Writer(iterators, self.space.params)
        cells = [f"c{number}'" for number in range(len(use.cells))]
        outputs = [f"z{number}'" for number in range(len(values))]
        held = [writer.cond(_condition(use.frame, endless))]
        held += [entry_text(writer, entry, cell) for entry, cell in zip(use.cells, cells, strict=True)]
        held += [f"{output} = {writer.expr(value)}" for output, value in zip(outputs, values, strict=True)]
        held.append(writer.natural())
        inside = " and ".join(f"({part})" for part in held)
        if iterators:
            inside = f"exists ({', '.join(encode(name) for name in iterators)} : {inside})"
        return read_map(writer.declared(f"{tuple_text('', cells)} -> {tuple_text('', outputs)} : {inside}"))

    def _cells(self, use: CellUse) -> Set:
        return self._relation(use, ()).domain().intersect_params(params_set(self.space))

    def _all_cells(self, uses: Sequence[CellUse]) -> Set:
        first, *others = [self._cells(use) for use in uses]
        return reduce(Set.union, others, first)

    def _iterations(self, use: CellUse) -> Set:
        writer = Writer(use.frame.iterators, self.space.params)
        held = writer.cond(use.frame.condition())
        names = [encode(name) for name in use.frame.iterators]
        points = read_set(writer.declared(f"{tuple_text('', names)} : {held} and {writer.natural()}"))
        return points.intersect_params(params_set(self.space))

    def _after(self, kept: Index, last: int, length: int) -> Map:
        """The cells of a box, read after the last operation."""
        writer = Writer((), self.space.params)
        cells = [f"c{number}'" for number in range(len(kept))]
        held = [entry_text(writer, entry, cell) for entry, cell in zip(kept, cells, strict=True)]
        time = [str(last), *["0"] * (length - 1)]
        body = f"{tuple_text('', cells)} -> {tuple_text('', time)} : {' and '.join([*held, writer.natural()])}"
        return read_map(writer.declared(body))


def _condition(frame: Frame, endless: ForOp | None) -> Cond:
    """What holds in an iteration, without the end of the `endless` loop."""
    held = []
    for loop in frame.loops:
        first, second, *others = iterations(loop)
        ends = (second, first) if not loop.down else (first, second)
        held += [*([ends[0]] if loop is not endless else []), ends[1], *others]
    return conj(*held, frame.guard)


def _named(relation: Map, iterators: Sequence[str]) -> Map:
    for position, name in enumerate(iterators):
        relation = relation.set_dim_name(DIM.out, position, encode(name))
    return relation


def _union(maps: Sequence[Map]) -> Map:
    """All of them as one, in few pieces: the work of isl grows with pairs of those."""
    whole = maps[0]
    for relation in maps[1:]:
        whole = whole.union(relation)
    return coalesced(whole)


def _shifted_names(cells: Index) -> set[str]:
    """The names that an entry shifts by a number: `t` of `[t - 1]`."""
    found: set[str] = set()
    for entry in cells:
        names = free_symbols(entry)
        if not isinstance(entry, Slice) and len(names) == 1 and isinstance(entry - Sym(min(names)), Const):
            found |= names
    return found


def _lives_in_one_iteration(question: Question) -> bool:
    """
    Whether each row is written and read by one iteration of the loops round its write; seen without isl.

    That is so where every use is at the same index, each of those loops' iterators stands in an entry of its own, and
    every read is inside of the same loops, after the write.
    """
    if question.kept:
        return False
    writes = [use for use in question.uses if use.use.writes]
    loops, cells = writes[0].frame.loops, writes[0].cells
    iterators = {loop.iterator for loop in loops}
    if any(isinstance(entry, Slice) for entry in cells) or not iterators <= _shifted_names(cells):
        return False
    last = max(write.use.order[-1] for write in writes)
    for use in question.uses:
        outer = use.frame.loops[: len(loops)]
        same = len(outer) == len(loops) and all(a is b for a, b in zip(outer, loops, strict=True))
        if not same or use.cells != cells or (use.use.writes and use.frame.loops != loops):
            return False
        if not use.use.writes and use.use.order[len(loops)] <= last:
            return False
    return True


__all__ = ["HELD", "OPERAND", "RESULT", "CellUse", "Liveness", "Question"]
