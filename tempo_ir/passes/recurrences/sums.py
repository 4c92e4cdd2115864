"""Reductions over axes, sums, products, extremes and means, as recurrences."""

from __future__ import annotations

from tempo_ir.dialects.sdg import Access, DivOp, MeanOp, ReduceOp, SumOp
from tempo_ir.dialects.types import as_tensor, element, shape_of, tensor
from tempo_ir.passes.building import GraphBuilder, symbols_of
from tempo_ir.passes.recurrences.growth import Growth
from tempo_ir.passes.recurrences.reductions import accumulator
from tempo_ir.passes.recurrences.rows import SAME, Change, Maxima, Rows, Scaled
from tempo_ir.passes.recurrences.running import Recurrence


def unlifted_reduction(op: ReduceOp, growth: Growth, maxima: Maxima) -> Access | None:
    """A reduction along an axis that grows as a recurrence, inserted before it; None, and nothing done, where its rows
    do not stay."""
    (operand,) = op.accesses
    result = as_tensor(op.result.type)
    if growth.walk.dim in symbols_of(shape_of(result)):
        return None
    rows = Rows(growth, maxima)
    for axis in op.axes:
        if shape_of(operand.tensor)[axis] != growth.extent:
            continue
        change = rows.change(operand, axis)
        if change is not None and _fits(op, change):
            return _recurrence(op, growth, rows, axis, change)
    return None


def _fits(op: ReduceOp, change: Change) -> bool:
    if change == SAME:
        return True
    if not isinstance(op, SumOp | MeanOp) or not isinstance(change, Scaled):
        return False
    return not change.alone or len(op.axes) == 1


def _recurrence(op: ReduceOp, growth: Growth, rows: Rows, axis: int, change: Change) -> Access:
    (operand,) = op.accesses
    kind = SumOp if isinstance(op, MeanOp) else type(op)
    result = as_tensor(op.result.type)
    wide = accumulator(type(op), element(result))

    def part(build: GraphBuilder) -> Access:
        others = [other - (other > axis) for other in op.axes if other != axis]
        row = rows.row(build, operand, axis)
        return build.reduce(kind, build.cast(row, wide) if others else row, others)

    def whole(build: GraphBuilder) -> Access:
        return build.reduce(kind, build.cast(operand, wide), op.axes)

    def earlier(build: GraphBuilder, total: Access) -> Access:
        return change.apply(build, total) if isinstance(change, Scaled) else total

    running = Recurrence(op, growth, part, whole, earlier, result).build()
    build = GraphBuilder(op, op.domain, op.location)
    if isinstance(op, MeanOp):
        count = build.count([shape_of(operand.tensor)[number] for number in op.axes], wide)
        quotient = tensor(wide, shape_of(result))
        running = build.build(DivOp, running, count, result_type=quotient)
    return build.cast(running, element(result))
