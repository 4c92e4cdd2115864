"""
Boxes: the iterations of loops in which an operation runs, where those are a range of each iterator, and the rows that
it touches in all of them.

Under `t < P` in `loop.for t = 0 to T`, where `P <= T`, that is `t` from 0 to `P`, and `%x[t + 1]` is `%x[1:P + 1]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tempo_ir.index.domain import Space
from tempo_ir.index.expr import (
    And,
    Compare,
    Cond,
    Expr,
    Index,
    Slice,
    Sym,
    compare,
    conj,
    free_symbols,
    maximum,
    minimum,
    substitute,
)
from tempo_ir.index.isl import prove
from tempo_ir.index.rules import PROGRAM_FACTS, simplify
from tempo_ir.lowering.storage.uses import Frame, iterations


@dataclass(frozen=True, slots=True)
class Box:
    """Iterations: where `guard` holds, of the bounds and the iterators of outer loops, those of all `ranges`; iterators
    in `values` have one value."""

    values: Mapping[str, Expr]
    ranges: Mapping[str, Slice]
    guard: Cond

    @staticmethod
    def of(frame: Frame, depth: int, space: Space) -> Box | None:
        """Those of the loops inside of the `depth` outermost ones; None where they are no box."""
        loops = frame.loops[depth:]
        names = {loop.iterator for loop in loops}
        values = {name: value for name, value in frame.only_values().items() if name in names}
        limits = {loop.iterator: _Limits([], []) for loop in loops if loop.iterator not in values}
        held: list[Cond] = []
        for condition in (*(one for loop in loops for one in iterations(loop)), *conjuncts(frame.guard)):
            one = substitute(condition, values)
            inner = sorted(free_symbols(one) & limits.keys())
            if not inner:
                held.append(one)
            elif len(inner) > 1 or not limits[inner[0]].add(one, Sym(inner[0])):
                return None
        ranges = {name: limit.range(space) for name, limit in limits.items()}
        held += [
            compare("<", one.start, one.stop)
            for one in ranges.values()
            if not _always(compare("<=", one.start, one.stop), space)
        ]
        return Box(values, ranges, conj(*(one for one in held if not _always(one, space))))

    def rows(self, index: Index) -> tuple[Index, tuple[str, ...]] | None:
        """The rows at an index in all of the iterations, and which iterator each slice is of; None if they are no
        slices."""
        entries: list[Expr | Slice] = []
        sliced: list[str] = []
        for entry in index:
            point = substitute(entry, self.values)
            inner = sorted(free_symbols(point) & self.ranges.keys())
            if not inner:
                entries.append(point)
                continue
            if isinstance(point, Slice) or free_symbols(shift := point - Sym(inner[0])) & self.ranges.keys():
                return None
            taken = self.ranges[inner[0]]
            entries.append(Slice(taken.start + shift, taken.stop + shift))
            sliced += inner
        return tuple(entries), tuple(sliced)


@dataclass(frozen=True, slots=True)
class _Limits:
    """What is known of an iterator: what it is at least, and what it is less than."""

    least: list[Expr]
    end: list[Expr]

    def add(self, condition: Cond, iterator: Sym) -> bool:
        """Take in what a condition says; False where that is no limit."""
        if not isinstance(condition, Compare):
            return False
        difference, relation = condition.lhs - condition.rhs, condition.op
        if iterator.name not in free_symbols(difference - iterator):
            other = iterator - difference
        elif iterator.name not in free_symbols(difference + iterator):
            other = iterator + difference
            relation = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(relation, relation)
        else:
            return False
        match relation:
            case ">" | ">=":
                self.least.append(other + 1 if relation == ">" else other)
            case "<" | "<=":
                self.end.append(other if relation == "<" else other + 1)
            case "=":
                self.least.append(other)
                self.end.append(other + 1)
            case _:
                return False
        return True

    def range(self, space: Space) -> Slice:
        """From the greatest of the least to the least of the ends."""
        least = [one for one in self.least if all(_always(compare(">=", one, other), space) for other in self.least)]
        end = [one for one in self.end if all(_always(compare("<=", one, other), space) for other in self.end)]
        return Slice(
            least[0] if least else simplify(maximum(*self.least), PROGRAM_FACTS),
            end[0] if end else simplify(minimum(*self.end), PROGRAM_FACTS),
        )


def conjuncts(condition: Cond) -> tuple[Cond, ...]:
    """The conditions that all hold where a condition does."""
    return condition.args if isinstance(condition, And) else (condition,)


def _always(condition: Cond, space: Space) -> bool:
    """Whether a condition on the bounds alone holds for all that a program admits."""
    return free_symbols(condition) <= set(space.params) and prove(condition, space)
