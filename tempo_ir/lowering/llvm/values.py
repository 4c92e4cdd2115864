"""Handlers of the ops that only make or move values, and of elementwise ops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tempo_ir.dialects.tile.attributes import element_of, shape_of
from tempo_ir.dialects.tile.elementwise import CastOp, ElementwiseOp
from tempo_ir.dialects.tile.memory import StoreOp
from tempo_ir.dialects.tile.shape import BroadcastOp, ConstOp, ExpandOp, InRangeOp, IotaOp, SplatOp, TransOp
from tempo_ir.lowering.llvm import elementwise
from tempo_ir.lowering.llvm.access import first_lanes, number_of
from tempo_ir.lowering.llvm.address import materialize
from tempo_ir.lowering.llvm.evaluate import Evaluator, Point
from tempo_ir.lowering.llvm.memory import element_layout
from tempo_ir.lowering.llvm.text import Register


def const(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> list[Register]:
    """A literal."""
    op = value.owner
    assert isinstance(op, ConstOp)
    layout = element_layout(op.number.type)
    return [evaluator.text.constant(number_of(op.number), layout.kind)] * len(points)


def splat(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> list[Register]:
    """The scalar, wherever it is asked for."""
    op = value.owner
    assert isinstance(op, SplatOp)
    return [evaluator.scalar(op.value)] * len(points)


def broadcast(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> list[Register]:
    """Position 0 of the axes of extent 1."""
    op = value.owner
    assert isinstance(op, BroadcastOp)
    return evaluator.operand(op.value, points)


def expand(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> list[Register]:
    """The point without the new axis."""
    op = value.owner
    assert isinstance(op, ExpandOp)
    axis = op.axis_number
    return evaluator.at(op.value, [(*point[:axis], *point[axis + 1 :]) for point in points])


def trans(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> list[Register]:
    """The point with its axes swapped."""
    op = value.owner
    assert isinstance(op, TransOp)
    return evaluator.at(op.value, [point[::-1] for point in points])


def iota(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> list[Register]:
    """start + position"""
    op, text = value.owner, evaluator.text
    assert isinstance(op, IotaOp)
    kind, start = element_layout(element_of(value)).kind, evaluator.index(op.start)
    registers: list[Register] = []
    for (at,) in points:
        first = materialize(text, start + at.position)
        if first.is_constant:
            first = text.constant(int(first.name), kind)
        elif kind != "i64":
            first = text.convert("trunc", first, kind)
        registers.append(text.broadcast(first) + text.iota(kind) if at.lane else first)
    return registers


def in_range(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> list[Register]:
    """start + position < limit; true where the whole block is known to be inside."""
    op, text = value.owner, evaluator.text
    assert isinstance(op, InRangeOp)
    start, limit = evaluator.index(op.start), evaluator.index(op.limit)
    if evaluator.bounds.prove(limit - start - shape_of(value)[0]):
        return [text.constant(1, "i1")] * len(points)
    registers: list[Register] = []
    for (at,) in points:
        room = limit - start - at.position
        if at.lane:
            mask = first_lanes(text, room)
            registers.append(text.constant(1, "i1") if mask is None else mask)
        else:
            registers.append(text.compare("sgt", materialize(text, room), 0))
    return registers


def elementwise_op(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> list[Register]:
    """Any elementwise op, operand by operand."""
    op = value.owner
    assert isinstance(op, ElementwiseOp)
    operands = [evaluator.operand(operand, points) for operand in op.operands]
    if type(op) in evaluator.called:
        (registers,) = operands
        return elementwise.apply_shared(op, registers)
    only_stored = isinstance(op, CastOp) and all(isinstance(use.operation, StoreOp) for use in value.uses)
    return [elementwise.apply(op, registers, only_stored) for registers in zip(*operands, strict=True)]
