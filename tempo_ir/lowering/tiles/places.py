"""Where an access of a tile kernel goes: which elements, in which lanes, under which masks.

Two accesses are of one place if they touch the same elements lane by lane, however their views say it: row t of a view
with a leading axis is the place of a view whose offset is `t * row`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.ir import SSAValue

from tempo_ir.dialects.tile import memory
from tempo_ir.index import Cond, Const, Expr, Space, Sym, compare, conj, free_symbols, substitute
from tempo_ir.lowering.tiles.indices import Indices


@dataclass(frozen=True)
class Axis:
    """An axis of the tile: its extent, elements between neighbours, and where it is masked, if it is: the index of
    lane 0 and the size that lanes stay below."""

    extent: int
    stride: Expr
    mask: tuple[Expr, Expr] | None

    def at(self, bindings: Mapping[str, Expr]) -> Axis:
        """The axis where some symbols have values."""
        mask = None if self.mask is None else (substitute(self.mask[0], bindings), substitute(self.mask[1], bindings))
        return Axis(self.extent, substitute(self.stride, bindings), mask)


@dataclass(frozen=True)
class Place:
    """The elements of a block, from that of its first lane on. Equal places are the same memory, lane by lane."""

    pointer: SSAValue
    base: Expr
    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of a tile of the place; axes of one lane, which is not masked, are none."""
        return tuple(axis.extent for axis in self.axes)

    @property
    def is_masked(self) -> bool:
        """Whether some lanes may touch nothing."""
        return any(axis.mask is not None for axis in self.axes)

    @property
    def expressions(self) -> Iterator[Expr]:
        """All that the place depends on."""
        yield self.base
        for axis in self.axes:
            yield axis.stride
            yield from axis.mask or ()

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that the place depends on."""
        return frozenset[str]().union(*map(free_symbols, self.expressions))

    def at(self, counter: str, value: Expr) -> Place:
        """The place where a counter has a value."""
        bindings = {counter: value}
        return Place(self.pointer, substitute(self.base, bindings), tuple(axis.at(bindings) for axis in self.axes))

    def lane(self, number: int, lane: int) -> Place:
        """The place of one lane of an axis."""
        base = self.base + self.axes[number].stride * lane
        return Place(self.pointer, base, (*self.axes[:number], *self.axes[number + 1 :]))

    @cached_property
    def regions(self) -> tuple[tuple[Expr, int, int], ...]:
        """Memory that the place lies in, `(origin, low, high)` for the elements from `origin + low` to `origin + high`:
        by the extents of the block, and by the sizes that mask it where these are numbers. None where strides vary."""
        found: list[tuple[Expr, int, int]] = []
        for masked in (True, False) if self.is_masked else (False,):
            region = self._region(masked)
            if region is not None and region not in found:
                found.append(region)
        return tuple(found)

    def _region(self, masked: bool) -> tuple[Expr, int, int] | None:
        origin, low, high = self.base, 0, 0
        for axis in self.axes:
            if not isinstance(axis.stride, Const):
                return None
            length = axis.extent
            if masked and axis.mask is not None and isinstance(axis.mask[1], Const):
                origin, length = origin - axis.mask[0] * axis.stride, max(1, axis.mask[1].value)
            reach = (length - 1) * axis.stride.value
            low, high = low + min(0, reach), high + max(0, reach)
        return origin, low, high

    @property
    def lanes_differ(self) -> bool:
        """Whether no two lanes touch the same element; False if not seen."""
        axes = [axis for axis in self.axes if axis.extent > 1]
        if any(axis.stride == Const(0) for axis in axes):
            return False
        if len(axes) < 2:
            return True
        return any(_steps_over(outer, inner) for outer, inner in (axes, axes[::-1]))


def _between_lanes(one: Place, other: Place) -> bool:
    """Whether a place lies between the lanes of another one, as a column of a table beside another column."""
    distance = other.base - one.base
    strides = {axis.stride for axis in one.axes} & {axis.stride for axis in other.axes}
    for stride in [each.value for each in strides if isinstance(each, Const) and each.value > 0]:
        reach, other_reach = (_reach_within(place, stride) for place in (one, other))
        offset = distance % stride
        if reach is None or other_reach is None or not isinstance(offset, Const):
            continue
        if offset.value > reach and offset.value + other_reach < stride:
            return True
    return False


def _reach_within(place: Place, stride: int) -> int | None:
    """How far the lanes of all axes but those of a stride reach; None where they go back, or vary."""
    reach = 0
    for axis in place.axes:
        if not isinstance(axis.stride, Const) or axis.stride.value < 0:
            return None
        reach += 0 if axis.stride.value % stride == 0 else (axis.extent - 1) * axis.stride.value
    return reach


def _steps_over(outer: Axis, inner: Axis) -> bool:
    """Whether a step of one axis is at least as long as the whole other one."""
    if inner.mask is not None and outer.stride == inner.mask[1] * inner.stride:
        return True  # rows of as many elements as the size that masks them
    if not isinstance(outer.stride, Const) or not isinstance(inner.stride, Const):
        return False
    length = inner.extent
    if inner.mask is not None and isinstance(inner.mask[1], Const):
        length = min(length, max(1, inner.mask[1].value))
    return abs(outer.stride.value) >= abs(inner.stride.value) * length


@dataclass
class Places:
    """The places of the accesses of a kernel."""

    indices: Indices
    room: Mapping[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Elements that are there for certain behind some pointers."""
    known: dict[memory.AccessOp, Place] = field(default_factory=dict[memory.AccessOp, Place])
    numbers: dict[memory.AccessOp, list[int]] = field(default_factory=dict[memory.AccessOp, list[int]])
    """Of each access the axes of its view that are those of the place."""

    def of(self, access: memory.LoadOp | memory.WriteOp) -> Place:
        """The place of an access."""
        if access not in self.known:
            self.known[access] = self._place(access)
        return self.known[access]

    def _place(self, access: memory.LoadOp | memory.WriteOp) -> Place:
        view, indices = access.view_op, self.indices
        base: Expr = Const(0) if view.offset is None else indices.of(view.offset)
        axes: list[Axis] = []
        numbers = self.numbers[access] = list[int]()
        places = zip(access.indices, access.block.data, view.sizes, view.strides, strict=True)
        for number, (index_value, extent, size_value, stride_value) in enumerate(places):
            index, size, stride = indices.of(index_value), indices.extent(size_value), indices.extent(stride_value)
            base = base + index * stride
            if extent:
                inside = indices.at_least_zero(index) and indices.at_least_zero(size - extent - index)
                if extent > 1 or not inside:
                    axes.append(Axis(extent, stride, None if inside else (index, size)))
                    numbers.append(number)
        return Place(view.pointer, base, tuple(axes))

    def is_there(self, place: Place) -> bool:
        """Whether a place may be read for certain, even where the program as written does not."""
        room, is_natural = self.room.get(place.pointer, 0), self.indices.at_least_zero
        return any(
            is_natural(origin + low) and is_natural(room - 1 - high - origin) for origin, low, high in place.regions
        )

    def apart(self, one: Place, other: Place) -> bool:
        """Whether two places are proved to share no element. Distinct pointers never lead to the same memory."""
        if one.pointer is not other.pointer:
            return True
        if _between_lanes(one, other) or _between_lanes(other, one):
            return True
        return any(self._apart(first, second) for first in one.regions for second in other.regions)

    def _apart(self, one: tuple[Expr, int, int], other: tuple[Expr, int, int]) -> bool:
        (first, first_low, first_high), (second, second_low, second_high) = one, other
        distance = first - second
        if isinstance(distance, Const):
            return distance.value + first_low > second_high or distance.value + first_high < second_low
        above, below = distance + (first_low - second_high - 1), -distance + (second_low - first_high - 1)
        if self.indices.at_least_zero(above) or self.indices.at_least_zero(below):
            return True
        return self.cannot_hold(conj(compare("<", above, 0), compare("<", below, 0)))

    def cannot_hold(self, condition: Cond) -> bool:
        """Whether isl proves that a condition fails, whatever the values of the kernel are."""
        from tempo_ir.index import isl  # only where the offsets of a ring meet, and where branches hang together

        names = free_symbols(condition)
        held = [
            conj(compare("<=", low, Sym(name)), compare("<=", Sym(name), high))
            for name, low, high in self.indices.facts.ranges
            if name in names
        ]
        try:
            return isl.condition_set(Space(()), (), conj(condition, *held)).is_empty()
        except isl.NotAffine:
            return False
