"""Reads and writes of memory: the pointers of a block and its mask.

    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside_n = n < rows
    x = tl.load(x_ptr + head * 1024 + n[:, None] * 64 + d[None, :], mask=inside_n[:, None], other=0.0)

Scalar offsets come first, then a term per axis of the tile. Masks are left out where the block surely lies inside the
view. Each term is of 64 bits where it may leave 32.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import SSAValue

from tempo_ir.dialects.tile import memory
from tempo_ir.dialects.tile.attributes import bit_width, element_of, is_float, shape_of
from tempo_ir.dialects.tile.elementwise import MulOp
from tempo_ir.dialects.tile.shape import ExpandOp
from tempo_ir.lowering.triton.addresses import INT32, Bounds, constant_of, fits, fits_32_bits, is_natural, static_bounds
from tempo_ir.lowering.triton.axes import Lane
from tempo_ir.lowering.triton.expressions import is_narrow_float, library, number_of, number_text, triton_type
from tempo_ir.lowering.triton.uses import is_kept_narrow
from tempo_ir.lowering.triton.values import Limit, Values


def read_text(values: Values, op: memory.LoadOp | memory.GatherOp, checked: bool = False) -> str:
    """The load of a block; f16 and bf16 are computed in f32, where they are computed with."""
    pointer, mask = pointer_and_mask(values, op, list(op.tile_axes))
    other = "" if mask is None else f", mask={mask}, other={_other(op)}"
    narrow = is_narrow_float(op.view_type.element) and (checked or not is_kept_narrow(op.result))
    upcast = ".to(tl.float32)" if narrow else ""
    return f"tl.load({pointer}{other}){upcast}"


def _other(op: memory.LoadOp | memory.GatherOp) -> str:
    if op.other is None:
        return "0.0" if is_float(op.view_type.element) else "0"
    return number_text(number_of(op.other), op.view_type.element)


def write_text(values: Values, op: memory.WriteOp | memory.IndexedWriteOp, checked: bool = False) -> str:
    """The store of a block, or its addition."""
    written, axes = op.value, list(op.tile_axes)
    if isinstance(expand := written.owner, ExpandOp) and not checked and _is_inside(op, axes[expand.axis_number]):
        del axes[expand.axis_number]
        written = expand.value  # an axis of one element is no axis
    pointer, mask = pointer_and_mask(values, op, axes)
    element = element_of(written)
    adds = isinstance(op, (memory.AtomicAddOp, memory.ScatterAddOp))
    if adds and bit_width(element) < 32:
        raise values.error(f"{op.name} of {element}: GPUs add numbers of 32 and 64 bits to memory", op)
    value = values.typed(written)
    if is_narrow_float(element) and (checked or not is_kept_narrow(written)):
        value = values.cast(written, triton_type(element))
    masked = "" if mask is None else f", mask={mask}"
    return f"{'tl.atomic_add' if adds else 'tl.store'}({pointer}, {value}{masked})"


@dataclass(frozen=True, slots=True)
class _Place:
    """The indices along an axis: a tile's name and what spreads it over the tile, or a scalar."""

    text: str
    spread: str
    bounds: Bounds | None
    """Where they are 32-bit integers."""


def pointer_and_mask(values: Values, op: memory.AccessOp, tile_axes: list[int]) -> tuple[str, str | None]:
    """The pointers of a block, and its mask, None where everything lies inside; `tile_axes` are those of the view that
    the tile has."""
    view = op.view_op
    fixed = 0
    scalars: list[str] = []
    terms: list[str] = []
    masks: list[str] = []
    begin = None if view.offset is None else constant_of(view.offset)
    if begin is not None:
        fixed = begin
    elif view.offset is not None:
        scalars.append(values.bare(view.offset))
    kept = _long_axes(op, tile_axes)
    for axis, extent in enumerate(op.block.data):
        index, size, stride = op.indices[axis], _static(view.sizes[axis]), _static(view.strides[axis])
        positions = _positions(op, axis)
        start = constant_of(index)
        if axis not in kept or positions is not None or start is not None:
            if start is not None and (start == 0 or isinstance(stride, int)):
                fixed += start * stride if isinstance(stride, int) else 0
            else:
                scalars.append(_scaled(values, index, stride))
        if extent and axis in kept:
            spread = "" if len(tile_axes) < 2 else "[:, None]" if tile_axes.index(axis) == 0 else "[None, :]"
            place = _place(values, op, axis, spread)
            terms.append(_term(values, place, stride))
            if positions is not None:
                masks.append(_position_bounds(values, index, place, size))
            elif not _is_inside(op, axis):
                mask = values.inside(values.axes.access_lane(op, axis), limit_of(index, size))
                masks.append(f"{mask}{spread}")
    if isinstance(op, memory.ScatterOp):
        places = values.places((op.positions, 0)) if shape_of(op.positions)[0] > 1 else "tl.arange(0, 1)"
        last = values.call(library("last_of_equals"), values.use(op.positions), places)
        place = _place(values, op, op.axis_number, _spread_of(op, tile_axes))
        masks.append(f"{values.shared(last, 'last')}{place.spread}")
    offset = [*scalars, *([str(fixed)] if fixed > 0 else []), *terms]
    pointer = values.names[view.pointer] + "".join(f" + {term}" for term in offset)
    pointer += f" - {-fixed}" if fixed < 0 else ""
    return pointer, " & ".join(masks) if masks else None


def _long_axes(op: memory.AccessOp, tile_axes: list[int]) -> list[int]:
    """The axes of the tile whose indices stand in the pointers: not those of one element that surely is inside, over
    which the others spread, unless there are no others."""
    long = [axis for axis in tile_axes if op.block.data[axis] > 1 or not _is_inside(op, axis)]
    return long or tile_axes


def _is_inside(op: memory.AccessOp, axis: int) -> bool:
    """Whether the block surely lies inside the view along an axis."""
    size = _static(op.view_op.sizes[axis])
    return _positions(op, axis) is None and fits(op.indices[axis], op.block.data[axis], size)


def _spread_of(op: memory.IndexedAccessOp, tile_axes: list[int]) -> str:
    if len(tile_axes) < 2:
        return ""
    return "[:, None]" if tile_axes.index(op.axis_number) == 0 else "[None, :]"


def _static(dimension: int | SSAValue) -> int | SSAValue:
    """The number of a dimension where it has one."""
    if isinstance(dimension, int):
        return dimension
    number = constant_of(dimension)
    return dimension if number is None else number


def _positions(op: memory.AccessOp, axis: int) -> SSAValue | None:
    """The positions on an axis, where they come from a tile."""
    return op.positions if isinstance(op, memory.IndexedAccessOp) and op.axis_number == axis else None


def _place(values: Values, op: memory.AccessOp, axis: int, spread: str) -> _Place:
    """The indices of the block along an axis; positions without what they are counted from."""
    positions = _positions(op, axis)
    if positions is not None:
        wide = bit_width(element_of(positions)) == 64
        text = values.use(positions) if wide else values.shared(values.cast(positions, "tl.int64"), "places")
        return _Place(text, spread, None)
    lane, extent = values.axes.access_lane(op, axis), op.block.data[axis]
    bounds = (0, 0) if lane.start is None else static_bounds(lane.start)
    within = None if bounds is None else (bounds[0], bounds[1] + extent - 1)
    return _Place(values.lane(lane), spread, within)


def _term(values: Values, place: _Place, stride: int | SSAValue) -> str:
    """The offsets along an axis of the tile."""
    text = f"{place.text}{place.spread}"
    if isinstance(stride, SSAValue):
        return f"{text} * {values.use(stride)}"
    if stride == 1:
        return text
    if place.bounds is not None and max(map(abs, place.bounds)) * abs(stride) >= INT32:
        return f"{text}.to(tl.int64) * {stride}"
    return f"{text} * {stride}"


def _scaled(values: Values, index: SSAValue, stride: int | SSAValue) -> str:
    """A scalar offset."""
    if stride == 1:
        return values.bare(index)
    if isinstance(stride, SSAValue):
        return f"{values.use(index)} * {values.use(stride)}"
    bounds, owner = static_bounds(index), index.owner
    if isinstance(owner, MulOp) and values.is_written(index) and (factor := constant_of(owner.rhs)) is not None:
        return _scaled(values, owner.lhs, factor * stride)
    if bounds is None or fits_32_bits((min(end * stride for end in bounds), max(end * stride for end in bounds))):
        return f"{values.use(index)} * {stride}"
    return f"tl.cast({values.bare(index)}, tl.int64) * {stride}"


def limit_of(index: SSAValue, size: int | SSAValue) -> Limit:
    """What the indices of a block that begins at `index` must stay below."""
    return Limit(size, constant_of(index) or 0, is_natural(index))


def masks_of(values: Values, op: memory.AccessOp) -> Iterator[tuple[Lane, Limit]]:
    """The masks along axes of an access that hold wherever the indices are known."""
    for axis in op.tile_axes:
        index, size = op.indices[axis], _static(op.view_op.sizes[axis])
        known = isinstance(size, int) or size in values.kernel.body.block.args
        if known and op.block.data[axis] > 1 and _positions(op, axis) is None and not _is_inside(op, axis):
            yield values.axes.access_lane(op, axis), limit_of(index, size)


def _position_bounds(values: Values, index: SSAValue, place: _Place, size: int | SSAValue) -> str:
    """The mask along an axis of positions: which lie inside the view."""
    text = place.text if constant_of(index) == 0 else f"{values.use(index)} + {place.text}"
    limit = str(size) if isinstance(size, int) else values.use(size)
    return f"{values.shared(f'({text} >= 0) & ({text} < {limit})', 'inside')}{place.spread}"
