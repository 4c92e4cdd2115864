# pyright: basic
"""
Where and when the ops of a loop program run, read back from the loops and guards themselves, as isl sets and maps.

The checker of order (`legality`) stands on this; nothing here is shared with what made the loops. One iteration of an
op runs before another if it comes first in the outermost common loop in which they differ (downwards where the loop
does), or, where they differ in none, if it stands first in the block where their paths part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation

from tempo_ir.dialects.loop import ForOp, IfOp, ProgramOp
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import TRUE, Cond, Expr, Sym, compare, conj, negate
from tempo_ir.index.isl import DIM, Map, Set, condition_set, encode, params_set, pw_aff


@dataclass(frozen=True)
class Frame:
    """The loops round an op, outermost first, and the conjunction of the guards."""

    loops: tuple[ForOp, ...] = ()
    guard: Cond = TRUE

    @property
    def iterators(self) -> tuple[str, ...]:
        """The names of the loops' iterators."""
        return tuple(loop.iterator for loop in self.loops)

    def holds(self) -> Cond:
        """What holds of the iterators when the op runs."""
        return conj(*(condition for loop in self.loops for condition in _range(loop)), self.guard)


@dataclass(frozen=True)
class Occurrence:
    """An op with its frame and its place: the position in each enclosing block."""

    op: Operation
    frame: Frame
    place: tuple[int, ...]


def occurrences(program: ProgramOp) -> Iterator[Occurrence]:
    """The ops of a program but for loops and guards, in textual order; a loop that data ends, for its question after
    each iteration."""
    return _occurrences(program.body.block, Frame(), ())


def common_loops(left: Frame, right: Frame) -> int:
    """How many of the outermost loops are the same."""
    count = 0
    while count < min(len(left.loops), len(right.loops)) and left.loops[count] is right.loops[count]:
        count += 1
    return count


def named(points: Set, dims: Sequence[str]) -> Set:
    """The points with their dims named, for messages."""
    for position, dim in enumerate(dims):
        points = points.set_dim_name(DIM.set, position, encode(dim))
    return points


def _range(loop: ForOp) -> tuple[Cond, ...]:
    iterator = Sym(loop.iterator)
    inside = compare("<=", loop.lower, iterator), compare("<", iterator, loop.upper)
    if loop.step == 1:
        return inside
    return *inside, compare("=", (iterator - loop.lower) % loop.step, 0)


def _occurrences(block: Block, frame: Frame, place: tuple[int, ...]) -> Iterator[Occurrence]:
    for position, op in enumerate(block.ops):
        here = (*place, position)
        if isinstance(op, ForOp):
            inside = Frame((*frame.loops, op), frame.guard)
            yield from _occurrences(op.body.block, inside, here)
            if op.until is not None:
                yield Occurrence(op, inside, (*here, len(op.body.block.ops)))
        elif isinstance(op, IfOp):
            then = Frame(frame.loops, conj(frame.guard, op.condition))
            yield from _occurrences(op.then.block, then, (*here, 0))
            if op.otherwise is not None:
                otherwise = Frame(frame.loops, conj(frame.guard, negate(op.condition)))
                yield from _occurrences(op.otherwise.block, otherwise, (*here, 1))
        else:
            yield Occurrence(op, frame, here)


@dataclass
class Timeline:
    """Iterations and their order as isl objects, each made once."""

    space: Space
    _maps: dict[object, Map] = field(default_factory=dict)

    def points(self, names: Sequence[str], held: Cond) -> Set:
        """The values of some names for which a condition holds, for admissible bounds."""
        return condition_set(self.space, names, held).intersect_params(params_set(self.space))

    def function(self, names: Sequence[str], values: Sequence[Expr]) -> Map:
        """`{ [names] -> [values] }`."""
        whole = Map.from_domain(condition_set(self.space, names, TRUE))
        for value in values:
            whole = whole.flat_range_product(Map.from_pw_aff(pw_aff(self.space, names, value)))
        return whole

    def runs(self, frame: Frame, point: tuple[Expr, ...]) -> Map:
        """The point of each iteration of an op: `{ [i, t] -> [i, t - 1] : ... }`."""
        key = ("runs", frame, point)
        if key not in self._maps:
            held = self.points(frame.iterators, frame.holds())
            self._maps[key] = self.function(frame.iterators, point).intersect_domain(held)
        return self._maps[key]

    def time(self, frame: Frame, common: int) -> Map:
        """How iterations of the outer loops follow each other: `{ [i, t] -> [i, -t] }` for `t` downwards."""
        key = ("time", frame.loops, common)
        if key not in self._maps:
            values = [-Sym(loop.iterator) if loop.down else Sym(loop.iterator) for loop in frame.loops[:common]]
            self._maps[key] = self.function(frame.iterators, values)
        return self._maps[key]
