"""How buffers lie in memory: one formula for kernels, the native host program and the runtime.

A buffer is row-major: its stored dims, outer ones first, then the axes of the row; a dim may lie inside of some of
these. A dim stored `full` or `growing` has a row per point of its extent, a `ring` one per slot; where there are fewer
points than slots these are the first, and no more are reserved of the first dim. Rows whose extents vary with the point
are packed densely, each in the room of the largest. Where data ends a dim there is room for as many
steps as the caller allows (`call.most.T`), however many will run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from xdsl.ir import Attribute

from tempo_ir.dialects.loop import BufferAccess, BufferDim, BufferType, ProgramOp, call_most
from tempo_ir.dialects.tile.attributes import bit_width
from tempo_ir.dialects.types import Extent, Shape, element, shape_of
from tempo_ir.index import (
    Const,
    Domain,
    Expr,
    MinMax,
    Slice,
    Space,
    Sym,
    as_expr,
    free_symbols,
    minimum,
    simplify,
    substitute,
)
from tempo_ir.index.rules import PROGRAM_FACTS

Most: TypeAlias = tuple[tuple[str, Expr], ...]
"""Bounds that a loop of the program gives, each with the most that it may be."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The memory of a buffer: per stored dim the number of rows, and the room of one row, in elements."""

    type: BufferType
    rows: tuple[Expr, ...]
    pitch: Expr
    most: Most = ()

    @staticmethod
    @lru_cache(maxsize=1024)
    def of(buffer_type: BufferType, space: Space, most: Most = ()) -> Layout:
        """The layout in a program over `space`, with room for the `most` of some bounds (`most_of`).

        Raises Inexact where an extent of the row has no greatest value.
        """
        rows = tuple(
            substitute(_rows(dim, space, number == 0), dict(most)) for number, dim in enumerate(buffer_type.dims)
        )
        stored = _stored_space(buffer_type, space)
        pitch: Expr = Const(1)
        for extent in shape_of(buffer_type.row):
            pitch = pitch * substitute(_greatest(extent, stored), dict(most))
        return Layout(buffer_type, rows, pitch, most)

    @property
    def room(self) -> Shape:
        """The extents of the row that there is room for."""
        return self.reserved(shape_of(self.type.row))

    def reserved(self, shape: Shape) -> Shape:
        """Extents of what lies in the buffer as there is room for them."""
        return tuple(extent if isinstance(extent, int) else substitute(extent, dict(self.most)) for extent in shape)

    @property
    def element(self) -> Attribute:
        """The element type."""
        return element(self.type.row)

    @property
    def size(self) -> Expr:
        """Elements of the whole buffer, over the bounds."""
        size = self.pitch
        for rows in self.rows:
            size = size * rows
        return size

    @property
    def strides(self) -> tuple[Expr, ...]:
        """Elements between neighbouring rows of each stored dim."""
        return self._strides()[0]

    @property
    def row_strides(self) -> tuple[Expr, ...] | None:
        """Elements between neighbours along each axis of the row; None where a row is dense."""
        return self._strides()[1] if any(dim.inside for dim in self.type.dims) else None

    def _strides(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """Of the dims and of the axes of the row; what is last in memory is counted first."""
        row = self.room
        dims: dict[int, Expr] = {}
        axes: dict[int, Expr] = {}
        dense = all(dim.inside == 0 for dim in self.type.dims)
        stride: Expr = self.pitch if dense else Const(1)
        for outside in reversed(range(1 if dense else len(row) + 1)):
            for number in reversed(range(len(self.rows))):
                if dense or self.type.dims[number].inside == outside:
                    dims[number] = stride
                    stride = stride * self.rows[number]
            if outside > 0:
                axes[outside - 1] = stride
                stride = stride * row[outside - 1]
        return tuple(dims[n] for n in range(len(self.rows))), tuple(axes[n] for n in sorted(axes))


def most_of(program: ProgramOp) -> Most:
    """The bound that a loop of the program gives, if one does, with the most that it may be."""
    ending = program.ending
    return () if ending is None or ending.gives is None else ((ending.gives, Sym(call_most(ending.gives))),)


def _rows(dim: BufferDim, space: Space, first: bool) -> Expr:
    """How many rows a dim has; all slots of a ring inside of other dims, whose strides stay numbers."""
    if dim.storage == "ring" and not first:
        return Const(dim.slots)
    extent = _extent(dim, space)
    return minimum(dim.slots, extent) if dim.storage == "ring" else extent


def _extent(dim: BufferDim, space: Space) -> Expr:
    """To which point of a dim there are rows; to none where that is a number below 0."""
    extent = space.bound(dim.name) if dim.extent is None else dim.extent
    return Const(0) if isinstance(extent, Const) and extent.value < 0 else extent


def _stored_space(buffer_type: BufferType, space: Space) -> Space:
    """The dims of the buffer with the points at which it has rows, which may be more than the program declares."""
    return Space(tuple((dim.name, _extent(dim, space)) for dim in buffer_type.dims), space.where)


def _greatest(extent: Extent, stored: Space) -> Expr:
    """The greatest value of an extent over the points stored."""
    if isinstance(extent, int) or not free_symbols(extent) & set(stored.names):
        return as_expr(extent)
    from tempo_ir.index.isl import ceiling

    return ceiling(extent, stored, Domain(stored.names))


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of the accessed tensor: its extent, and elements between neighbours.

    `wrap` is None, or for a window of a ring `(first, slots)`: element k stands in slot `(first + step * k) mod slots`,
    and `stride` is that of the slots. `filled` says that the window stands in slots 0 to its extent, turned round or
    not.
    """

    extent: Extent
    stride: Expr
    wrap: tuple[Expr, int] | None = None
    filled: bool = False
    step: int = 1


@dataclass(frozen=True, slots=True)
class Array:
    """The memory of one access: where its first element lies in the buffer, and its axes."""

    offset: Expr
    axes: tuple[Axis, ...]


def array_of(access: BufferAccess, layout: Layout) -> Array:
    """Where the elements of `%k[i, t - 3:t + 1]` lie: a leading axis per slice, then the axes of the row."""
    offset: Expr = Const(0)
    axes: list[Axis] = []
    shape = shape_of(access.type)
    for dim, entry, stride in zip(layout.type.dims, access.index, layout.strides, strict=True):
        first = entry.start if isinstance(entry, Slice) else entry
        slot = first % dim.slots if dim.storage == "ring" else first
        if not isinstance(entry, Slice):
            offset = offset + slot * stride
            continue
        extent = shape[len(axes)]
        if dim.storage == "ring" and extent != 1:
            axes.append(Axis(extent, stride, (first, dim.slots), _is_filled(entry, dim.slots), entry.step))
            continue
        offset = offset + slot * stride
        axes.append(Axis(extent, stride * entry.step))
    room = layout.reserved(shape_of(layout.type.accessed(access.index)))[len(axes) :]
    row = shape[len(axes) :]
    strides = row_major(room) if layout.row_strides is None else layout.row_strides
    axes += [Axis(extent, stride) for extent, stride in zip(row, strides, strict=True)]
    return Array(simplify(offset, PROGRAM_FACTS), tuple(axes))


def _is_filled(window: Slice, slots: int) -> bool:
    """Whether a window of a ring begins at 0 or takes all slots: `[max(0, t - 7):t + 1]` of 8."""
    if window.step != 1:
        return False
    starts = window.start.args if isinstance(window.start, MinMax) and window.start.op == "max" else (window.start,)
    return all(start == Const(0) or simplify(window.stop - start) == Const(slots) for start in starts)


def row_major(shape: Shape | Sequence[Extent]) -> list[Expr]:
    """Strides of a dense tensor whose last axis is contiguous."""
    strides: list[Expr] = []
    stride: Expr = Const(1)
    for extent in reversed(shape):
        strides.insert(0, stride)
        stride = stride * extent
    return strides


def element_bytes(element_type: Attribute) -> int:
    """Bytes of one element in memory; a boolean takes one."""
    return max(1, bit_width(element_type) // 8)
