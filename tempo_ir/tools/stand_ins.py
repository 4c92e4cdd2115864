"""Stand-ins for host objects that IR text only names: what they return is drawn, what they are given is kept.

With them a program with host calls can be compared with itself: the same calls in the same order return the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.types import element, shape_of
from tempo_ir.index.expr import Expr, evaluate, free_symbols
from tempo_ir.tools.diagnostics import UserError, place_of_location
from tempo_ir.tools.programs import Array, draw_array

Method = tuple[str, str]
"""A host object and a method of it."""


EFFECT = "effect"
"""What a call is named whose method returns nothing."""


def may_be_left_out(name: str) -> bool:
    """Whether a kept argument is of a call that narrowing may leave out: one that somebody might need, or nobody."""
    return name.startswith("@") and f" {EFFECT} " not in name


@dataclass
class Calls:
    """The host calls of one run of a program: a factory of stand-ins per object, and what they were given."""

    objects: Collection[str]
    results: Mapping[Method, Sequence[Attribute]]
    bounds: Mapping[str, int]
    seed: int
    made: dict[Method, int] = field(default_factory=lambda: dict[Method, int]())
    given: dict[str, Array] = field(default_factory=lambda: dict[str, Array]())

    @staticmethod
    def of(program: sdg.ProgramOp | loop.ProgramOp, bounds: Mapping[str, int], seed: int) -> Calls:
        """Stand-ins for all objects that a program names. Raises UserError where a result has no one shape."""
        results: dict[Method, Sequence[Attribute]] = {}
        for op in program.walk():
            if isinstance(op, sdg.HostOp):
                method, types = (op.object, op.method), [result.type for result in op.outputs]
            elif isinstance(op, loop.HostOp):
                method, types = _names(op.method), [access.type for access in op.writes]
            else:
                continue
            extents = [extent for type_ in types for extent in shape_of(type_) if isinstance(extent, Expr)]
            if unknown := [extent for extent in extents if free_symbols(extent) - bounds.keys()]:
                place = place_of_location(op.location)
                raise UserError(f"@{method[0]}::@{method[1]} returns {unknown[0]} values: it has no stand-in", place)
            results[method] = types
        idle = [op.object for op in program.walk() if isinstance(op, sdg.HostStateOp)]
        return Calls({*idle, *(name for name, _ in results)}, results, bounds, seed)

    def factories(self) -> dict[str, Callable[[], object]]:
        """What makes the stand-in of each object, by name."""
        return {name: lambda name=name: StandIn(name, self) for name in self.objects}

    def call(self, method: Method, arguments: Sequence[Array]) -> object:
        """Keep the arguments, and give what is drawn for this call: a function of its number and the seed."""
        number = self.made[method] = self.made.get(method, 0) + 1
        call = f"@{method[0]}::@{method[1]} {'call' if self.results[method] else EFFECT} {number}"
        position = sum(count for (name, _), count in self.made.items() if name == method[0])
        self.given[f"{call}: its place"] = np.array(position)
        for argument, array in enumerate(arguments):
            self.given[f"{call}: argument {argument}"] = array.copy()
        drawn = [self._draw(f"{call} {result}", type_) for result, type_ in enumerate(self.results[method])]
        return drawn[0] if len(drawn) == 1 else tuple(drawn) or None

    def _draw(self, name: str, type_: Attribute) -> Array:
        shape = [evaluate(extent, self.bounds) if isinstance(extent, Expr) else extent for extent in shape_of(type_)]
        return draw_array(name, element(type_), shape, self.seed, is_weight=False)


@dataclass(frozen=True)
class StandIn:
    """An object with every method that the program calls."""

    name: str
    calls: Calls

    def __getattr__(self, method: str) -> Callable[..., object]:
        if (self.name, method) not in self.calls.results:
            raise AttributeError(method)
        return lambda *arguments: self.calls.call((self.name, method), arguments)


def _names(method: SymbolRefAttr) -> Method:
    return method.root_reference.data, method.nested_references.data[0].data
