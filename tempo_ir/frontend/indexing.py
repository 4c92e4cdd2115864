"""Reading `x[e0, e1, ..., s0, s1, ...]`: one entry per temporal dim of `x`, in order, then one per axis.

Entries over dims only change the index that the next op reads at; entries over axes record an sdg.slice (or a
gather, for a tensor of positions). Missing entries mean the current point of a dim and the whole of an axis; `...`
stands for the missing ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from tempo_ir import index as ix
from tempo_ir.dialects import sdg, types
from tempo_ir.frontend import shapes
from tempo_ir.frontend.dims import Condition, Dim, expression, is_integer
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.frontend.tensor import Tensor, record
from tempo_ir.index.expr import Entry, Expr, Slice

if TYPE_CHECKING:
    from tempo_ir.frontend.tensor import Key

WHOLE = slice(None)


def read(x: Tensor, key: Key) -> Tensor:
    """`x[key]`."""
    entries = key if isinstance(key, tuple) else (key,)
    over_dims, over_axes = split(x, entries)
    result = at_points(x, over_dims)
    if all(entry is WHOLE for entry in over_axes):
        return result
    leading = result.ndim - x.ndim
    return at_axes(result, (*(WHOLE for _ in range(leading)), *over_axes))


def split(x: Tensor, entries: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The entries over dims and those over axes, the missing ones filled in; None (a new axis) stays among the axes."""
    dims, rank = x.dims, x.ndim
    given = sum(entry is not None and entry is not Ellipsis for entry in entries)
    dots = [position for position, entry in enumerate(entries) if entry is Ellipsis]
    if len(dots) > 1:
        raise ProgramError("an index has at most one '...'")
    if given > len(dims) + rank:
        raise ProgramError(
            f"too many indices: {x.name} takes {len(dims) + rank}, one per dim ({', '.join(dims) or 'none'}) and "
            "one per axis "
            f"of {x.spec}, got {given}"
        )
    position = dots[0] if dots else len(entries)
    head, tail = list(entries[:position]), list(entries[position + 1 :])
    missing = [None] * (len(dims) + rank - given)
    filled: list[Any] = []
    count = 0
    for entry in (*head, *(_Current for _ in missing), *tail):
        if entry is None and count < len(dims):
            raise ProgramError(
                f"a new axis (None) stands among the dims of {x.name}: write it after their {len(dims)} indices"
            )
        filled.append(entry)
        count += entry is not None
    over_dims = [ix.Sym(name) if entry is _Current else entry for name, entry in zip(dims, filled, strict=False)]
    return over_dims, [WHOLE if entry is _Current else entry for entry in filled[len(dims) :]]


class _Current:
    """Stands for an entry that the user did not write."""


def at_points(x: Tensor, entries: Sequence[Any]) -> Tensor:
    """`x` read at one entry per dim; a read through a read becomes one where an index can say so."""
    dims = x.dims
    use = tuple(dim_entry(x, name, entry) for name, entry in zip(dims, entries, strict=True))
    if use == tuple(ix.Sym(name) for name in dims):
        return x
    composed = ix.compose(x.index, dims, use)
    if composed is not None:
        return Tensor(x.recording, x.value, composed)
    return Tensor(x.recording, shapes.materialised(x).value, use)


def dim_entry(x: Tensor, name: str, entry: Any) -> Entry:
    """One entry over a dim as an index entry. A negative literal counts from the end; so it does as an end of a
    slice."""
    bound = x.recording.dims[name]
    if isinstance(entry, ix.Sym):
        return entry
    if is_range(entry):
        return range_entry(entry, bound)
    if is_integer(entry):
        return from_end(entry, bound)
    if isinstance(entry, Tensor):
        raise ProgramError(
            f"the index of {x.name} over dim {name} is a tensor, known only when the program runs: index with dims "
            "and bounds, "
            f"or gather rows with {x.name}[..., 0:{bound}].take(ids)".replace("'", "")
        )
    if isinstance(entry, Condition):
        raise ProgramError(f"'{entry}' selects points of a definition (x[{entry}] = ...), it cannot be read at")
    raise ProgramError(
        f"the index of {x.name} over dim {name} is a {type(entry).__name__}: use an integer, a dim or a slice"
    )


def is_range(entry: Any) -> TypeGuard[slice[Any, Any, Any]]:
    """True for a Python slice."""
    return isinstance(entry, slice)


def range_entry(entry: slice[Any, Any, Any], bound: Expr) -> Slice:
    """A Python slice as an index entry over `bound` points."""
    step = 1 if entry.step is None else entry.step
    if not isinstance(step, int) or isinstance(step, bool) or step < 1:
        raise ProgramError(f"the step of a slice is a positive number, got {step}: to reverse, read at T - 1 - t")
    return Slice(slice_end(entry.start, bound, ix.Const(0)), slice_end(entry.stop, bound, bound), step)


def slice_end(value: Any, bound: Expr, default: Expr) -> Expr:
    """One end of a slice as an expression."""
    if value is None:
        return default
    if not is_integer(value):
        raise ProgramError(f"an end of a slice is an integer or a dim, got {type(value).__name__}")
    return from_end(value, bound)


def from_end(value: int | Dim, bound: Expr) -> Expr:
    """An index as an expression, a negative literal counted from the end."""
    written = expression(value)
    return bound + written if not isinstance(value, Dim) and int(value) < 0 else written


def at_axes(x: Tensor, entries: Sequence[Any]) -> Tensor:
    """`x` sliced along its axes: integers and dims drop an axis, slices keep it, None adds one, one tensor gathers."""
    extents = x.extents
    cut: list[Entry] = []
    kept: list[Any] = []  # what each axis of the result is: an old axis (None marks a new one, a Tensor a gathered one)
    for entry in entries:
        if entry is None:
            kept.append(None)
            continue
        axis = len(cut)
        if isinstance(entry, Tensor):
            kept.append(entry)
            cut.append(whole_axis(extents[axis]))
            continue
        cut.append(axis_entry(x, axis, extents[axis], entry))
        if isinstance(cut[-1], Slice):
            kept.append(WHOLE)
    result = x
    if cut != [whole_axis(extent) for extent in extents]:
        used = ix.free_symbols(tuple(cut))
        result = record(sdg.SliceOp, x, over=used, take=tuple(cut))
    return with_new_axes(gathered(result, [entry for entry in kept if entry is not None]), kept)


def gathered(x: Tensor, kept: Sequence[Any]) -> Tensor:
    """`x` with the rows that a tensor of positions names, along the axis that the tensor stands at."""
    positions = [(axis, entry) for axis, entry in enumerate(kept) if isinstance(entry, Tensor)]
    if not positions:
        return x
    if len(positions) > 1:
        raise ProgramError("only one index may be a tensor: gather along one axis at a time with .take(ids, axis)")
    ((axis, ids),) = positions
    return shapes.take(x, ids, axis)


def with_new_axes(x: Tensor, kept: Sequence[Any]) -> Tensor:
    """`x` with an axis of extent 1 at each None."""
    if not any(entry is None for entry in kept):
        return x
    if any(isinstance(entry, Tensor) for entry in kept):
        raise ProgramError("a new axis (None) and a tensor of positions in one index: index twice")
    extents = iter(x.extents)
    return shapes.reshape_to(x, [1 if entry is None else next(extents) for entry in kept])


def whole_axis(extent: types.Extent) -> Slice:
    """The whole of an axis."""
    return Slice(ix.Const(0), ix.as_expr(extent))


def axis_entry(x: Tensor, axis: int, extent: types.Extent, entry: Any) -> Entry:
    """One entry over an axis as an index entry, checked where the numbers are known."""
    bound = ix.as_expr(extent)
    if is_range(entry):
        return clipped(range_entry(entry, bound), extent)
    if is_integer(entry):
        point = from_end(entry, bound)
        if isinstance(point, ix.Const) and isinstance(extent, int) and not 0 <= point.value < extent:
            raise ProgramError(f"index {entry} is outside of axis {axis} of {x.name}, which has {extent} elements")
        return point
    if isinstance(entry, list | np.ndarray):
        raise ProgramError(
            "an index is an integer, a dim, a slice or a tensor: use .take(ids, axis) for a list of positions"
        )
    raise ProgramError(
        f"an index over axis {axis} of {x.name} is a {type(entry).__name__}: use an integer, a dim, a slice or a tensor"
    )


def clipped(entry: Slice, extent: types.Extent) -> Slice:
    """Numbers beyond a known extent are clipped, as in numpy."""

    def clip(end: Expr) -> Expr:
        if isinstance(end, ix.Const) and isinstance(extent, int):
            return ix.Const(min(max(end.value, 0), extent))
        return end

    return Slice(clip(entry.start), clip(entry.stop), entry.step)
