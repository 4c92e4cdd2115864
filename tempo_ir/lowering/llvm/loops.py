"""`tile.for`: carried tiles live in scratch, carried scalars in variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.tile.attributes import element_of, shape_of
from tempo_ir.dialects.tile.elementwise import CastOp, ElementwiseOp, SelectOp
from tempo_ir.dialects.tile.memory import AccessOp, LoadOp
from tempo_ir.dialects.tile.shape import DotOp, TransOp
from tempo_ir.dialects.tile.structure import ForOp
from tempo_ir.lowering.llvm.address import Linear, linear, materialize
from tempo_ir.lowering.llvm.ahead import Ahead
from tempo_ir.lowering.llvm.evaluate import is_index
from tempo_ir.lowering.llvm.lane_sums import is_summed_into_lanes
from tempo_ir.lowering.llvm.lanes import GATHER
from tempo_ir.lowering.llvm.memory import element_layout
from tempo_ir.lowering.llvm.plan import Reads, reads
from tempo_ir.lowering.llvm.scratch import Scratch
from tempo_ir.lowering.llvm.sink import end_mask, fill
from tempo_ir.lowering.llvm.text import Register, Variable

if TYPE_CHECKING:
    from tempo_ir.lowering.llvm.statements import Lowering


@dataclass(frozen=True)
class TileCarry:
    """A carried tile: its scratch, and the lanes' axis of what fills it."""

    scratch: Scratch
    lane: int | None


Carry = TileCarry | Variable


def lower_loop(lowering: Lowering, op: ForOp) -> None:
    """
    A loop whose trips are known to be whole is one loop, and so is one whose products end with the last row anyway.
    Else, where masks depend on it, a main loop of whole steps and one more trip for the rest.
    """
    text = lowering.evaluator.text
    index = lowering.evaluator.index
    low, high, step = index(op.low), index(op.high), op.step_size
    carries = [_carry(lowering, op, i) for i in range(len(op.init))]
    length = high - low
    whole = step == 1 or (length.is_constant and length.constant % step == 0)
    if length.is_constant and 0 < length.constant <= step:
        _body(lowering, op, low, carries)
    elif whole or not lowering.evaluator.bounds.assume or _ends_with_rows(lowering, op):
        _counted(lowering, op, low, high, carries, whole)
    else:
        rest = text.new(f"srem {materialize(text, length).typed}, {step}", "i64")
        end = materialize(text, high) - rest
        lowering.evaluator.bounds.learn(end, lower=[low], upper=[high - 1])
        _counted(lowering, op, low, linear(end), carries, whole=True)
        with text.when(text.compare("slt", end, materialize(text, high))):
            _body(lowering, op, linear(end), carries)
    for result, carry in zip(op.carried, carries, strict=True):
        lowering.evaluator.environment[result] = _value(carry, result)


def _ends_with_rows(lowering: Lowering, op: ForOp) -> bool:
    """Does a trip read by the counter nothing but rows that are the right operands of products, which go over those
    that are there, as the blocks of keys of attention are? Then no trip is without the tests of the last one, and these
    are few beside the products."""
    counter = op.body.block.args[0]
    reads = [inner for inner in op.body.block.ops if isinstance(inner, AccessOp) and counter in inner.indices]
    return bool(reads) and all(
        isinstance(inner, LoadOp)
        and inner.other is None
        and all(_goes_over_rows(lowering, inner.result, axis) for axis in _axes_of(inner, counter))
        for inner in reads
    )


def _axes_of(op: LoadOp, counter: SSAValue) -> list[int]:
    """The axes of a tile that begin at the counter."""
    return [axis for axis, of_view in enumerate(op.tile_axes) if op.indices[of_view] is counter]


def _goes_over_rows(lowering: Lowering, value: SSAValue, axis: int) -> bool:
    """Is all that is done with a tile such a product, of the rows along an axis of it?"""
    return all(_is_such_product(lowering, use.operation, value, axis) for use in value.uses)


def _is_such_product(lowering: Lowering, user: Operation, value: SSAValue, axis: int) -> bool:
    if isinstance(user, TransOp | CastOp):
        return _goes_over_rows(lowering, user.result, 1 - axis if isinstance(user, TransOp) else axis)
    if not isinstance(user, DotOp) or user.rhs is not value or user.lhs is value:
        return False
    if axis == 0:
        return lowering.plan.runs_along(value, 1) and not is_summed_into_lanes(lowering.evaluator, user)
    columns = shape_of(value)[1]
    into_lanes = columns % lowering.evaluator.lanes == 0 and is_summed_into_lanes(lowering.evaluator, user)
    return into_lanes and _is_masked(user.result)


def _is_masked(value: SSAValue) -> bool:
    """Is what becomes of a product, element by element, a number in the columns that are not there?"""
    users = [use.operation for use in value.uses]
    return all(
        end_mask(user.result) is not None
        if isinstance(user, SelectOp)
        else isinstance(user, DotOp | ElementwiseOp)
        and shape_of(user.result) == shape_of(value)
        and _is_masked(user.result)
        for user in users
    )


def _counted(lowering: Lowering, op: ForOp, low: Linear, high: Linear, carries: Sequence[Carry], whole: bool) -> None:
    text = lowering.evaluator.text
    with text.loop(materialize(text, low), materialize(text, high), op.step_size) as counter:
        last = high - (op.step_size if whole else 1)
        lowering.evaluator.bounds.learn(counter, lower=[low], upper=[last])
        outside, lowering.evaluator.ahead = lowering.evaluator.ahead, Ahead.of(op, counter)
        _body(lowering, op, linear(counter), carries)
        lowering.evaluator.ahead = outside


def _carry(lowering: Lowering, op: ForOp, i: int) -> Carry:
    """Lay out a carried value and give it its first value."""
    evaluator, init, final = lowering.evaluator, op.init[i], op.yielded[i]
    shape = shape_of(init)
    if not shape:
        value = evaluator.index(init) if is_index(init) else evaluator.scalar(init)
        return evaluator.text.variable(materialize(evaluator.text, value) if isinstance(value, Linear) else value)
    lane: int | None = len(shape) - 1
    if isinstance(final.owner, Operation) and final.owner.parent is op.body.block:
        # what comes after the loop mostly reads along the last axis
        read_across = prod(shape) * GATHER
        lane = lowering.costs().best_lane(final, lambda lane: 0.0 if lane == len(shape) - 1 else read_across)
    contiguous = len(shape) - 1 if lane is None else lane
    kind = element_layout(element_of(init)).kind
    scratch = lowering.arena.allocate(kind, shape, contiguous, padded=lane is not None)
    fill(evaluator, init, scratch, lane, lowering.target)
    return TileCarry(scratch, lane)


def _value(carry: Carry, value: SSAValue) -> Scratch | Register | Linear:
    """What the environment holds for a carried value now."""
    if isinstance(carry, TileCarry):
        return carry.scratch
    return linear(carry.get()) if is_index(value) else carry.get()


def _body(lowering: Lowering, op: ForOp, counter: Linear, carries: Sequence[Carry]) -> None:
    """One trip."""
    environment, block = lowering.evaluator.environment, op.body.block
    environment[block.args[0]] = counter
    for argument, carry in zip(block.args[1:], carries, strict=True):
        environment[argument] = _value(carry, argument)
    lowering.run(block.ops)
    _carry_on(lowering, op, carries)


def _carry_on(lowering: Lowering, op: ForOp, carries: Sequence[Carry]) -> None:
    """
    Yields are simultaneous. One is computed in place if it reads its own carried value only pointwise and no later one
    reads that; the others go through a copy.
    """
    evaluator = lowering.evaluator
    arguments, yielded = op.body.block.args[1:], op.yielded
    scalars = [
        None if isinstance(carry, TileCarry) else _scalar(lowering, value)
        for carry, value in zip(carries, yielded, strict=True)
    ]
    late: list[tuple[TileCarry, Scratch, SSAValue]] = []
    for i, (argument, carry, value) in enumerate(zip(arguments, carries, yielded, strict=True)):
        if not isinstance(carry, TileCarry) or value is argument:
            continue
        later = any(_reads(lowering, other, argument) is not Reads.NOT for other in yielded[i + 1 :])
        if _reads(lowering, value, argument) is not Reads.ANYWHERE and not later:
            fill(evaluator, value, carry.scratch, carry.lane, lowering.target)
            continue
        known = evaluator.environment.get(value)
        if isinstance(known, Scratch) and known not in [c.scratch for c in carries if isinstance(c, TileCarry)]:
            late.append((carry, known, value))
            continue
        copy = carry.scratch
        copy = lowering.arena.allocate(copy.buffer.element.kind, copy.shape, copy.lane, copy.padded)
        fill(evaluator, value, copy, carry.lane, lowering.target)
        late.append((carry, copy, value))
    for carry, copy, value in late:
        hidden = evaluator.environment.get(value)
        evaluator.environment[value] = copy
        fill(evaluator, value, carry.scratch, carry.lane, lowering.target)
        if hidden is None:
            del evaluator.environment[value]
        else:
            evaluator.environment[value] = hidden
    for carry, register in zip(carries, scalars, strict=True):
        if isinstance(carry, Variable) and register is not None:
            carry.set(register)


def _scalar(lowering: Lowering, value: SSAValue) -> Register:
    evaluator = lowering.evaluator
    if is_index(value):
        return materialize(evaluator.text, evaluator.index(value))
    return evaluator.scalar(value)


def _reads(lowering: Lowering, expression: SSAValue, argument: SSAValue) -> Reads:
    """How computing a yielded value now reads a carried one."""
    if expression is argument:
        return Reads.POINTWISE
    if expression in lowering.evaluator.environment:
        return Reads.NOT
    return reads(lowering.plan, expression, argument)
