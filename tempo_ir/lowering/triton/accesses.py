"""Reads and writes of memory: the pointers of a block and its mask.

    inside = n0 + range_16[:, None] < rows
    x = tl.load(x_ptr + (n0 + program * 1024) + range_16[:, None] * 64 + range_64[None, :], mask=inside, other=0)

Scalar offsets come first, summed once; then a term per axis of the tile. Masks are left out where the block surely lies
inside the view. Offsets are summed in 64 bits where they may leave 32.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from tempo_ir.dialects.tile import memory
from tempo_ir.dialects.tile.attributes import bit_width, element_of, shape_of
from tempo_ir.lowering.triton.addresses import INT32, Bounds, constant_of, fits, fits_32_bits, is_natural, static_bounds
from tempo_ir.lowering.triton.expressions import is_narrow_float, library, number_of, number_text, triton_type
from tempo_ir.lowering.triton.values import Values


def read_text(values: Values, op: memory.LoadOp | memory.GatherOp) -> str:
    """The load of a block; f16 and bf16 are computed in f32."""
    pointer, mask = pointer_and_mask(values, op)
    other = "" if mask is None else f", mask={mask}, other={_other(op)}"
    upcast = ".to(tl.float32)" if is_narrow_float(op.view_type.element) else ""
    return f"tl.load({pointer}{other}){upcast}"


def _other(op: memory.LoadOp | memory.GatherOp) -> str:
    return "0" if op.other is None else number_text(number_of(op.other))


def write_text(values: Values, op: memory.WriteOp | memory.IndexedWriteOp) -> str:
    """The store of a block, or its addition."""
    pointer, mask = pointer_and_mask(values, op)
    element = element_of(op.value)
    adds = isinstance(op, (memory.AtomicAddOp, memory.ScatterAddOp))
    if adds and bit_width(element) < 32:
        raise values.error(f"{op.name} of {element}: GPUs add numbers of 32 and 64 bits to memory", op)
    value = values.typed(op.value)
    if is_narrow_float(element):
        value = values.cast(op.value, triton_type(element))
    masked = "" if mask is None else f", mask={mask}"
    return f"{'tl.atomic_add' if adds else 'tl.store'}({pointer}, {value}{masked})"


@dataclass(frozen=True, slots=True)
class _Offset:
    """A scalar offset; `bounds` where it is a 32-bit integer."""

    text: str
    bounds: Bounds | None


def pointer_and_mask(values: Values, op: memory.AccessOp) -> tuple[str, str | None]:
    """The pointers of a block, and its mask, None where everything lies inside."""
    view = op.view_op
    fixed = 0
    scalars: list[_Offset] = []
    terms: list[str] = []
    masks: list[str] = []
    begin = None if view.offset is None else constant_of(view.offset)
    if begin is not None:
        fixed = begin
    elif view.offset is not None:
        scalars.append(_Offset(values.use(view.offset), static_bounds(view.offset)))
    for axis, extent in enumerate(op.block.data):
        index, size, stride = op.indices[axis], _static(view.sizes[axis]), _static(view.strides[axis])
        start = constant_of(index)
        if start is not None and isinstance(stride, int):
            fixed += start * stride
        else:
            scalars.append(_scaled(values, index, stride))
        if not extent:
            continue
        place = _place(values, op, axis)
        terms.append(_term(values, place, extent, stride))
        positions = _positions(op, axis) is not None
        if positions or not fits(index, extent, size):
            masks += _bounds(values, place, index, size, positions)
    if isinstance(op, memory.ScatterOp):
        last = values.call(library("last_of_equals"), values.use(op.positions), values.range(shape_of(op.positions)[0]))
        masks.append(f"{values.shared(last, 'last')}{_spread(op, op.axis_number)}")
    pointer = values.names[view.pointer] + _summed(scalars, fixed) + "".join(f" + {term}" for term in terms)
    if not masks:
        return pointer, None
    mask = masks[0] if len(masks) == 1 else " & ".join(f"({m})" if " < " in m or " >= " in m else m for m in masks)
    return pointer, values.shared(mask, "inside")


def _static(dimension: int | SSAValue) -> int | SSAValue:
    """The number of a dimension where it has one."""
    if isinstance(dimension, int):
        return dimension
    number = constant_of(dimension)
    return dimension if number is None else number


def _positions(op: memory.AccessOp, axis: int) -> SSAValue | None:
    """The positions on an axis, where they come from a tile."""
    return op.positions if isinstance(op, memory.IndexedAccessOp) and op.axis_number == axis else None


def _place(values: Values, op: memory.AccessOp, axis: int) -> str:
    """The indices of the block along an axis, less where it starts, spread over the tile."""
    positions = _positions(op, axis)
    if positions is None:
        text = values.range(op.block.data[axis])
    else:
        wide = bit_width(element_of(positions)) == 64
        text = values.use(positions) if wide else values.shared(values.cast(positions, "tl.int64"), "places")
    return f"{text}{_spread(op, axis)}"


def _spread(op: memory.AccessOp, axis: int) -> str:
    """What spreads the indices along an axis over the tile."""
    if len(op.tile_axes) < 2:
        return ""
    return "[:, None]" if op.tile_axes.index(axis) == 0 else "[None, :]"


def _term(values: Values, place: str, extent: int, stride: int | SSAValue) -> str:
    """The offsets along an axis of the tile."""
    if isinstance(stride, SSAValue):
        return f"{place} * {values.use(stride)}"
    if stride == 1:
        return place
    if extent * abs(stride) >= INT32:
        return f"{place}.to(tl.int64) * {stride}"
    return f"{place} * {stride}"


def _scaled(values: Values, index: SSAValue, stride: int | SSAValue) -> _Offset:
    text, bounds = values.use(index), static_bounds(index)
    if isinstance(stride, SSAValue):
        return _Offset(f"{text} * {values.use(stride)}", None)
    if stride == 1:
        return _Offset(text, bounds)
    if bounds is None:
        return _Offset(f"{text} * {stride}", None)
    ends = sorted((bounds[0] * stride, bounds[1] * stride))
    if fits_32_bits((ends[0], ends[1])):
        return _Offset(f"{text} * {stride}", (ends[0], ends[1]))
    return _Offset(f"tl.cast({text}, tl.int64) * {stride}", None)


def _summed(scalars: list[_Offset], fixed: int) -> str:
    """` + offset`, in 64 bits if any part is or the sum may need it."""
    ordered = sorted(scalars, key=lambda offset: offset.bounds is not None)
    texts = [offset.text for offset in ordered]
    known = [offset.bounds for offset in ordered if offset.bounds is not None]
    ends = sum(low for low, _ in known) + min(fixed, 0), sum(high for _, high in known) + max(fixed, 0)
    if len(known) == len(ordered) and texts and not fits_32_bits(ends):
        texts[0] = f"tl.cast({texts[0]}, tl.int64)"
    if fixed:
        texts.append(str(fixed))
    if not texts:
        return ""
    return f" + ({' + '.join(texts)})" if len(texts) > 1 else f" + {texts[0]}"


def _bounds(values: Values, place: str, index: SSAValue, size: int | SSAValue, positions: bool) -> list[str]:
    """The conditions under which elements lie inside the view."""
    absolute = place if constant_of(index) == 0 else f"{values.use(index)} + {place}"
    limit = str(size) if isinstance(size, int) else values.use(size)
    conditions = [f"{absolute} < {limit}"]
    if positions or not is_natural(index):
        conditions.insert(0, f"{absolute} >= 0")
    return conditions
