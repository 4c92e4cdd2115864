"""
`tile.scan`: written to scratch position by position along its axis, with lanes on the other axis, or vector by vector
where the lanes are on its axis: within a vector by doubling steps (W. Hillis, G. Steele, "Data parallel algorithms",
1986), so that from vector to vector there is one operation to wait for.
"""

from __future__ import annotations

from tempo_ir.dialects.tile.attributes import element_of, is_unsigned, shape_of
from tempo_ir.dialects.tile.shape import ScanOp
from tempo_ir.lowering.llvm.address import Linear, linear
from tempo_ir.lowering.llvm.evaluate import At, Evaluator, Point, for_each_block
from tempo_ir.lowering.llvm.memory import element_layout
from tempo_ir.lowering.llvm.reduction import combine, identity
from tempo_ir.lowering.llvm.scratch import Scratch
from tempo_ir.lowering.llvm.shuffle import shuffle
from tempo_ir.lowering.llvm.text import Register


def scan(evaluator: Evaluator, op: ScanOp, scratch: Scratch, lane: int | None) -> None:
    """Fill `scratch` with the scan; `lane` is the axis of the lanes, or None."""
    shape, axis = shape_of(op.value), op.axis_number
    if len(shape) == 1:
        if lane is None:
            _along(evaluator, op, scratch, None)
        else:
            _along_lanes(evaluator, op, scratch)
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


def _along_lanes(evaluator: Evaluator, op: ScanOp, scratch: Scratch) -> None:
    """The scan of a tile of one axis, from its end where it is reversed."""
    text, element = evaluator.text, element_of(op.value)
    (extent,), kind, unsigned = shape_of(op.value), op.kind.data, is_unsigned(element)
    register_kind, lanes = element_layout(element).kind, text.lanes
    nothing = text.constant(identity(kind, register_kind, unsigned), register_kind, lanes)
    total = text.variable(nothing)
    full = extent // lanes * lanes

    def both(a: Register, b: Register) -> Register:
        return combine(kind, a, b, unsigned)

    def step(position: Linear, count: int) -> None:
        evaluator.frames.append({})
        point = (At(position, lane=True),)
        x = text.broadcast(evaluator.at(op.value, [point])[0])
        scanned = x if count == lanes else text.select(text.tail_mask(count), x, nothing)
        for distance in (1 << bit for bit in range(lanes.bit_length() - 1)):
            moved = [(lane + distance if op.reverse is not None else lane - distance) for lane in range(lanes)]
            turned = shuffle(scanned, scanned, [lane % lanes for lane in moved])
            inside = text.numbers([0 <= lane < lanes for lane in moved], "i1")
            scanned = text.select(inside, both(scanned, turned), scanned)
        last = 0 if op.reverse is not None else lanes - 1
        before = total.get()
        scratch.write(point, both(before, scanned))
        total.set(both(before, shuffle(scanned, scanned, [last] * lanes)))
        evaluator.frames.pop()

    if op.reverse is not None and extent - full:
        step(Linear(full), extent - full)
    with text.loop(text.constant(0, "i64"), text.constant(full, "i64"), lanes) as counter:
        evaluator.bounds.learn(counter, lower=[Linear(0)], upper=[Linear(full - lanes)])
        step(linear(counter) if op.reverse is None else Linear(full - lanes) - linear(counter), lanes)
    if op.reverse is None and extent - full:
        step(Linear(full), extent - full)
