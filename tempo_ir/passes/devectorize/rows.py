"""The first axis of an op as points of a dim."""

from __future__ import annotations

from dataclasses import dataclass

from tempo_ir.dialects.sdg import Access, SdgOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.index import Domain, Slice, Sym
from tempo_ir.passes.building import GraphBuilder, full, normal_form
from tempo_ir.passes.recurrences.axes import Along, Places, without_axis
from tempo_ir.passes.utilities import is_slice


@dataclass(frozen=True)
class Rows:
    """The rows of an op's first axis: the points of a dim from `first` to below `end`."""

    dim: str
    points: Slice
    places: Places


def row_domain(op: SdgOp, rows: Rows) -> Domain:
    """The points of an op, and of its rows."""
    space = op.space
    dims = space.order({*op.domain.dims, rows.dim})
    ranges = {name: (name, first, end) for name, first, end in op.domain.ranges}
    ranges[rows.dim] = (rows.dim, rows.points.start, rows.points.stop)
    ordered = tuple(ranges[name] for name in dims if name in ranges)
    return normal_form(Domain(dims, ordered, op.domain.where), space)


def row_of(build: GraphBuilder, access: Access, place: Along, rows: Rows) -> Access:
    """What one row reads of an operand."""
    if place.axis is None:
        return access
    if place.repeated:
        return build.reshape(access, without_axis(shape_of(access.tensor), place.axis))
    if place.axis < len(range_positions(access)):
        return at_row(access, place.axis, rows)
    take = [full(extent) for extent in shape_of(access.tensor)]
    return build.slice(access, (*take[: place.axis], Sym(rows.dim) - rows.points.start, *take[place.axis + 1 :]))


def range_positions(access: Access) -> list[int]:
    """Which entries of an index are ranges, each the axis of its number."""
    return [number for number, entry in enumerate(access.index) if is_slice(entry)]


def at_row(access: Access, axis: int, rows: Rows) -> Access:
    """A read with the current point of the dim for the range that gave it an axis."""
    position = range_positions(access)[axis]
    return Access(access.value, (*access.index[:position], Sym(rows.dim), *access.index[position + 1 :]))
