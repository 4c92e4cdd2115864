"""
Operations on memory. A view gives memory sizes and strides; every access names one index per axis of the view and a
block: extent 0 means a point on that axis, extent n the range `index` to `index + n`, which makes an axis of the tile.

Masks are implied, never written: a range that runs past the view's sizes (or before 0) reads `other` there and writes
nothing. Points are trusted to lie inside.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    base,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from tempo_ir.dialects.operation import NominalOperation
from tempo_ir.dialects.tile.attributes import (
    DYNAMIC,
    IntegersAttr,
    PointerType,
    TileType,
    ViewType,
    element_of,
    is_bool,
    is_integer,
    shape_of,
)


@irdl_op_definition
class ViewOp(NominalOperation):
    """
    See the memory at a pointer as an array.

    `%v = tile.view %p offset %o [%L] : !tile.ptr<f32> -> !tile.view<4x?x64xf32, [262144, 64, 1]>`

    The operands in brackets are the `?` sizes, then the `?` strides of the type, in order; `offset` counts elements.
    """

    name = "tile.view"
    pointer = operand_def(PointerType)
    offset = opt_operand_def(IndexType)
    dynamic = var_operand_def(IndexType)
    result = result_def(ViewType)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = "$pointer (`offset` $offset^)? `[` $dynamic `]` attr-dict `:` type($pointer) `->` type($result)"

    def __init__(
        self,
        pointer: SSAValue,
        sizes: Sequence[int | SSAValue],
        strides: Sequence[int | SSAValue],
        offset: SSAValue | None = None,
    ):
        def static(dimensions: Sequence[int | SSAValue]) -> IntegersAttr:
            return IntegersAttr(tuple(d if isinstance(d, int) else DYNAMIC for d in dimensions))

        dynamic = [d for d in (*sizes, *strides) if not isinstance(d, int)]
        result_type = ViewType(static(sizes), element_of(pointer), static(strides))
        super().__init__(operands=[pointer, offset, dynamic], result_types=[result_type])

    def verify_(self) -> None:
        view_type = self.view_type
        if view_type.element != element_of(self.pointer):
            raise VerifyException(f"a view of {view_type.element} through a pointer to {element_of(self.pointer)}")
        unknown = sum(d == DYNAMIC for d in (*view_type.shape.data, *view_type.strides.data))
        if unknown != len(self.dynamic):
            raise VerifyException(f"the type has {unknown} dynamic sizes and strides, {len(self.dynamic)} are given")

    @property
    def view_type(self) -> ViewType:
        """The type of the result."""
        assert isinstance(self.result.type, ViewType)
        return self.result.type

    @property
    def sizes(self) -> tuple[int | SSAValue, ...]:
        """Per axis the size: a number, or the operand that holds it."""
        return self._dimensions()[: len(self.view_type.shape.data)]

    @property
    def strides(self) -> tuple[int | SSAValue, ...]:
        """Per axis the stride in elements: a number, or the operand that holds it."""
        return self._dimensions()[len(self.view_type.shape.data) :]

    def _dimensions(self) -> tuple[int | SSAValue, ...]:
        dynamic = iter(self.dynamic)
        static = (*self.view_type.shape.data, *self.view_type.strides.data)
        return tuple(next(dynamic) if d == DYNAMIC else d for d in static)


class AccessOp(NominalOperation, ABC):
    """An op that reads or writes one block of a view."""

    view = operand_def(ViewType)
    indices = var_operand_def(IndexType)
    block = prop_def(IntegersAttr)

    @property
    def view_type(self) -> ViewType:
        """The type of the view."""
        assert isinstance(self.view.type, ViewType)
        return self.view.type

    @property
    def view_op(self) -> ViewOp:
        """The op that made the view."""
        assert isinstance(self.view.owner, ViewOp)
        return self.view.owner

    @property
    def tile_axes(self) -> tuple[int, ...]:
        """The axes of the view that are ranges, in the order of the tile's axes."""
        return tuple(axis for axis, extent in enumerate(self.block.data) if extent)

    def verify_block(self, value: SSAValue) -> None:
        """Check indices and block against the view, and that `value` is what the block holds."""
        rank, block = len(self.view_type.shape.data), self.block.data
        if len(self.indices) != rank or len(block) != rank:
            raise VerifyException(
                f"a view of rank {rank} takes {rank} indices and block extents, "
                f"not {len(self.indices)} and {len(block)}"
            )
        if any(extent < 0 for extent in block):
            raise VerifyException("block extents are 0 (a point) or positive")
        extents = tuple(extent for extent in block if extent)
        if len(extents) > 2:
            raise VerifyException(f"block {list(block)} has {len(extents)} ranges; a tile has at most 2 axes")
        expected = TileType.of(extents, self.view_type.element)
        if value.type != expected:
            raise VerifyException(f"the block holds {expected}, not {value.type}")


class IndexedAccessOp(AccessOp, ABC):
    """
    An access that takes the positions on one axis from a tile: element k of that axis is at
    `indices[axis] + positions[k]`. A position outside the view's size reads `other` or writes nothing, so that it
    can never touch foreign memory; who must report it compares the positions himself.
    """

    positions = operand_def(TileType)
    axis = prop_def(IntegerAttr.constr(i64))

    @property
    def axis_number(self) -> int:
        """The axis of the view that `positions` runs along."""
        return self.axis.value.data

    @property
    def tile_axis(self) -> int:
        """The axis of the tile that `positions` runs along."""
        return self.tile_axes.index(self.axis_number)

    def verify_positions(self) -> None:
        """Check `positions` against the block."""
        if not 0 <= self.axis_number < len(self.block.data):
            raise VerifyException(f"axis {self.axis_number} of a view of rank {len(self.block.data)}")
        extents, extent = shape_of(self.positions), self.block.data[self.axis_number]
        if not is_integer(element_of(self.positions)) or extents != (extent,):
            raise VerifyException(f"positions are {extent} integers in a tile, not {self.positions.type}")


Other = FloatAttr | IntegerAttr


@irdl_op_definition
class LoadOp(AccessOp):
    """
    Read a block; outside the view's sizes it is `other`, by default zero.

    `%k = tile.load %K[%h, %t, %z] block [0, 64, 64] : !tile.view<4x?x64xf32, [262144, 64, 1]> -> !tile.tile<64x64xf32>`
    """

    name = "tile.load"
    other = opt_prop_def(base(FloatAttr) | base(IntegerAttr))
    result = result_def()
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$view `[` $indices `]` `block` $block (`other` $other^)? attr-dict `:` type($view) `->` type($result)"
    )

    def __init__(self, view: SSAValue, indices: Sequence[SSAValue], block: Sequence[int], other: Other | None = None):
        super().__init__(
            operands=[view, list(indices)],
            properties={"block": IntegersAttr(tuple(block)), "other": other},
            result_types=[TileType.of([extent for extent in block if extent], element_of(view))],
        )

    def verify_(self) -> None:
        self.verify_block(self.result)
        verify_other(self.other, self.view_type)


@irdl_op_definition
class GatherOp(IndexedAccessOp):
    """
    Read a block whose positions on one axis come from a tile; see `IndexedAccessOp`.

    `%x = tile.gather %E[%z, %z] at %ids axis 0 block [8, 256] : !tile.view<1000x256xf32, [256, 1]>, !tile.tile<8xi64>
    -> !tile.tile<8x256xf32>`
    """

    name = "tile.gather"
    other = opt_prop_def(base(FloatAttr) | base(IntegerAttr))
    result = result_def()
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$view `[` $indices `]` `at` $positions `axis` $axis `block` $block (`other` $other^)? attr-dict `:` "
        "type($view) `,` type($positions) `->` type($result)"
    )

    def __init__(
        self,
        view: SSAValue,
        indices: Sequence[SSAValue],
        positions: SSAValue,
        axis: int,
        block: Sequence[int],
        other: Other | None = None,
    ):
        operands = {"view": view, "indices": list(indices), "positions": positions}
        super().__init__(
            operands=[operands[name] for name, _ in self.get_irdl_definition().operands],
            properties={"block": IntegersAttr(tuple(block)), "axis": IntegerAttr(axis, i64), "other": other},
            result_types=[TileType.of([extent for extent in block if extent], element_of(view))],
        )

    def verify_(self) -> None:
        self.verify_block(self.result)
        self.verify_positions()
        verify_other(self.other, self.view_type)


def verify_other(other: Attribute | None, view_type: ViewType) -> None:
    """Check that `other` is a value of the view's element type."""
    if isa(other, FloatAttr | IntegerAttr) and other.type != view_type.element:
        raise VerifyException(f"other is of type {other.type}, the view holds {view_type.element}")


class WriteOp(AccessOp, ABC):
    """A write of one block, of elements inside the view's sizes only."""

    value = operand_def()
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$value `,` $view `[` $indices `]` `block` $block attr-dict `:` type($value) `,` type($view)"

    def __init__(self, value: SSAValue, view: SSAValue, indices: Sequence[SSAValue], block: Sequence[int]):
        operands = {"view": view, "indices": list(indices), "value": value}
        super().__init__(
            operands=[operands[name] for name, _ in self.get_irdl_definition().operands],
            properties={"block": IntegersAttr(tuple(block))},
        )

    def verify_(self) -> None:
        self.verify_block(self.value)


@irdl_op_definition
class StoreOp(WriteOp):
    """`tile.store %x, %O[%m, %z] block [64, 64] : !tile.tile<64x64xf32>, !tile.view<?x64xf32, [64, 1]>`"""

    name = "tile.store"


@irdl_op_definition
class AtomicAddOp(WriteOp):
    """
    Add a block to memory, each element indivisibly: several programs may add to one place. The order of the adds is
    not fixed, so float sums may differ in the last bits between runs of a grid on several threads.

    `tile.atomic_add %x, %S[%z] block [64] : !tile.tile<64xf32>, !tile.view<64xf32, [1]>`
    """

    name = "tile.atomic_add"

    def verify_(self) -> None:
        super().verify_()
        verify_addable(self.value)


class IndexedWriteOp(IndexedAccessOp, ABC):
    """A write whose positions on one axis come from a tile; elements are written in the order of the positions."""

    value = operand_def()
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$value `,` $view `[` $indices `]` `at` $positions `axis` $axis `block` $block attr-dict `:` "
        "type($value) `,` type($view) `,` type($positions)"
    )

    def __init__(
        self,
        value: SSAValue,
        view: SSAValue,
        indices: Sequence[SSAValue],
        positions: SSAValue,
        axis: int,
        block: Sequence[int],
    ):
        operands = {"view": view, "indices": list(indices), "positions": positions, "value": value}
        super().__init__(
            operands=[operands[name] for name, _ in self.get_irdl_definition().operands],
            properties={"block": IntegersAttr(tuple(block)), "axis": IntegerAttr(axis, i64)},
        )

    def verify_(self) -> None:
        self.verify_block(self.value)
        self.verify_positions()


@irdl_op_definition
class ScatterOp(IndexedWriteOp):
    """
    Of equal positions the last one's element stays.

    `tile.scatter %x, %O[%z, %z] at %ids axis 0 block [8, 64] : !tile.tile<8x64xf32>, !tile.view<99x64xf32, [64, 1]>,
    !tile.tile<8xi64>`
    """

    name = "tile.scatter"


@irdl_op_definition
class ScatterAddOp(IndexedWriteOp):
    """Add to memory at positions from a tile, each element indivisibly; equal positions add up."""

    name = "tile.scatter_add"

    def verify_(self) -> None:
        super().verify_()
        verify_addable(self.value)


def verify_addable(value: SSAValue) -> None:
    """Raise for i1, which has no sum."""
    if is_bool(element_of(value)):
        raise VerifyException("i1 cannot be added; use tile.cast")


LOADS = (LoadOp, GatherOp)
WRITES = (StoreOp, AtomicAddOp, ScatterOp, ScatterAddOp)
MEMORY = (ViewOp, *LOADS, *WRITES)
"""Every op on memory, in the order of this file."""
