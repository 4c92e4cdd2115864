"""A part of an axis of a value, built from the parts of what the value is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import overload

from tempo_ir.dialects.sdg import Access, ContractOp, ReduceOp, SdgOp, SliceOp, SoftmaxOp, domain_of
from tempo_ir.dialects.types import Extent, shape_of
from tempo_ir.index import Entry, Expr, Slice, as_expr, substitute
from tempo_ir.passes.building import GraphBuilder, full, symbols_of
from tempo_ir.passes.tile.axes import Axes, Part, axes_through, rebuild
from tempo_ir.passes.utilities import is_slice

_DEAR = (ContractOp, ReduceOp, SoftmaxOp)


@dataclass(frozen=True)
class Place:
    """An axis of what an access reads."""

    access: Access
    axis: int

    @property
    def extent(self) -> Extent:
        """How many elements there are along the axis."""
        return shape_of(self.access.type)[self.axis]

    @property
    def entry(self) -> int | None:
        """The entry of the index that is the axis; None where it is an axis of the value."""
        ranges = [number for number, entry in enumerate(self.access.index) if is_slice(entry)]
        return ranges[self.axis] if self.axis < len(ranges) else None

    def sources(self) -> tuple[SdgOp, Axes] | None:
        """The op that makes the value, and the axes of its operands; None where the value is taken as it is."""
        op = self.access.value.owner
        if not isinstance(op, SdgOp) or any(map(is_slice, self.access.index)):
            return None
        if isinstance(op, _DEAR) and op.results[0].uses.get_length() > 1:
            return None
        axes = axes_through(op, self.axis)
        return None if axes is None else (op, axes)


def ends(place: Place) -> Iterator[Place]:
    """The places where a part of a value comes from memory: ranges that are read, and values taken as they are."""
    waiting, seen = [place], {place}
    while waiting:
        current = waiting.pop()
        sources = None if current.entry is not None else current.sources()
        if sources is None:
            yield current
            continue
        op, axes = sources
        below = [Place(a, axis) for a, axis in zip(op.accesses, axes, strict=True) if axis is not None]
        waiting += [each for each in below if each not in seen]
        seen.update(below)


@dataclass
class PartBuilder:
    """Builds one part of axes for the points of the builder's domain; the part of each value once."""

    build: GraphBuilder
    part: Part
    known: dict[Place, Access] = field(default_factory=dict[Place, Access])

    def of(self, access: Access, axis: int) -> Access:
        """The part of an axis of what an access reads."""
        place = Place(access, axis)
        if place not in self.known:
            self.known[place] = self._made(place)
        return self.known[place]

    def _made(self, place: Place) -> Access:
        access = place.access
        if (number := place.entry) is not None:
            entry = access.index[number]
            assert isinstance(entry, Slice)
            return Access(access.value, (*access.index[:number], self.part.of(entry), *access.index[number + 1 :]))
        sources = place.sources()
        if sources is None:
            return self._taken(place)
        op, axes = sources
        bindings = dict(zip(domain_of(access.value).dims, access.index, strict=True))
        points = {dim: entry for dim, entry in bindings.items() if not isinstance(entry, Slice)}

        @overload
        def at(value: Expr) -> Expr: ...
        @overload
        def at(value: Entry) -> Entry: ...
        def at(value: Entry) -> Entry:
            return substitute(value, points)

        operands: list[Access] = []
        for read, axis in zip(op.accesses, axes, strict=True):
            there = Access(read.value, substitute(read.index, points))
            operands.append(there if axis is None else self.of(there, axis))
        build = self.build.at(self.build.domain, op.location)
        made = rebuild(build, op, place.axis, operands, self.part, at)
        if made.value.name_hint is None and made.value not in [operand.value for operand in operands]:
            made.value.name_hint = op.results[0].name_hint
        return made

    def _taken(self, place: Place) -> Access:
        """A slice of the whole value: what makes it is not computed part by part."""
        shape = shape_of(place.access.type)
        take = [full(extent) for extent in shape]
        take[place.axis] = self.part.of(full(shape[place.axis]))
        return self.build.build(
            SliceOp,
            place.access,
            take=tuple(take),
            symbols=symbols_of([as_expr(bound) for entry in take for bound in (entry.start, entry.stop)]),
        )
