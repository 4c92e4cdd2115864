"""Rules for chains of ops that move elements: one in another is often one, on fewer elements, or none."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from tempo_ir.dialects.sdg import (
    Access,
    AxisOp,
    BroadcastOp,
    ConcatOp,
    CumprodOp,
    CumsumOp,
    MaxOp,
    MeanOp,
    MinOp,
    PadOp,
    ProdOp,
    ReduceOp,
    ReshapeOp,
    ReverseOp,
    SdgOp,
    SliceOp,
    SortOp,
    SumOp,
    TransposeOp,
)
from tempo_ir.dialects.types import Extent, element, shape_of
from tempo_ir.index import Cond, Const, Entry, Expr, Index, Slice, as_expr, compare, conj, substitute
from tempo_ir.passes.building import full
from tempo_ir.passes.recurrences.reductions import identity
from tempo_ir.passes.simplify.rule import (
    Rewriting,
    Rules,
    bindings,
    current_point,
    made_by,
    read_point_through,
    through,
)
from tempo_ir.passes.simplify.shape import takes_all, within

# ---- reductions do not mind where elements stand ----


@through(TransposeOp)
def reduction_of_transpose(op: ReduceOp, rewriting: Rewriting, inner: TransposeOp, source: Access) -> bool:
    """A reduction of a transpose -> a reduction over the axes as they were; what is left is transposed, if need be."""
    axes = sorted(inner.permutation[axis] for axis in op.axes)
    left = [inner.permutation[axis] for axis in range(len(inner.permutation)) if axis not in op.axes]
    reduced = type(op)(source, axes, domain=op.domain)
    if left == sorted(left):
        return rewriting.become(op, reduced)
    permutation = [sorted(left).index(axis) for axis in left]
    moved = TransposeOp(Access(reduced.result, current_point(reduced)), permutation, domain=op.domain)
    return rewriting.become(op, moved, reduced)


@through(ReverseOp, SortOp)
def reduction_of_reordered(op: ReduceOp, rewriting: Rewriting, inner: ReverseOp | SortOp, source: Access) -> bool:
    """A reduction over an axis that was reversed or sorted -> of the axis as it was. Float sums round otherwise."""
    return inner.axis in op.axes and rewriting.become(op, type(op)(source, op.axes, domain=op.domain))


@through(PadOp)
def reduction_of_pad(op: ReduceOp, rewriting: Rewriting, inner: PadOp, source: Access) -> bool:
    """A reduction over axes that were padded by what it gives over nothing -> of what was padded."""
    amounts = zip(inner.low, inner.high, strict=True)
    padded = [axis for axis, ends in enumerate(amounts) if ends != (Const(0), Const(0))]
    if inner.value != identity(type(op), element(inner.result.type)) or not set(padded) <= set(op.axes):
        return False
    return rewriting.become(op, type(op)(source, op.axes, domain=op.domain))


# ---- axes of extent 1 ----


@through(ReshapeOp)
def transpose_of_unit_axes(op: TransposeOp, rewriting: Rewriting, inner: ReshapeOp, source: Access) -> bool:
    """A transpose of a reshape that keeps the order of all axes longer than 1 -> one reshape."""
    shape = shape_of(op.accesses[0].tensor)
    longer = [axis for axis in op.permutation if shape[axis] != 1]
    if longer != sorted(longer):
        return False
    return rewriting.become(op, ReshapeOp(source, shape_of(op.result.type), domain=op.domain))


@through(ReshapeOp)
def broadcast_of_leading_axes(op: BroadcastOp, rewriting: Rewriting, inner: ReshapeOp, source: Access) -> bool:
    """A broadcast of a reshape that put axes of extent 1 in front -> a broadcast of what was reshaped."""
    shape, own = shape_of(op.accesses[0].tensor), shape_of(source.tensor)
    leading = len(shape) - len(own)
    if leading <= 0 or shape != (*[1] * leading, *own):
        return False
    return rewriting.become(op, BroadcastOp(source, shape_of(op.result.type), domain=op.domain))


def one_element(op: AxisOp, rewriting: Rewriting) -> bool:
    """A scan, sort or reversal along an axis of extent 1 -> the operand."""
    return shape_of(op.accesses[0].tensor)[op.axis] == 1 and rewriting.read(op, op.accesses[0])


@through(ReverseOp, SortOp)
def sort_of_reordered(op: SortOp, rewriting: Rewriting, inner: ReverseOp | SortOp, source: Access) -> bool:
    """A sort along an axis that was reversed or sorted -> of the axis as it was."""
    return inner.axis == op.axis and rewriting.become(
        op, SortOp(source, op.axis, descending=op.descending, domain=op.domain)
    )


# ---- slices ----


@through(TransposeOp)
def slice_of_transpose(op: SliceOp, rewriting: Rewriting, inner: TransposeOp, source: Access) -> bool:
    """A slice of a transpose that leaves the axes in order -> a slice of what was transposed."""
    kept = [inner.permutation[axis] for axis, entry in enumerate(op.take) if isinstance(entry, Slice)]
    if kept != sorted(kept):
        return False
    take = [op.take[inner.permutation.index(axis)] for axis in range(len(op.take))]
    return rewriting.become(op, SliceOp(source, tuple(take), domain=op.domain))


@through(BroadcastOp)
def slice_of_broadcast(op: SliceOp, rewriting: Rewriting, inner: BroadcastOp, source: Access) -> bool:
    """A slice of a broadcast -> a smaller broadcast of a slice, or the slice alone."""
    own, whole = shape_of(source.tensor), shape_of(op.accesses[0].tensor)
    added = len(whole) - len(own)
    take: list[Entry] = []
    for extent, stretched, entry in zip(own, whole[added:], op.take[added:], strict=True):
        repeated = extent == 1 and stretched != 1
        take.append((full(1) if isinstance(entry, Slice) else Const(0)) if repeated else entry)
    result = shape_of(op.result.type)
    if all(map(takes_all, take, own)):
        return rewriting.become(op, BroadcastOp(source, result, domain=op.domain))
    part = SliceOp(source, tuple(take), domain=op.domain)
    if shape_of(part.result.type) == result:
        return rewriting.become(op, part)
    read = Access(part.result, current_point(part))
    return rewriting.become(op, BroadcastOp(read, result, domain=op.domain), part)


@through(ReverseOp)
def slice_of_reverse(op: SliceOp, rewriting: Rewriting, inner: ReverseOp, source: Access) -> bool:
    """One element of a reversed axis -> that counted from the other end: `reverse(x)[0]` -> `x[3]`."""
    entry, extent = op.take[inner.axis], shape_of(source.tensor)[inner.axis]
    if isinstance(entry, Slice):
        return False
    take = replaced(op.take, inner.axis, as_expr(extent) - 1 - entry)
    return rewriting.become(op, SliceOp(source, take, domain=op.domain))


def slice_of_concat(op: SliceOp, rewriting: Rewriting) -> bool:
    """A slice that stays within one of the tensors that were put together -> a slice of that one."""
    access = op.accesses[0]
    inner = made_by(access, ConcatOp)
    if inner is None:
        return False
    entry, start = op.take[inner.axis], Const(0)
    for operand in inner.accesses:
        source = read_point_through(access, operand, inner)
        if source is None:
            return False
        end = start + as_expr(shape_of(source.tensor)[inner.axis])
        if _proved(op, _inside(entry, start, end)):
            return rewriting.become(op, SliceOp(source, _moved(op.take, inner.axis, -start), domain=op.domain))
        start = end
    return False


@through(PadOp)
def slice_of_pad(op: SliceOp, rewriting: Rewriting, inner: PadOp, source: Access) -> bool:
    """A slice that takes nothing of what was put round a tensor -> a slice of the tensor."""
    take = op.take
    lows = [substitute(low, bindings(op.accesses[0], inner)) for low in inner.low]
    for axis, (low, extent) in enumerate(zip(lows, shape_of(source.tensor), strict=True)):
        if not _proved(op, _inside(op.take[axis], low, low + as_expr(extent))):
            return False
        take = _moved(take, axis, -low)
    return rewriting.become(op, SliceOp(source, take, domain=op.domain))


def _inside(entry: Entry, start: Expr, end: Expr) -> Cond:
    """That what an entry takes lies between two places. Empty slices take nothing wherever they stand."""
    first, stop = (entry.start, entry.stop) if isinstance(entry, Slice) else (entry, entry + 1)
    return conj(compare(">=", first, start), compare("<=", stop, end))


def _proved(op: SdgOp, cond: Cond) -> bool:
    from tempo_ir.index import isl

    return isl.prove(cond, op.space, op.domain)


def replaced(take: Index, axis: int, entry: Entry) -> Index:
    """The entries with another one for an axis."""
    return (*take[:axis], entry, *take[axis + 1 :])


def _moved(take: Index, axis: int, by: Expr) -> Index:
    return replaced(take, axis, within(Slice(by, by), take[axis]))


# ---- concatenation and padding ----


def concat_of_concat(op: ConcatOp, rewriting: Rewriting) -> bool:
    """Tensors put together of tensors put together along the axis -> put together at once."""
    operands: list[Access] = []
    for access in op.accesses:
        inner = made_by(access, ConcatOp)
        if inner is None or inner is op or inner.axis != op.axis:
            operands.append(access)
            continue
        sources = [read_point_through(access, operand, inner) for operand in inner.accesses]
        found = [source for source in sources if source is not None]
        if len(found) != len(sources):
            return False
        operands += found
    return len(operands) > len(op.operands) and rewriting.become(
        op, ConcatOp(*operands, axis=op.axis, domain=op.domain)
    )


def concat_of_slices(op: ConcatOp, rewriting: Rewriting) -> bool:
    """Neighbouring slices put together again -> one slice: `x[0:2], x[2:5]` -> `x[0:5]`."""
    first, *others = op.accesses
    joined = _slice_of(first, op.axis)
    if joined is None:
        return False
    source, take = joined
    last = take[op.axis]
    for access in others:
        found = _slice_of(access, op.axis)
        if found is None or found[0] != source:
            return False
        entry = found[1][op.axis]
        if replaced(found[1], op.axis, last) != replaced(take, op.axis, last) or entry.start != last.stop:
            return False
        last = entry
    whole = Slice(take[op.axis].start, last.stop)
    return len(others) > 0 and rewriting.become(op, SliceOp(source, replaced(take, op.axis, whole), domain=op.domain))


def _slice_of(access: Access, axis: int) -> tuple[Access, tuple[Slice, ...]] | None:
    """A slice that drops no axis, and takes every element of a range of one: what it takes, and of what."""
    inner = made_by(access, SliceOp)
    source = None if inner is None else read_point_through(access, inner.accesses[0], inner)
    if inner is None or source is None:
        return None
    take = substitute(inner.take, bindings(access, inner))
    ranges = tuple(entry for entry in take if isinstance(entry, Slice))
    return (source, ranges) if len(ranges) == len(take) and ranges[axis].step == 1 else None


@through(PadOp)
def pad_of_pad(op: PadOp, rewriting: Rewriting, inner: PadOp, source: Access) -> bool:
    """A pad round a pad by the same number -> one pad."""
    if inner.value != op.value:
        return False
    where = bindings(op.accesses[0], inner)
    low = _sums(op.low, [substitute(amount, where) for amount in inner.low])
    high = _sums(op.high, [substitute(amount, where) for amount in inner.high])
    return rewriting.become(op, PadOp(source, low, high, op.value, domain=op.domain))


def _sums(first: Sequence[Expr], second: Sequence[Expr]) -> list[Extent]:
    return [one + other for one, other in zip(first, second, strict=True)]


_REORDERED = (reduction_of_transpose, reduction_of_reordered)
RULES: Rules = MappingProxyType(
    {
        **dict.fromkeys((SumOp, ProdOp, MaxOp, MinOp), (*_REORDERED, reduction_of_pad)),
        MeanOp: _REORDERED,
        TransposeOp: (transpose_of_unit_axes,),
        BroadcastOp: (broadcast_of_leading_axes,),
        SortOp: (one_element, sort_of_reordered),
        ReverseOp: (one_element,),
        **dict.fromkeys((CumsumOp, CumprodOp), (one_element,)),
        SliceOp: (slice_of_transpose, slice_of_broadcast, slice_of_reverse, slice_of_concat, slice_of_pad),
        ConcatOp: (concat_of_concat, concat_of_slices),
        PadOp: (pad_of_pad,),
    }
)
