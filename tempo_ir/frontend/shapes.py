"""Operations that move elements: reshape, transpose, stack, concat, take, pad, sort."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from tempo_ir import index as ix
from tempo_ir.dialects import sdg, types
from tempo_ir.frontend import elementwise
from tempo_ir.frontend.dims import Dim, expression, is_integer
from tempo_ir.frontend.dtypes import DType, bool_, f32
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.frontend.recording import current
from tempo_ir.frontend.tensor import Tensor, Value, record
from tempo_ir.index.domain import Domain
from tempo_ir.index.expr import Slice

Extents = Sequence[types.Extent]


def axis_of(axis: int, rank: int, what: str) -> int:
    """An axis counted from the front; raises ProgramError if there is none such."""
    if not is_integer(axis) or isinstance(axis, Dim):
        raise ProgramError(f"{what}: an axis is an integer, got {axis!r}")
    if not -rank <= axis < rank:
        raise ProgramError(f"{what}: axis {axis} does not exist, the operand has {rank} axes")
    return axis % rank


def extent_of(value: Any, what: str) -> types.Extent:
    """An extent of a shape: an integer, or the expression of a Dim, 0 where that is less."""
    if isinstance(value, ix.Const | ix.Sym | ix.Binary | ix.MinMax):
        if isinstance(value, ix.Const):
            return value.value
        space = current().space
        dims = tuple(name for name in space.names if name in ix.free_symbols(value))
        known = Domain(dims).simplify(ix.maximum(0, value), space)
        return known.value if isinstance(known, ix.Const) else known
    if not is_integer(value):
        raise ProgramError(f"{what}: an extent is an integer or a dim, got {type(value).__name__}")
    if not isinstance(value, Dim) and value < 0:
        raise ProgramError(f"{what}: an extent is 0 or more, got {value}")
    return extent_of(expression(value), what)


def _one_by_one(given: Sequence[Any]) -> list[Any]:
    """Extents or axes that are given one by one, or as one tuple or its like. A Dim or a tensor is one of them."""
    (first, *more) = given or ((),)
    if more or not isinstance(first, Iterable) or isinstance(first, Dim | Tensor):
        return list(given)
    return list(cast("Iterable[Any]", first))


def extents_of(shape: Any, what: str) -> list[types.Extent]:
    """The extents of a shape, which is one extent or some. Raises ProgramError for what is none."""
    return [extent_of(extent, what) for extent in _one_by_one((shape,))]


def shape_text(extents: Extents) -> str:
    """A shape as numpy writes it."""
    return f"({', '.join(map(str, extents))}{',' if len(extents) == 1 else ''})"


def product(extents: Extents) -> ix.Expr:
    """The number of elements."""
    numbers = math.prod([extent for extent in extents if isinstance(extent, int)])
    return math.prod([extent for extent in extents if not isinstance(extent, int)], start=ix.Const(numbers))


def used_symbols(extents: Extents) -> frozenset[str]:
    """The dims and bounds that the extents name."""
    return frozenset[str]().union(*(ix.free_symbols(extent) for extent in extents if not isinstance(extent, int)))


def materialised(x: Tensor) -> Tensor:
    """`x` as a value of its own: the read becomes an op, so that it can be read at again."""
    return x if x.is_whole else record(sdg.ReshapeOp, x, result_type=types.tensor(x.dtype.element, x.extents))


def reshape_to(x: Tensor, extents: Extents) -> Tensor:
    """`x` in the given shape; nothing is recorded if it has that shape."""
    if tuple(extents) == x.extents:
        return x
    result_type = types.tensor(x.dtype.element, extents)
    return record(sdg.ReshapeOp, x, over=used_symbols(extents), result_type=result_type)


def reshape(x: Value, *shape: int | Dim | Iterable[int | Dim]) -> Tensor:
    """The same elements, in row-major order, in another shape; one extent may be -1."""
    source = elementwise.as_tensor(x)
    extents = [
        -1 if isinstance(extent, int) and extent == -1 else extent_of(extent, "reshape")
        for extent in _one_by_one(shape)
    ]
    if extents.count(-1) > 1:
        raise ProgramError(f"reshape to {shape_text(extents)}: only one extent may be -1")
    total = product(source.extents)
    if -1 in extents:
        others = product([extent for extent in extents if extent != -1])
        if (
            isinstance(total, ix.Const)
            and isinstance(others, ix.Const)
            and (others.value == 0 or total.value % others.value)
        ):
            raise ProgramError(
                f"cannot reshape {shape_text(source.extents)} to {shape_text(extents)}: {total} is no multiple of "
                f"{others}"
            )
        rest = Domain(source.dims).simplify(total // others, source.recording.space)
        extents[extents.index(-1)] = rest.value if isinstance(rest, ix.Const) else rest
    difference = product(extents) - total
    if isinstance(difference, ix.Const) and difference.value != 0:
        raise ProgramError(
            f"cannot reshape {shape_text(source.extents)} to {shape_text(extents)}: {total} elements are not "
            f"{product(extents)}"
        )
    return reshape_to(source, extents)


def flatten(x: Value, first: int = 0, last: int = -1) -> Tensor:
    """The axes from `first` to `last`, both included, as one."""
    source = elementwise.as_tensor(x)
    if source.ndim == 0:
        return reshape_to(source, [1])
    start, stop = axis_of(first, source.ndim, "flatten"), axis_of(last, source.ndim, "flatten") + 1
    merged = product(source.extents[start:stop])
    extent = merged.value if isinstance(merged, ix.Const) else merged
    return reshape_to(source, [*source.extents[:start], extent, *source.extents[stop:]])


def squeeze(x: Value, axis: int) -> Tensor:
    """`x` without an axis of extent 1."""
    source = elementwise.as_tensor(x)
    axis = axis_of(axis, source.ndim, "squeeze")
    if source.extents[axis] != 1:
        raise ProgramError(f"squeeze: axis {axis} of {shape_text(source.extents)} has not extent 1")
    return reshape_to(source, [*source.extents[:axis], *source.extents[axis + 1 :]])


def expand_dims(x: Value, axis: int) -> Tensor:
    """`x` with a new axis of extent 1 before `axis`."""
    source = elementwise.as_tensor(x)
    axis = axis_of(axis, source.ndim + 1, "expand_dims")
    return reshape_to(source, [*source.extents[:axis], 1, *source.extents[axis:]])


def transpose(x: Value, *axes: int | Iterable[int]) -> Tensor:
    """The axes in another order, one by one or as one tuple; reversed if none is given."""
    source = elementwise.as_tensor(x)
    listed = _one_by_one(axes)
    order = [axis_of(axis, source.ndim, "transpose") for axis in listed] or list(reversed(range(source.ndim)))
    if sorted(order) != list(range(source.ndim)):
        raise ProgramError(f"transpose: {tuple(listed)} is no order of the {source.ndim} axes")
    if order == sorted(order):
        return source
    return record(sdg.TransposeOp, source, permutation=order)


def broadcast_to(x: Value, shape: int | Dim | Iterable[int | Dim | ix.Expr]) -> Tensor:
    """`x` stretched to a shape, aligned right as in numpy."""
    source = elementwise.as_tensor(x)
    extents = extents_of(shape, "broadcast_to")
    if tuple(extents) == source.extents:
        return source
    static = [extent for extent in extents if isinstance(extent, int)]
    if (number := elementwise.constant_number(source)) is not None and len(static) == len(extents):
        return elementwise.constant(number, source.dtype, static)
    result_type = types.tensor(source.dtype.element, extents)
    return record(sdg.BroadcastOp, source, over=used_symbols(extents), result_type=result_type)


def concat(values: Sequence[Value], axis: int = 0) -> Tensor:
    """The tensors joined along an axis."""
    if not values:
        raise ProgramError("concat needs at least one tensor")
    operands = elementwise.unified(values)
    axis = axis_of(axis, operands[0].ndim, "concat")
    return operands[0] if len(operands) == 1 else record(sdg.ConcatOp, *operands, axis=axis)


def stack(values: Sequence[Value], axis: int = 0) -> Tensor:
    """The tensors, of one shape, along a new axis."""
    if not values:
        raise ProgramError("stack needs at least one tensor")
    operands = elementwise.unified(values)
    shape = max((operand.extents for operand in operands), key=len)
    wide = [broadcast_to(operand, shape) for operand in operands]
    return concat([expand_dims(operand, axis) for operand in wide], axis)


def unstack(x: Value, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis of known extent."""
    source = elementwise.as_tensor(x)
    axis = axis_of(axis, source.ndim, "unstack")
    count = source.extents[axis]
    if not isinstance(count, int):
        raise ProgramError(f"unstack: axis {axis} has the extent {count}, which is known only when the program runs")
    return tuple(along(source, axis, row) for row in range(count))


def along(x: Tensor, axis: int, entry: int | slice[int, int, None]) -> Tensor:
    """`x` indexed along one axis."""
    whole: slice[None, None, None] = slice(None)
    return x[(..., *[whole] * axis, entry, *[whole] * (x.ndim - axis - 1))]


def split(x: Value, sizes: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Consecutive parts along an axis: so many equal ones, or parts of the given sizes."""
    source = elementwise.as_tensor(x)
    axis = axis_of(axis, source.ndim, "split")
    extent = source.extents[axis]
    if not isinstance(extent, int):
        raise ProgramError(f"split: axis {axis} has the extent {extent}, which is known only when the program runs")
    if isinstance(sizes, int):
        if sizes < 1 or extent % sizes:
            raise ProgramError(f"split: {extent} elements do not make {sizes} equal parts")
        sizes = [extent // sizes] * sizes
    if sum(sizes) != extent:
        raise ProgramError(f"split: parts of {list(sizes)} do not add up to {extent}")
    ends = np.cumsum(sizes).tolist()
    parts = (slice(end - size, end) for end, size in zip(ends, sizes, strict=True))
    return tuple(along(source, axis, part) for part in parts)


def take(x: Value, indices: Value, axis: int = 0) -> Tensor:
    """The rows at integer positions along an axis; a position out of range is an error when the program runs."""
    source, positions = elementwise.as_tensor(x), elementwise.as_tensor(indices)
    if positions.dtype.kind != "int":
        raise ProgramError(f"take needs integer positions, got {positions.dtype}: cast them")
    return record(sdg.GatherOp, source, positions, axis=axis_of(axis, source.ndim, "take"))


def scatter_add(shape: int | Dim | Sequence[int | Dim], indices: Value, updates: Value, axis: int = 0) -> Tensor:
    """Zeros of `shape` to which the rows of `updates` are added at integer positions along an axis."""
    positions, rows = elementwise.as_tensor(indices), elementwise.as_tensor(updates)
    extents = extents_of(shape, "scatter_add")
    result_type = types.tensor(rows.dtype.element, extents)
    axis = axis_of(axis, len(extents), "scatter_add")
    return record(sdg.ScatterAddOp, positions, rows, over=used_symbols(extents), axis=axis, result_type=result_type)


def one_hot(indices: Value, depth: int, dtype: DType = f32) -> Tensor:
    """A new last axis of `depth` elements, 1 at the position and 0 elsewhere."""
    positions = elementwise.as_tensor(indices)
    hit = elementwise.equal(expand_dims(positions, positions.ndim), arange(depth))
    return hit if dtype == bool_ else elementwise.cast(hit, dtype)


def arange(start: int | Dim, stop: int | Dim | None = None, step: int = 1) -> Tensor:
    """The integers from `start` (or 0) below `stop`, i64; the ends may be dims."""
    first, last = (0, start) if stop is None else (start, stop)
    if not is_integer(first) or not is_integer(last):
        raise ProgramError("arange: the ends are integers or dims; tensors are known only when the program runs")
    if step < 1:
        raise ProgramError(f"arange: the step is a positive number, got {step}")
    points = Slice(expression(first), expression(last), step)
    return record(sdg.ArangeOp, over=ix.free_symbols(points), values=points)


def full(shape: int | Dim | Sequence[int | Dim], value: bool | float, dtype: DType | None = None) -> Tensor:
    """A tensor of one number."""
    extents = extents_of(shape, "full")
    number = elementwise.as_tensor(value) if dtype is None else elementwise.cast(value, dtype)
    return broadcast_to(number, extents)


def zeros(shape: int | Dim | Sequence[int | Dim], dtype: DType = f32) -> Tensor:
    """A tensor of zeros."""
    return full(shape, False if dtype == bool_ else 0, dtype)


def ones(shape: int | Dim | Sequence[int | Dim], dtype: DType = f32) -> Tensor:
    """A tensor of ones."""
    return full(shape, True if dtype == bool_ else 1, dtype)


def pad(x: Value, low: int, high: int, axis: int = 0, value: bool | float = 0) -> Tensor:
    """`x` with `low` elements of `value` before and `high` after, along an axis."""
    source = elementwise.as_tensor(x)
    axis = axis_of(axis, source.ndim, "pad")
    if not is_integer(low) or not is_integer(high):
        raise ProgramError(f"pad: the amounts are integers, got {low!r} and {high!r}")
    amounts = [[amount if other == axis else 0 for other in range(source.ndim)] for amount in (low, high)]
    return record(sdg.PadOp, source, low=amounts[0], high=amounts[1], value=value)


def sort(x: Value, axis: int = -1, descending: bool = False) -> Tensor:
    """The elements in order along an axis; equal ones keep their order, NaN comes last."""
    source = elementwise.as_tensor(x)
    return record(sdg.SortOp, source, axis=axis_of(axis, source.ndim, "sort"), descending=descending)


def argsort(x: Value, axis: int = -1, descending: bool = False) -> Tensor:
    """The positions that put the elements in order along an axis, i64."""
    source = elementwise.as_tensor(x)
    return record(sdg.ArgsortOp, source, axis=axis_of(axis, source.ndim, "argsort"), descending=descending)


def reverse(x: Value, axis: int = -1) -> Tensor:
    """The elements in reverse order along an axis."""
    source = elementwise.as_tensor(x)
    return record(sdg.ReverseOp, source, axis=axis_of(axis, source.ndim, "reverse"))
