# pyright: basic
"""
Where and when the ops of a loop program run, as isl sets and maps; the checker of order (`legality`) stands on this.

One iteration of an op runs before another if it comes first in the outermost common loop in which they differ
(downwards where the loop does), or, where they differ in none, if it stands first in the block where their paths part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tempo_ir.index.domain import Space
from tempo_ir.index.expr import TRUE, Cond, Expr, Sym
from tempo_ir.index.isl import DIM, Map, Set, condition_set, encode, params_set, pw_aff
from tempo_ir.lowering.instances import Frame


def named(points: Set, dims: Sequence[str]) -> Set:
    """The points with their dims named, for messages."""
    for position, dim in enumerate(dims):
        points = points.set_dim_name(DIM.set, position, encode(dim))
    return points


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
            held = self.points(frame.iterators, frame.holds)
            self._maps[key] = self.function(frame.iterators, point).intersect_domain(held)
        return self._maps[key]

    def time(self, frame: Frame, common: int) -> Map:
        """How iterations of the outer loops follow each other: `{ [i, t] -> [i, -t] }` for `t` downwards."""
        key = ("time", frame.loops, common)
        if key not in self._maps:
            values = [-Sym(name) if down else Sym(name) for name, _, down in frame.loops[:common]]
            self._maps[key] = self.function(frame.iterators, values)
        return self._maps[key]
