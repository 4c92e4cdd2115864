"""Accesses of a kernel in the order in which they run: whether one may touch what another one touched before, be it in
an earlier iteration of the loops round both."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from xdsl.ir import Operation

from tempo_ir.dialects.tile import memory, structure
from tempo_ir.index import Expr, Sym, substitute
from tempo_ir.lowering.tiles.places import Place, Places

When: TypeAlias = Literal["same", "before", "any"]
"""The iterations of a loop that another access may have run in."""


@dataclass
class Repetition:
    """What accesses touch, over all iterations."""

    places: Places
    counters: dict[Hashable, Sym] = field(default_factory=dict[Hashable, Sym])
    """The counters of iterations, by loop and by those of the loops round it."""

    def may_meet(self, before: memory.AccessOp, op: memory.AccessOp) -> bool:
        """Whether an access may touch what one that ran before it touched."""
        if before.view_op.pointer is not op.view_op.pointer:
            return False
        if not isinstance(before, memory.LoadOp | memory.WriteOp) or not isinstance(op, memory.LoadOp | memory.WriteOp):
            return True
        place, indices = self.places.of(before), self.places.indices
        loops = _loops_round(before)
        common = [loop for loop in loops if loop.is_ancestor(op)]
        if common:
            counters = {indices.counter(loop).name for loop in loops}
            symbols = indices.symbols
            made = {name for name in place.symbols & symbols.keys() if indices.is_inside(symbols[name], common[0])}
            if not made <= counters:
                return True
        own = self.places.of(op)
        return not all(self.places.apart(self.at(place, loops, when), own) for when in _orders(before, op, common))

    def at(self, place: Place, loops: Sequence[structure.ForOp], when: Sequence[When]) -> Place:
        """A place in such iterations of the loops round it; in any of those that `when` does not reach."""
        bindings: dict[str, Expr] = {}
        for number, loop in enumerate(loops):
            which: When = when[number] if number < len(when) else "any"
            bindings[self.places.indices.counter(loop).name] = self.counter(loop, which, bindings)
        axes = tuple(axis.at(bindings) for axis in place.axes)
        return Place(place.pointer, substitute(place.base, bindings), axes)

    def counter(self, loop: structure.ForOp, when: When, outer: Mapping[str, Expr]) -> Sym:
        """The counter of such an iteration of a loop, where those of loops round it are `outer`."""
        indices = self.places.indices
        counter = indices.counter(loop)
        if when == "same":
            return counter
        key = loop, when, tuple(outer.items())
        if key not in self.counters:
            symbol = self.counters[key] = Sym(f"{counter.name}_{when}_{len(self.counters)}")
            low, high = (substitute(indices.of(each), outer) for each in (loop.low, loop.high))
            last = counter - loop.step_size if when == "before" else high - 1
            indices.ranges.append((symbol.name, low, last))
        return self.counters[key]


def _orders(before: Operation, op: Operation, common: Sequence[structure.ForOp]) -> Iterator[list[When]]:
    """The iterations of the loops round two accesses in which the first may have run: an earlier one of some loop, or
    the same of all."""
    same: list[When] = ["same" for _ in common]
    for number in range(len(common)):
        rest: list[When] = ["any" for _ in common[number + 1 :]]
        yield [*same[:number], "before", *rest]
    if not common or not _is_behind(before, op):
        yield same


def _is_behind(access: Operation, op: Operation) -> bool:
    """Whether an access runs after another one in an iteration of the loop round both, or not in the same one."""
    block = op.parent
    while block is not None:
        around = block.find_ancestor_op_in_block(access)
        own = block.find_ancestor_op_in_block(op)
        if around is not None and own is not None:
            return around is own or not around.is_before_in_block(own)
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return False


def _loops_round(op: Operation) -> list[structure.ForOp]:
    """The loops round an op, outermost first."""
    found: list[structure.ForOp] = []
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, structure.ForOp):
            found.append(parent)
        parent = parent.parent_op()
    return found[::-1]
