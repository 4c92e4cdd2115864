"""Derivatives of the ops that move, select or place elements."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast as typed

from tempo_ir.dialects.sdg import (
    Access,
    AccessOp,
    ArangeOp,
    ArgsortOp,
    BroadcastOp,
    ConcatOp,
    EqOp,
    GatherOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    ScatterAddOp,
    SliceOp,
    SortOp,
    TransposeOp,
)
from tempo_ir.dialects.types import Extent, Shape, element, shape_of
from tempo_ir.index import Entry, Expr, Slice, as_expr, free_symbols
from tempo_ir.passes.building import GraphBuilder, full, symbols_of
from tempo_ir.passes.gradients.step import Rule, Step, aligned, stripped, unbroadcast


def reshape(step: Step) -> None:
    """`dx = reshape(dy)`."""
    if all(extent == 1 for extent in shape_of(step.gradient.tensor)):
        step.send(0, step.build.reshape(step.gradient, ()))
        return
    step.send(0, step.build.reshape(step.expanded(), step.shape()))


def transpose(step: Step) -> None:
    """`dx = transpose(dy)` by the inverse permutation."""
    permutation = typed(TransposeOp, step.op).permutation
    shape = aligned(shape_of(step.gradient.tensor), len(permutation))
    if not stripped(shape):
        step.send(0, step.gradient)
        return
    inverse = sorted(range(len(permutation)), key=lambda axis: permutation[axis])
    full_rank = step.build.reshape(step.gradient, shape)
    step.send(0, step.build.build(TransposeOp, full_rank, permutation=inverse))


def broadcast(step: Step) -> None:
    """`dx` is the sum of `dy` over what was repeated."""
    step.send(0, unbroadcast(step.build, step.gradient, step.result_shape, step.shape()))


def slice_(step: Step) -> None:
    """`dx` is `dy` at what was taken, 0 elsewhere."""
    build, take, shape = step.build, typed(SliceOp, step.op).take, step.shape()
    gradient = build.reshape(step.expanded(), [e.extent if isinstance(e, Slice) else 1 for e in take])
    for axis, entry in enumerate(take):
        if isinstance(entry, Slice) and entry.step != 1:
            gradient = _strided_back(build, gradient, axis, entry, shape[axis])
    low: list[Expr] = []
    high: list[Expr] = []
    for have, extent, entry in zip(shape_of(gradient.tensor), shape, take, strict=True):
        first = _first(entry, extent)
        low.append(first)
        high.append(as_expr(extent) - as_expr(have) - first)
    if all(amount == as_expr(0) for amount in (*low, *high)):
        step.send(0, gradient)
        return
    symbols = free_symbols(tuple(low)) | free_symbols(tuple(high))
    step.send(0, build.build(PadOp, gradient, symbols=symbols, low=low, high=high, value=0.0))


def _first(entry: Entry, extent: Extent) -> Expr:
    """How many elements lie in front of what is taken; what is strided was put into a whole axis already."""
    if not isinstance(entry, Slice):
        return entry
    return as_expr(0) if entry.step != 1 or entry.extent == as_expr(extent) else entry.start


def _strided_back(build: GraphBuilder, gradient: Access, axis: int, entry: Slice, extent: Extent) -> Access:
    """Elements taken at a stride put back into an axis of zeros."""
    shape = shape_of(gradient.tensor)
    whole = (*shape[:axis], extent, *shape[axis + 1 :])
    symbols = free_symbols(entry) | symbols_of(whole)
    ids = build.build(ArangeOp, values=entry, symbols=free_symbols(entry))
    return build.build(ScatterAddOp, ids, gradient, axis=axis, shape=whole, symbols=symbols)


def pad(step: Step) -> None:
    """`dx` is the part of `dy` that was the operand."""
    op = typed(PadOp, step.op)
    take = tuple(Slice(before, before + as_expr(extent)) for before, extent in zip(op.low, step.shape(), strict=True))
    step.send(0, step.build.slice(step.expanded(), take))


def concat(step: Step) -> None:
    """Each operand gets its part of `dy`."""
    op = typed(ConcatOp, step.op)
    gradient = step.expanded()
    start = as_expr(0)
    for number in range(len(op.operands)):
        shape = step.shape(number)
        stop = start + as_expr(shape[op.axis])
        take: list[Entry] = [full(extent) for extent in shape]
        take[op.axis] = Slice(start, stop)
        if number in step.wanted:
            step.send(number, step.build.slice(gradient, tuple(take)))
        start = stop


def gather(step: Step) -> None:
    """Rows of `dy` are added at the ids that were read."""
    op = typed(GatherOp, step.op)
    shape = step.shape()
    ids = step.operand(1)
    scattered = step.build.build(
        ScatterAddOp, ids, step.expanded(), axis=op.axis, shape=shape, symbols=symbols_of(shape)
    )
    step.send(0, scattered)


def scatter_add(step: Step) -> None:
    """The updates get the rows of `dy` at their ids."""
    op = typed(ScatterAddOp, step.op)
    step.send(1, step.build.build(GatherOp, step.expanded(), step.operand(0), axis=op.axis))


def sort(step: Step) -> None:
    """Each element of `dy` goes back to where it came from."""
    op = typed(SortOp, step.op)
    build, axis, shape = step.build, op.axis, step.shape()
    sources = build.build(ArgsortOp, step.operand(), axis=axis, descending=op.descending)
    if len(shape) == 1:
        symbols = symbols_of(shape)
        step.send(0, build.build(ScatterAddOp, sources, step.expanded(), axis=0, shape=shape, symbols=symbols))
        return
    step.send(0, _unsorted(build, step.expanded(), sources, axis, shape))


def _unsorted(build: GraphBuilder, gradient: Access, sources: Access, axis: int, shape: Shape) -> Access:
    """Row by row: the sum over positions of the gradient where the source is the element (a table of n * n)."""
    extent = shape[axis]
    numbers = build.build(ArangeOp, values=full(extent), symbols=free_symbols(as_expr(extent)))
    elements = build.reshape(numbers, (extent, *[1] * (len(shape) - axis - 1)))
    table = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    is_source = build.build(EqOp, build.reshape(sources, table), elements)
    weights = build.cast(is_source, element(gradient.type))
    return build.sum(build.mul(weights, build.reshape(gradient, table)), (axis,))


def reverse(step: Step) -> None:
    """`dx` is `dy` from last to first."""
    step.send(0, step.build.build(ReverseOp, step.expanded(), axis=typed(ReverseOp, step.op).axis))


RULES: Mapping[type[AccessOp], Rule] = MappingProxyType(
    {
        ReshapeOp: reshape,
        TransposeOp: transpose,
        BroadcastOp: broadcast,
        SliceOp: slice_,
        PadOp: pad,
        ConcatOp: concat,
        GatherOp: gather,
        ScatterAddOp: scatter_add,
        SortOp: sort,
        ReverseOp: reverse,
    }
)
