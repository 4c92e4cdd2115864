"""What a kernel accesses of memory: a view of it with an axis per lane, and the place along each."""

from __future__ import annotations

from dataclasses import dataclass

from tempo_ir.dialects.tile.builder import Value
from tempo_ir.dialects.types import Extent
from tempo_ir.index import Expr
from tempo_ir.lowering.kernels.tiles import Lane


@dataclass(frozen=True, slots=True)
class ViewAxis:
    """An axis of a view: its size and stride, and what is accessed of it, a point, a lane or positions from a tile."""

    size: Extent
    stride: Expr
    start: Expr
    lane: Lane | None = None
    positions: Value | None = None


@dataclass(frozen=True, slots=True)
class Accessed:
    """A view, the places to access in it, and the lanes of the block, in order."""

    view: Value
    places: list[Value | tuple[Value, int]]
    lanes: tuple[Lane, ...]


def add_lane(axes: list[ViewAxis], lane: Lane, stride: Expr) -> None:
    """An axis for the lane, or a greater stride of the one it has."""
    for position, axis in enumerate(axes):
        if axis.lane is lane and axis.positions is None:
            axes[position] = ViewAxis(axis.size, axis.stride + stride, axis.start, lane)
            return
    axes.append(ViewAxis(lane.limit, stride, lane.first, lane))
