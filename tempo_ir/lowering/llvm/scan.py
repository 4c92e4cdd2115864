"""`tile.scan`: written to scratch position by position along its axis, with lanes on the other axis."""

from __future__ import annotations

from tempo_ir.dialects.tile.attributes import element_of, is_unsigned, shape_of
from tempo_ir.dialects.tile.shape import ScanOp
from tempo_ir.lowering.llvm.address import Linear, linear
from tempo_ir.lowering.llvm.contraction import combine, for_each_block, identity
from tempo_ir.lowering.llvm.evaluate import At, Evaluator, Point
from tempo_ir.lowering.llvm.memory import element_layout
from tempo_ir.lowering.llvm.scratch import Scratch


def scan(evaluator: Evaluator, op: ScanOp, scratch: Scratch, lane: int | None) -> None:
    """Fill `scratch` with the scan; `lane` is the axis that it does not run along, or None."""
    shape, axis = shape_of(op.value), op.axis_number
    if len(shape) == 1:
        _along(evaluator, op, scratch, None)
        return

    other = 1 - axis

    def block(start: Linear, count: int) -> None:
        _along(evaluator, op, scratch, At(start, lane == other))

    for_each_block(evaluator, shape[other], evaluator.lanes if lane == other else 1, block)


def _along(evaluator: Evaluator, op: ScanOp, scratch: Scratch, across: At | None) -> None:
    """One running total, at one place (or for the lanes from there) on the other axis."""
    text, element = evaluator.text, element_of(op.value)
    extent, kind, unsigned = shape_of(op.value)[op.axis_number], op.kind.data, is_unsigned(element)
    register_kind = element_layout(element).kind
    initial = text.constant(identity(kind, register_kind, unsigned), register_kind)
    total = text.variable(text.broadcast(initial) if across is not None and across.lane else initial)
    with text.loop(text.constant(0, "i64"), text.constant(extent, "i64"), 1) as counter:
        position = linear(counter)
        if op.reverse is not None:
            position = Linear(extent - 1) - position
        point: Point = (At(position),)
        if across is not None:
            point = (At(position), across) if op.axis_number == 0 else (across, At(position))
        evaluator.frames.append({})
        x = evaluator.at(op.value, [point])[0]
        total.set(combine(kind, total.get(), text.broadcast(x) if total.lanes else x, unsigned))
        evaluator.frames.pop()
        scratch.write(point, total.get())
