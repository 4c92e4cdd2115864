"""Counterparts of torch's operators that move elements, and of those that make tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from elementwise_table import NUMBERS
from oracle import DTYPES, Absent, Counterpart

import tempo_ir as tp
from tempo_ir.frontend.elementwise import as_tensor

WHOLE = slice(None)


def sizes(shape: Sequence[Any]) -> list[int]:
    """A shape given as one list, or as many numbers."""
    return list(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else list(shape)


def axis_of(dim: int, rank: int) -> int:
    return dim % max(rank, 1)


def at(x: Any, dim: int, entry: Any) -> Any:
    """`x` indexed along one axis."""
    return x[(..., entry, *[WHOLE] * (x.ndim - 1 - axis_of(dim, x.ndim)))]


def expand(x: Any, *shape: Any) -> Any:
    wanted = sizes(shape)
    given = [1] * (len(wanted) - x.ndim) + list(x.shape)
    return tp.broadcast_to(x, [old if new == -1 else new for old, new in zip(given, wanted, strict=True)])


def squeeze(x: Any, dim: Any = None) -> Any:
    listed = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    dropped = {axis_of(axis, x.ndim) for axis in listed}
    return tp.reshape(x, [n for axis, n in enumerate(x.shape) if axis not in dropped or n != 1])


def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    return tp.flatten(x, start_dim, end_dim)


def unflatten(x: Any, dim: int, parts: Any) -> Any:
    axis = axis_of(dim, x.ndim)
    known = math.prod(part for part in parts if part != -1)
    filled = [x.shape[axis] // known if part == -1 else part for part in parts]
    return tp.reshape(x, [*x.shape[:axis], *filled, *x.shape[axis + 1 :]])


def swap(x: Any, first: int, second: int) -> Any:
    if x.ndim == 0:
        return tp.reshape(x, ())
    order = list(range(x.ndim))
    order[first], order[second] = order[second], order[first]
    return tp.transpose(x, *order)


def movedim(x: Any, source: Any, destination: Any) -> Any:
    if x.ndim == 0:
        return tp.reshape(x, ())
    sources, ends = ([value] if isinstance(value, int) else list(value) for value in (source, destination))
    moved = {end % x.ndim: start % x.ndim for start, end in zip(sources, ends, strict=True)}
    rest = iter(axis for axis in range(x.ndim) if axis not in moved.values())
    return tp.transpose(x, *(moved[axis] if axis in moved else next(rest) for axis in range(x.ndim)))


def permute(x: Any, *dims: Any) -> Any:
    order = sizes(dims)
    return tp.transpose(x, *order) if order else tp.reshape(x, ())


def cat(tensors: Any, dim: int = 0) -> Any:
    kept = [tensor for tensor in tensors if tensor.shape != (0,)] or tensors[:1]  # torch drops tensors of shape (0,)
    return tp.concat(kept, dim)


def joined(axis: int, least: int) -> Any:
    """hstack, vstack and dstack."""

    def call(tensors: Any) -> Any:
        wide = [at_least(least)(tensor) for tensor in tensors]
        return tp.concat(wide, axis if wide[0].ndim > 1 else 0)

    return call


def at_least(rank: int) -> Any:
    """atleast_1d, atleast_2d and atleast_3d of one tensor."""

    def call(x: Any) -> Any:
        if x.ndim >= rank:
            return x
        if rank == 3 and x.ndim == 2:
            return tp.expand_dims(x, 2)
        if rank == 3 and x.ndim == 1:
            return tp.reshape(x, (1, x.shape[0], 1))
        return tp.reshape(x, (*[1] * (rank - x.ndim), *x.shape))

    return call


def each(function: Any) -> Any:
    """A function of one tensor or of several."""
    return lambda *tensors: [
        function(tensor) for tensor in (tensors[0] if isinstance(tensors[0], tuple | list) else tensors)
    ]


def column_stack(tensors: Any) -> Any:
    return tp.concat([x if x.ndim > 1 else tp.reshape(x, (-1 if x.ndim else 1, 1)) for x in tensors], 1)


def split(x: Any, size: Any, dim: int = 0) -> Any:
    extent = x.shape[dim]
    if isinstance(size, int):
        size = [min(size, extent - start) for start in range(0, max(extent, 1), size)] if size else [0]
    return tp.split(x, size, dim)


def chunk(x: Any, chunks: int, dim: int = 0) -> Any:
    return split(x, max(-(-x.shape[dim] // chunks), 1), dim)


def tensor_split(x: Any, parts: Any, dim: int = 0) -> Any:
    extent = x.shape[dim]
    if isinstance(parts, tp.Tensor):
        raise Absent("positions that are data")
    if isinstance(parts, int):
        return tp.split(x, [extent // parts + (part < extent % parts) for part in range(parts)], dim)
    ends = [0, *(min(max(end, 0), extent) for end in parts), extent]
    return [at(x, dim, slice(a, max(a, b))) for a, b in pairwise(ends)]


def narrow(x: Any, dim: int, start: Any, length: int) -> Any:
    if isinstance(start, tp.Tensor):
        raise Absent("a position that is data")
    start = start % x.shape[dim] if start < 0 else start
    return at(x, dim, slice(start, start + length))


def taken(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return at(x, dim, slice(start, end, step))


def getitem(x: Any, key: Any) -> Any:
    entries = list(key) if isinstance(key, tuple) else [key]
    for number, entry in enumerate(entries):
        if isinstance(entry, list):
            entries[number] = as_tensor(np.array(entry))
    tensors = [entry for entry in entries if isinstance(entry, tp.Tensor)]
    if any(tensor.dtype == tp.bool for tensor in tensors):
        raise Absent("an index by a mask")
    if len(tensors) > 1:
        raise Absent("an index by several tensors")
    taken = sum(entry is not None and entry is not ... for entry in entries)
    position = next((number for number, entry in enumerate(entries) if entry is ...), len(entries))
    rest = [WHOLE] * (x.ndim - taken)
    return x[(..., *entries[:position], *rest, *entries[position + 1 :])]  # the dims of the program come first


def from_front(ids: Any, extent: int) -> Any:
    """torch takes positions from the end, the language does not."""
    return tp.where(ids < 0, ids + extent, ids)


def index_select(x: Any, dim: int, ids: Any) -> Any:
    if x.ndim == 0:
        return tp.reshape(tp.take(tp.reshape(x, 1), ids, 0), ())
    return tp.take(x, tp.reshape(ids, -1) if ids.ndim == 0 else ids, dim)


def take(x: Any, ids: Any) -> Any:
    flat = tp.reshape(x, -1) if 0 not in x.shape else tp.reshape(x, 0)
    return tp.take(flat, from_front(ids, math.prod(x.shape)), 0)


def gather(x: Any, dim: int, ids: Any, **_: Any) -> Any:
    """By one-hot positions: the language gathers rows."""
    if x.ndim == 0 or ids.ndim == 0 or 0 in ids.shape:
        raise Absent("a gather of scalars, or of nothing")
    axis = dim % x.ndim
    part = x[(..., *(slice(0, n) if a != axis else WHOLE for a, n in enumerate(ids.shape)))]
    hit = tp.one_hot(ids, x.shape[axis], tp.bool)
    moved = tp.expand_dims(tp.transpose(part, *(a for a in range(x.ndim) if a != axis), axis), axis)
    if x.dtype == tp.bool:
        return tp.any(hit & moved, -1)
    return tp.sum(tp.where(hit, moved, 0), -1)


def take_along(x: Any, ids: Any, dim: Any = None) -> Any:
    if dim is None:
        return take(x, tp.reshape(ids, -1))
    raise Absent("a gather of elements")


def index_add(x: Any, dim: int, ids: Any, source: Any, *, alpha: Any = 1) -> Any:
    if x.ndim == 0:
        raise Absent("an index of a scalar")
    rows = source if source.ndim == x.ndim else tp.expand_dims(source, axis_of(dim, x.ndim))
    ids = tp.reshape(ids, -1) if ids.ndim == 0 else ids
    if isinstance(alpha, complex) or (x.dtype.kind != "float" and alpha != 1):
        raise Absent("a factor of integers")
    return x + tp.scatter_add(x.shape, ids, rows if alpha == 1 else alpha * rows, dim)


def flip(x: Any, *rest: Any, dims: Any = ()) -> Any:
    result = x
    for axis in sizes(rest) if rest else dims:
        result = tp.reverse(result, axis)
    return result if result is not x else tp.reshape(x, x.shape)


def roll(x: Any, shifts: Any, dims: Any = ()) -> Any:
    dims = [dims] if isinstance(dims, int) else dims
    shifts = [shifts] if isinstance(shifts, int) else shifts
    if not dims:
        return tp.reshape(roll(tp.reshape(x, math.prod(x.shape)), shifts, (0,)), x.shape)
    for shift, axis in zip(shifts, dims, strict=True):
        if x.ndim and x.shape[axis]:
            cut = -shift % x.shape[axis]
            x = tp.concat([at(x, axis, slice(cut, None)), at(x, axis, slice(0, cut))], axis)
    return x


def rot90(x: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    for _ in range(k % 4):
        x = swap(tp.reverse(x, dims[1]), *dims)
    return x


def repeat(x: Any, *counts: Any) -> Any:
    wanted = sizes(counts)
    wanted = [1] * (x.ndim - len(wanted)) + list(wanted)
    shape = [1] * (len(wanted) - x.ndim) + list(x.shape)
    split_shape = [n for count, extent in zip(wanted, shape, strict=True) for n in (1, extent)]
    wide = [n for count, extent in zip(wanted, shape, strict=True) for n in (count, extent)]
    result = tp.broadcast_to(tp.reshape(x, split_shape), wide)
    return tp.reshape(result, [count * extent for count, extent in zip(wanted, shape, strict=True)])


def repeat_interleave(x: Any, repeats: Any, dim: Any = None, **_: Any) -> Any:
    if not isinstance(repeats, int):
        raise Absent("repeats that are data")
    if dim is None:
        x, dim = tp.reshape(x, math.prod(x.shape)), 0
    elif x.ndim == 0:
        x = tp.reshape(x, 1)
    return tp.take(x, tp.arange(x.shape[dim] * repeats) // max(repeats, 1), dim)


def pad(x: Any, amounts: Any, mode: str = "constant", value: Any = None) -> Any:
    if mode != "constant":
        raise Absent(f"padding by {mode}")
    for pair in range(len(amounts) // 2):
        low, high = amounts[2 * pair : 2 * pair + 2]
        axis = x.ndim - 1 - pair
        kept = at(x, axis, slice(max(-low, 0), x.shape[axis] - max(-high, 0)))
        x = tp.pad(kept, max(low, 0), max(high, 0), axis, value or 0)
    return x


def ordered(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    if x.ndim == 0:
        return tp.reshape(x, ()), tp.full((), 0, tp.i64)
    return tp.sort(x, dim, descending), tp.argsort(x, dim, descending)


def topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if x.ndim == 0:
        raise Absent("the greatest of a scalar")
    return at(tp.sort(x, dim, largest), dim, slice(0, k))  # torch does not say which of ties it takes


def kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if x.ndim == 0:
        raise Absent("an order of a scalar")
    entry = slice(k - 1, k) if keepdim else k - 1
    return at(tp.sort(x, dim), dim, entry)


def triangle(lower: bool) -> Any:
    def call(x: Any, diagonal: int = 0) -> Any:
        distance = tp.arange(x.shape[-1]) - tp.arange(x.shape[-2])[..., None]
        return tp.where(distance <= diagonal if lower else distance >= diagonal, x, False if x.dtype == tp.bool else 0)

    return call


def diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    moved = movedim(x, (dim1, dim2), (-2, -1))
    rows, columns = moved.shape[-2:]
    first = max(-offset, 0)
    count = max(min(rows - first, columns - max(offset, 0)), 0)
    flat = tp.reshape(moved, (*moved.shape[:-2], rows * columns))
    return tp.take(flat, (tp.arange(count) + first) * columns + tp.arange(count) + max(offset, 0), flat.ndim - 1)


def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    if (dim1, dim2) != (-2, -1):
        raise Absent("a diagonal of other axes")
    size = x.shape[-1] + abs(offset)
    distance = tp.arange(size) - tp.arange(size)[:, None]
    wide = tp.pad(x, max(offset, 0), max(-offset, 0), x.ndim - 1, False if x.dtype == tp.bool else 0)
    return tp.where(distance == offset, tp.expand_dims(wide, x.ndim - 1), False if x.dtype == tp.bool else 0)


def meshgrid(*tensors: Any, indexing: str = "ij") -> Any:
    listed = list(tensors[0]) if isinstance(tensors[0], tuple | list) else list(tensors)
    listed = [tp.reshape(x, 1) if x.ndim == 0 else x for x in listed]
    if indexing == "xy" and len(listed) > 1:
        second, first, *others = meshgrid(listed[1], listed[0], *listed[2:])
        return [first, second, *others]
    shape = [x.shape[0] for x in listed]
    return [
        tp.broadcast_to(tp.reshape(x, (-1 if x.shape[0] else 0, *[1] * (len(listed) - 1 - axis))), shape)
        for axis, x in enumerate(listed)
    ]


def broadcast_tensors(*tensors: Any) -> Any:
    shape = torch.broadcast_shapes(*(tensor.shape for tensor in tensors))
    return [tp.broadcast_to(tensor, shape) for tensor in tensors]


def diff(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    if x.ndim == 0 or x.dtype == tp.bool:
        raise Absent("differences of a scalar or of booleans")
    parts = [part for part in (prepend, x, append) if part is not None and (n or part is x)]
    x = tp.concat(parts, dim) if len(parts) > 1 else tp.reshape(x, x.shape)
    for _ in range(min(n, x.shape[dim])):
        x = at(x, dim, slice(1, None)) - at(x, dim, slice(0, max(x.shape[dim] - 1, 0)))
    return x


def glu(x: Any, dim: int = -1) -> Any:
    value, gate = tp.split(x, 2, dim)
    return value * tp.sigmoid(gate)


def pixel_shuffle(x: Any, upscale_factor: int) -> Any:
    factor = upscale_factor
    *batch, channels, height, width = x.shape
    count = len(batch)
    parts = tp.reshape(x, (*batch, channels // factor**2, factor, factor, height, width))
    order = [*range(count), *(count + axis for axis in (0, 3, 1, 4, 2))]
    return tp.reshape(tp.transpose(parts, *order), (*batch, channels // factor**2, height * factor, width * factor))


def searchsorted(
    sequence: Any, values: Any, *, right: bool = False, side: Any = None, sorter: Any = None, out_int32: bool = False
) -> Any:
    if sorter is not None or not isinstance(values, tp.Tensor) or sequence.ndim != 1:
        raise Absent("a search of several sequences")
    right = right or side == "right"
    wide = tp.expand_dims(values, values.ndim)
    found = tp.sum(sequence <= wide if right else sequence < wide, -1)
    return tp.cast(found, tp.i32) if out_int32 else found


def isin(elements: Any, tests: Any) -> Any:
    wide = tp.expand_dims(elements, elements.ndim)
    return tp.any(tp.equal(wide, tp.reshape(tests, math.prod(tests.shape))), -1)


def arange(start: Any, end: Any = None, step: Any = 1, dtype: Any = None, **_: Any) -> Any:
    first, last = (0, start) if end is None else (start, end)
    if not all(isinstance(value, int) and not isinstance(value, bool) for value in (first, last, step)) or step < 1:
        raise Absent("a range of floats, or downwards")
    return tp.cast(tp.arange(first, last, step), DTYPES[dtype or torch.int64])


def filled(value: Any) -> Any:
    """zeros and ones of a shape."""

    def call(*shape: Any, dtype: Any = torch.float32, **_: Any) -> Any:
        return tp.full(sizes(shape), value != 0 if dtype == torch.bool else value, DTYPES[dtype])

    return call


def like(value: Any) -> Any:
    """zeros and ones in the shape of a tensor."""

    def call(x: Any, *, dtype: Any = None, **_: Any) -> Any:
        wanted = x.dtype if dtype is None else DTYPES[dtype]
        if wanted == tp.u8 and value < 0:
            raise Absent("a negative number of unsigned integers")
        return tp.full(x.shape, value != 0 if wanted == tp.bool else value, wanted)

    return call


def full(shape: Any, value: Any, *, dtype: Any = None, **_: Any) -> Any:
    return tp.full(shape, value, DTYPES[dtype] if dtype else None)


def eye(n: int, m: Any = None, *, dtype: Any = torch.float32, **_: Any) -> Any:
    hit = tp.arange(n)[:, None] == tp.arange(n if m is None else m)
    return hit if dtype == torch.bool else tp.cast(hit, DTYPES[dtype])


def linspace(start: Any, end: Any, steps: int, *, dtype: Any = torch.float32, **_: Any) -> Any:
    if dtype not in (torch.float64,) or isinstance(start, complex) or isinstance(end, complex):
        raise Absent("a range in another type than f64")
    return start + tp.cast(tp.arange(steps), tp.f64) * ((end - start) / max(steps - 1, 1))


SHAPES: dict[str, Counterpart] = {
    "reshape": Counterpart(lambda x, *shape: tp.reshape(x, sizes(shape))),
    "view": Counterpart(lambda x, *shape: tp.reshape(x, sizes(shape))),
    "view_as": Counterpart(lambda x, other: tp.reshape(x, other.shape)),
    "reshape_as": Counterpart(lambda x, other: tp.reshape(x, other.shape)),
    "ravel": Counterpart(lambda x: tp.reshape(x, math.prod(x.shape))),
    "flatten": Counterpart(flatten),
    "unflatten": Counterpart(unflatten),
    "squeeze": Counterpart(squeeze),
    "squeeze:multiple": Counterpart(squeeze),
    "unsqueeze": Counterpart(lambda x, dim: tp.expand_dims(x, dim)),
    "transpose": Counterpart(swap),
    "t": Counterpart(lambda x: tp.transpose(x) if x.ndim else tp.reshape(x, ())),
    "T": Counterpart(lambda x: tp.transpose(x) if x.ndim else tp.reshape(x, ())),
    "mT": Counterpart(lambda x: swap(x, -1, -2)),
    "permute": Counterpart(permute),
    "movedim": Counterpart(movedim),
    "expand": Counterpart(expand),
    "expand_as": Counterpart(lambda x, other: tp.broadcast_to(x, other.shape)),
    "broadcast_to": Counterpart(lambda x, shape: tp.broadcast_to(x, shape)),
    "broadcast_tensors": Counterpart(broadcast_tensors),
    "cat": Counterpart(cat),
    "stack": Counterpart(lambda tensors, dim=0: tp.stack(tensors, dim)),
    "hstack": Counterpart(joined(1, 1)),
    "vstack": Counterpart(joined(0, 2)),
    "dstack": Counterpart(joined(2, 3)),
    "column_stack": Counterpart(column_stack),
    "atleast_1d": Counterpart(each(at_least(1))),
    "atleast_2d": Counterpart(each(at_least(2))),
    "atleast_3d": Counterpart(each(at_least(3))),
    "split": Counterpart(split),
    "split:list_args": Counterpart(split),
    "split_with_sizes": Counterpart(split),
    "chunk": Counterpart(chunk),
    "tensor_split": Counterpart(tensor_split),
    "unbind": Counterpart(lambda x, dim=0: tp.unstack(x, dim)),
    "narrow": Counterpart(narrow),
    "select": Counterpart(lambda x, dim, position: at(x, dim, position)),
    "slice": Counterpart(taken),
    "__getitem__": Counterpart(getitem),
    "index_select": Counterpart(index_select),
    "take": Counterpart(take),
    "gather": Counterpart(gather),
    "take_along_dim": Counterpart(take_along),
    "index_add": Counterpart(index_add, dtypes=NUMBERS),
    "flip": Counterpart(flip),
    "fliplr": Counterpart(lambda x: tp.reverse(x, 1)),
    "flipud": Counterpart(lambda x: tp.reverse(x, 0)),
    "roll": Counterpart(roll),
    "rot90": Counterpart(rot90),
    "repeat": Counterpart(repeat),
    "tile": Counterpart(repeat),
    "repeat_interleave": Counterpart(repeat_interleave),
    "nn.functional.pad:constant": Counterpart(pad),
    "constant_pad_nd": Counterpart(lambda x, amounts, value=0: pad(x, amounts, value=value)),
    "sort": Counterpart(ordered),
    "argsort": Counterpart(lambda x, *a, **k: ordered(x, *a, **k)[1], gradient=False),
    "msort": Counterpart(lambda x: ordered(x, 0)[0]),
    "topk": Counterpart(topk, results=1),
    "kthvalue": Counterpart(kthvalue, results=1),
    "tril": Counterpart(triangle(True)),
    "triu": Counterpart(triangle(False)),
    "diagonal": Counterpart(diagonal),
    "linalg.diagonal": Counterpart(lambda x, *, offset=0, dim1=-2, dim2=-1: diagonal(x, offset, dim1, dim2)),
    "diag_embed": Counterpart(diag_embed),
    "diag": Counterpart(lambda x, offset=0: diagonal(x, offset) if x.ndim == 2 else diag_embed(x, offset)),
    "meshgrid:variadic_tensors": Counterpart(meshgrid),
    "meshgrid:list_of_tensors": Counterpart(meshgrid),
    "diff": Counterpart(diff),
    "nn.functional.glu": Counterpart(glu),
    "nn.functional.pixel_shuffle": Counterpart(pixel_shuffle),
    "searchsorted": Counterpart(searchsorted, spread=False),
    "bucketize": Counterpart(lambda x, ends, **options: searchsorted(ends, x, **options), gradient=False, spread=False),
    "isin": Counterpart(isin, gradient=False),
    "arange": Counterpart(arange),
    "zeros": Counterpart(filled(0)),
    "ones": Counterpart(filled(1)),
    "full": Counterpart(full),
    "zeros_like": Counterpart(like(0)),
    "ones_like": Counterpart(like(1)),
    "full_like": Counterpart(lambda x, value, **options: like(value)(x, **options)),
    "eye": Counterpart(eye),
    "linspace": Counterpart(linspace),
}
