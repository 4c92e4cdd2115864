"""Rules for the ops that move, select or place elements: chains become one op, ops that do nothing vanish."""

from __future__ import annotations

from types import MappingProxyType

from tempo_ir.dialects.sdg import (
    Access,
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)
from tempo_ir.dialects.types import shape_of
from tempo_ir.index import Const, Entry, Expr, Index, Slice, as_expr, minimum, substitute
from tempo_ir.passes.simplify.rule import Rewriting, Rules, bindings, through


def no_change(op: ReshapeOp | BroadcastOp, rewriting: Rewriting) -> bool:
    """A reshape or broadcast to the operand's own shape -> the operand."""
    return rewriting.read(op, op.accesses[0])


@through(ReshapeOp)
def reshape_of_reshape(op: ReshapeOp, rewriting: Rewriting, inner: ReshapeOp, source: Access) -> bool:
    """A reshape of a reshape -> one reshape."""
    return rewriting.become(op, ReshapeOp(source, shape_of(op.result.type), domain=op.domain))


@through(BroadcastOp)
def broadcast_of_broadcast(op: BroadcastOp, rewriting: Rewriting, inner: BroadcastOp, source: Access) -> bool:
    """A broadcast of a broadcast -> one broadcast."""
    return rewriting.become(op, BroadcastOp(source, shape_of(op.result.type), domain=op.domain))


def identity_transpose(op: TransposeOp, rewriting: Rewriting) -> bool:
    """A transpose that moves no axis -> the operand."""
    return op.permutation == tuple(range(len(op.permutation))) and rewriting.read(op, op.accesses[0])


@through(TransposeOp)
def transpose_of_transpose(op: TransposeOp, rewriting: Rewriting, inner: TransposeOp, source: Access) -> bool:
    """A transpose of a transpose -> one transpose."""
    permutation = [inner.permutation[axis] for axis in op.permutation]
    return rewriting.become(op, TransposeOp(source, permutation, domain=op.domain))


def whole_slice(op: SliceOp, rewriting: Rewriting) -> bool:
    """A slice that takes all of every axis -> the operand."""
    shape = shape_of(op.accesses[0].tensor)
    return all(map(takes_all, op.take, shape)) and rewriting.read(op, op.accesses[0])


def takes_all(entry: Entry, extent: int | Expr) -> bool:
    """Whether an entry takes a whole axis."""
    return isinstance(entry, Slice) and entry == Slice(Const(0), as_expr(extent))


@through(SliceOp)
def slice_of_slice(op: SliceOp, rewriting: Rewriting, inner: SliceOp, source: Access) -> bool:
    """A slice of a slice -> one slice: `x[2:8][1]` -> `x[3]`."""
    taken = substitute(inner.take, bindings(op.accesses[0], inner))
    return rewriting.become(op, SliceOp(source, nested(taken, op.take), domain=op.domain))


def nested(outer: Index, inner: Index) -> Index:
    """What is taken by `inner` of what was taken by `outer`; points of `outer` dropped their axes."""
    remaining = iter(inner)
    return tuple(within(entry, next(remaining)) if isinstance(entry, Slice) else entry for entry in outer)


def within(taken: Slice, entry: Entry) -> Entry:
    """The entry, counted in elements of `taken`, counted in elements of its axis."""
    if not isinstance(entry, Slice):
        return taken.start + entry * taken.step
    start, stop = (taken.start + limit * taken.step for limit in (entry.start, entry.stop))
    if taken.step != 1:  # the last step may end beyond the axis
        stop = minimum(stop, taken.stop)
    return Slice(start, stop, taken.step * entry.step)


def slice_of_range(op: SliceOp, rewriting: Rewriting) -> bool:
    """A slice of an axis that an index range made -> another index: `%x[0:T]` take `[t]` -> `%x[t]`."""
    access = op.accesses[0]
    ranges = [position for position, entry in enumerate(access.index) if isinstance(entry, Slice)]
    shape = shape_of(access.tensor)
    if all(takes_all(op.take[axis], shape[axis]) for axis in range(len(ranges))):
        return False
    index = list(access.index)
    kept: list[Entry] = []
    for axis, position in enumerate(ranges):
        entry = within(_range(access, position), op.take[axis])
        index[position] = entry
        if isinstance(entry, Slice):
            kept.append(Slice(Const(0), entry.extent))
    read = Access(access.value, tuple(index))
    return rewriting.become(op, SliceOp(read, (*kept, *op.take[len(ranges) :]), domain=op.domain))


def _range(access: Access, position: int) -> Slice:
    entry = access.index[position]
    assert isinstance(entry, Slice)
    return entry


def pad_of_nothing(op: PadOp, rewriting: Rewriting) -> bool:
    """A pad by 0 on all sides -> the operand."""
    return all(amount == Const(0) for amount in (*op.low, *op.high)) and rewriting.read(op, op.accesses[0])


def concat_of_one(op: ConcatOp, rewriting: Rewriting) -> bool:
    """A concatenation of one tensor -> the tensor."""
    return len(op.operands) == 1 and rewriting.read(op, op.accesses[0])


@through(ReverseOp)
def reverse_of_reverse(op: ReverseOp, rewriting: Rewriting, inner: ReverseOp, source: Access) -> bool:
    """Reversed twice along an axis -> the operand."""
    return inner.axis == op.axis and rewriting.read_proved(op, source)


RULES: Rules = MappingProxyType(
    {
        ReshapeOp: (no_change, reshape_of_reshape),
        BroadcastOp: (no_change, broadcast_of_broadcast),
        TransposeOp: (identity_transpose, transpose_of_transpose),
        SliceOp: (whole_slice, slice_of_slice, slice_of_range),
        PadOp: (pad_of_nothing,),
        ConcatOp: (concat_of_one,),
        ReverseOp: (reverse_of_reverse,),
    }
)
