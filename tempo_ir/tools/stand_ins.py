"""Stand-ins for host objects that IR text only names: what they return is drawn, what they are given is kept.

With them a program with host calls can be compared with itself: the same calls in the same order return the same. A
vectorised form makes the calls of its method one by one, so that programs with it and without are the same too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.types import element, shape_of, tensor
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
    """The host calls of one run of a program: a factory of stand-ins per object, and what they were given. `forms` are
    the vectorised forms that it calls: of which method, and how many leading axes they are given."""

    objects: Collection[str]
    results: Mapping[Method, Sequence[Attribute]]
    bounds: Mapping[str, int]
    seed: int
    forms: Mapping[Method, tuple[str, int]] = field(default_factory=lambda: dict[Method, tuple[str, int]]())
    made: dict[Method, int] = field(default_factory=lambda: dict[Method, int]())
    given: dict[str, Array] = field(default_factory=lambda: dict[str, Array]())

    @staticmethod
    def of(program: sdg.ProgramOp | loop.ProgramOp, bounds: Mapping[str, int], seed: int) -> Calls:
        """Stand-ins for all objects that a program names. Raises UserError where a result has no one shape."""
        results: dict[Method, Sequence[Attribute]] = {}
        forms: dict[Method, tuple[str, int]] = {}
        for op in program.walk():
            if isinstance(op, sdg.HostOp):
                method, types = (op.object, op.method), [result.type for result in op.outputs]
            elif isinstance(op, loop.HostOp):
                method, types = _names(op.method), [access.type for access in op.writes]
            else:
                continue
            axes = 0 if op.vectorized is None else len(op.vectorized.over.dims)
            types = [tensor(element(type_), shape_of(type_)[axes:]) for type_ in types]
            extents = [extent for type_ in types for extent in shape_of(type_) if isinstance(extent, Expr)]
            if unknown := [extent for extent in extents if free_symbols(extent) - bounds.keys()]:
                place = place_of_location(op.location)
                raise UserError(f"@{method[0]}::@{method[1]} returns {unknown[0]} values: it has no stand-in", place)
            results[method] = types
            if op.vectorized is not None and axes:
                form = (method[0], op.vectorized.method)
                if forms.setdefault(form, (method[1], axes)) != (method[1], axes):
                    text = f"@{form[0]}::@{form[1]} is called for several methods, or over points of several dims"
                    raise UserError(f"{text}: it has no stand-in", place_of_location(op.location))
        idle = [op.object for op in program.walk() if isinstance(op, sdg.HostStateOp)]
        return Calls({*idle, *(name for name, _ in results)}, results, bounds, seed, forms)

    def factories(self) -> dict[str, Callable[[], object]]:
        """What makes the stand-in of each object, by name."""
        return {name: lambda name=name: StandIn(name, self) for name in self.objects}

    def call(self, method: Method, arguments: Sequence[Array]) -> list[Array]:
        """Keep the arguments, and give what is drawn for this call: a function of its number and the seed."""
        number = self.made[method] = self.made.get(method, 0) + 1
        call = f"@{method[0]}::@{method[1]} {'call' if self.results[method] else EFFECT} {number}"
        position = sum(count for (name, _), count in self.made.items() if name == method[0])
        self.given[f"{call}: its place"] = np.array(position)
        for argument, array in enumerate(arguments):
            self.given[f"{call}: argument {argument}"] = array.copy()
        return [self._draw(f"{call} {result}", type_) for result, type_ in enumerate(self.results[method])]

    def call_all(self, form: Method, arguments: Sequence[Array]) -> list[Array]:
        """The calls at all points, one by one in order; their results stacked."""
        name, axes = self.forms[form]
        method, shape = (form[0], name), arguments[0].shape[:axes]
        rows = [self.call(method, [argument[point] for argument in arguments]) for point in np.ndindex(shape)]
        columns = list(zip(*rows, strict=True))
        return [np.stack(column).reshape(*shape, *column[0].shape) for column in columns]

    def _draw(self, name: str, type_: Attribute) -> Array:
        shape = [evaluate(extent, self.bounds) if isinstance(extent, Expr) else extent for extent in shape_of(type_)]
        return draw_array(name, element(type_), shape, self.seed, is_weight=False)


@dataclass(frozen=True)
class StandIn:
    """An object with every method that the program calls."""

    name: str
    calls: Calls

    def __getattr__(self, method: str) -> Callable[..., object]:
        named = (self.name, method)
        if named not in self.calls.results and named not in self.calls.forms:
            raise AttributeError(method)
        make = self.calls.call_all if named in self.calls.forms else self.calls.call
        return lambda *arguments: returned(make(named, arguments))


def returned(results: Sequence[Array]) -> object:
    """What a method gives that returns these: one, a tuple, or None."""
    return results[0] if len(results) == 1 else tuple(results) or None


def _names(method: SymbolRefAttr) -> Method:
    return method.root_reference.data, method.nested_references.data[0].data
