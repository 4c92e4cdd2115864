"""
Sinks: where tile values are written, block of registers by block of registers. A sink is a nest of loops over the
tile's index space, lanes innermost, as memory likes it, or, round a dot, which reads its right operand once for all
rows, outermost; it asks the evaluator for all points of a block at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from tempo_ir.dialects.operation import maker_of
from tempo_ir.dialects.tile.attributes import ReduceKind, bit_width, element_of, shape_of
from tempo_ir.dialects.tile.elementwise import SelectOp
from tempo_ir.dialects.tile.memory import LoadOp
from tempo_ir.dialects.tile.shape import BroadcastOp, DotOp, ExpandOp, InRangeOp, ReduceOp
from tempo_ir.dialects.tile.structure import ForOp
from tempo_ir.lowering.llvm.address import Linear, linear, materialize
from tempo_ir.lowering.llvm.ahead import BlockOfRegisters, is_long
from tempo_ir.lowering.llvm.evaluate import At, Evaluator, Point, for_each_block, for_each_block_inside, has_lane
from tempo_ir.lowering.llvm.lane_sums import is_summed_into_lanes, rows_at_once
from tempo_ir.lowering.llvm.memory import LINE
from tempo_ir.lowering.llvm.pieces import Pieces
from tempo_ir.lowering.llvm.scratch import Scratch
from tempo_ir.lowering.llvm.target import Target
from tempo_ir.lowering.llvm.text import Register

UNROLLED_VECTORS = 4
"""A sink of no more vectors than this has no loops."""

MANY_ROWS = 24
"""From so many rows on a product has blocks of 6 rows of 4 vectors: with fewer these read the right operand, which may
come from memory, more often than blocks of 8 rows of 2 (measured: 0.9 of the speed at 16 rows; at 24 and more 1.03 to
1.12 times as fast, by how deep it is)."""

Write = Callable[[Point, Register], None]
Ask = Callable[[Sequence[Point]], None]


@dataclass(frozen=True)
class BlockShape:
    """Positions per block along the lanes' axis (a multiple of the lanes) and the other one."""

    steps: tuple[int, ...]
    order: tuple[int, ...]


def block_shape(
    shape: tuple[int, ...],
    lane: int | None,
    has_dot: bool,
    registers: int,
    lanes: int,
    sums_rows: bool = False,
    values: int = 1,
) -> BlockShape:
    """
    The block of registers for a sink. Around a dot the accumulators fill three quarters of the `registers` where there
    are many rows, since what a block costs beside its multiplications is shared by more of them: 6 rows of 4 vectors
    where there are 32, 8 of 3; else half: 8 rows of 2, 4 of 4, 2 of 8, 1 of 16; and where rows of memory are summed: so
    long a piece of each is read at once. Other expressions take 4 vectors at a time, so that heavy functions have no
    more in flight, and fewer where several `values` are computed together.
    """
    steps = [1] * len(shape)
    others = [axis for axis in range(len(shape)) if axis != lane]
    many = registers >= 32
    if lane is None:
        short = len(shape) == 1 or prod(shape) == shape[-1]
        steps[-1] = min(shape[-1], 8 if short or not has_dot else 4 if many else 2)
        if len(shape) == 2:
            steps[0] = min(shape[0], 4 if has_dot else 1)
        return BlockShape(tuple(steps), tuple(reversed(range(len(shape)))))
    rows = shape[others[0]] if others else 1
    block_rows, block_vectors = 1, registers // 2 if sums_rows else max(1, min(4, registers // (2 * values)))
    if has_dot:
        block_vectors = vectors_at_once(rows, shape[lane], lanes, registers)
        block_rows = min(rows, 6)
        if many:
            block_rows = {1: 16, 2: 8, 3: 8, 4: 6}[block_vectors] if rows >= 8 else rows
    steps[lane] = min(-(-shape[lane] // lanes), block_vectors) * lanes
    for axis in others:
        steps[axis] = min(block_rows, shape[axis])
    return BlockShape(tuple(steps), (lane, *others) if has_dot else (*others, lane))


def registers_of(target: Target, values: Sequence[SSAValue]) -> int:
    """Registers of vectors of the values' elements: one of 64-bit elements takes two."""
    return target.registers // max(2 if bit_width(element_of(value)) == 64 else 1 for value in values)


def vectors_at_once(rows: int, columns: int, lanes: int, registers: int) -> int:
    """Vectors of so many columns, the lanes' axis of a product, that a block of registers has: parts of one size where
    there are such."""
    if registers < 32:
        return 2 if rows >= 4 else 4
    if rows < 8:
        return 4 if rows >= 4 else 8 if rows >= 2 else 16
    vectors = -(-columns // lanes)
    return min(vectors, 2) if rows < MANY_ROWS or vectors % 4 == 2 else min(vectors, 4)


def sink(
    evaluator: Evaluator,
    values: Sequence[SSAValue],
    lane: int | None,
    target: Target,
    writes: Sequence[Write],
    ask: Ask | None = None,
) -> None:
    """Compute every element of `values`, of one shape, with the lanes on axis `lane`, and hand it to the one of
    `writes`; what products take long to compute, `ask` is told before, a point for each line."""
    value, shape = values[0], shape_of(values[0])
    registers = registers_of(target, values)
    dots = [dot for value in values for dot in dots_of(evaluator, value)]
    blocks = block_shape(shape, lane, bool(dots), registers, target.lanes, sums_rows(value), len(values))
    end = None
    if lane == 1 and dots and all(is_summed_into_lanes(evaluator, dot) for dot in dots):
        rows = min(rows_at_once(dot, registers, target.lanes) for dot in dots)
        blocks = BlockShape((rows, target.lanes), blocks.order)
        end = _end_of(evaluator, value) if shape[1] % target.lanes == 0 else None
    pieces = Pieces.of(evaluator, value, dots, blocks.steps) if lane == 1 else None
    vectors = prod(shape) / (1 if lane is None else min(shape[lane], target.lanes))

    def nest(axes: Sequence[int], at: dict[int, tuple[Linear, int]]) -> None:
        if not axes:
            visit(at)
            return
        axis, step = axes[0], blocks.steps[axes[0]]

        def body(start: Linear, count: int) -> None:
            inside = {**at, axis: (start, count)}
            if pieces is not None:
                pieces.run(evaluator, start, blocks.steps[0], lambda first, rows: visit({**inside, 0: (first, rows)}))
            else:
                nest(axes[1:], inside)

        if end is not None and axis == lane:
            after = for_each_block_inside(evaluator, shape[axis], end.inside, step, body)
            _fill_from(evaluator, shape, after, end.otherwise, writes[0])
        elif vectors <= UNROLLED_VECTORS:
            for start in range(0, shape[axis], step):
                body(Linear(start), min(step, shape[axis] - start))
        else:
            outermost = bool(dots) and len(axes) == len(shape)
            for_each_block(evaluator, shape[axis], step, body, evaluator.backwards if outermost else None)

    def visit(at: dict[int, tuple[Linear, int]]) -> None:
        block = BlockOfRegisters([at[axis][0] for axis in range(len(shape))], blocks.steps, shape)
        for following in (evaluator.ahead, evaluator.next_launch):
            if following is not None:
                following.ask(evaluator, dots, block)
        coordinates = [
            [At(at[axis][0] + i, axis == lane) for i in range(0, at[axis][1], target.lanes if axis == lane else 1)]
            for axis in range(len(shape))
        ]
        rows = prod(len(side) for axis, side in enumerate(coordinates) if axis != lane)
        if ask is not None and lane is not None and is_long(dots, rows):
            in_line = max(1, LINE * 8 // (bit_width(element_of(value)) * target.lanes))
            firsts = [side[::in_line] if axis == lane else side for axis, side in enumerate(coordinates)]
            ask(list(itertools.product(*firsts)))
        write_points(evaluator, values, list(itertools.product(*coordinates)), writes)

    nest(blocks.order, {})


def sums_rows(value: SSAValue) -> bool:
    """Is it a sum over what is read from memory as it is, row by row?"""
    op = value.owner
    return isinstance(op, ReduceOp) and op.kind.data is ReduceKind.SUM and isinstance(op.value.owner, LoadOp)


@dataclass(frozen=True)
class _End:
    """Which columns of a tile come first, and the number that all after them are."""

    inside: Linear
    otherwise: SSAValue


def _end_of(evaluator: Evaluator, value: SSAValue) -> _End | None:
    """The end of a tile that is a number in the columns that a mask of their positions leaves out."""
    mask = end_mask(value)
    if mask is None:
        return None
    inside = evaluator.index(mask.limit) - evaluator.index(mask.start)
    assert isinstance(value.owner, SelectOp)
    return None if evaluator.bounds.prove(inside - shape_of(value)[1]) else _End(inside, value.owner.operands[2])


def end_mask(value: SSAValue) -> InRangeOp | None:
    """The mask of positions of columns, in others of which a tile is a number."""
    op = value.owner
    if not isinstance(op, SelectOp) or shape_of(op.operands[2]):
        return None
    condition = op.operands[0]
    while isinstance(condition.owner, ExpandOp | BroadcastOp):
        if isinstance(condition.owner, ExpandOp) and condition.owner.axis_number == 1:
            return None
        condition = condition.owner.value
    mask = condition.owner
    return mask if isinstance(mask, InRangeOp) and shape_of(mask.result) == shape_of(value)[1:] else None


def _fill_from(evaluator: Evaluator, shape: tuple[int, ...], start: Linear, otherwise: SSAValue, write: Write) -> None:
    """A number in all columns from a vector of them on."""
    text = evaluator.text
    vector = text.broadcast(evaluator.scalar(otherwise))
    with text.loop(materialize(text, start), text.constant(shape[1], "i64"), text.lanes) as counter:
        for row in range(shape[0]):
            write((At(Linear(row)), At(linear(counter), lane=True)), vector)


def write_points(
    evaluator: Evaluator, values: Sequence[SSAValue], points: Sequence[Point], writes: Sequence[Write]
) -> None:
    """Compute the points, then write them: all reads of a block precede its writes."""
    outside, evaluator.frames = evaluator.frames, [{}]
    computed = [evaluator.at(value, points) for value in values]
    for write, registers in zip(writes, computed, strict=True):
        for point, register in zip(points, registers, strict=True):
            write(point, register)
    evaluator.frames = outside


def dots_of(evaluator: Evaluator, value: SSAValue) -> list[DotOp]:
    """The dots that the inlined expression of `value` contains."""
    seen: set[SSAValue] = set()
    found: list[DotOp] = []

    def visit(current: SSAValue) -> None:
        if current in seen or (current in evaluator.environment and current is not value):
            return
        seen.add(current)
        op = maker_of(current)
        if isinstance(op, DotOp):
            found.append(op)
        if op is not None and not isinstance(op, (ForOp, LoadOp)):
            for operand in op.operands:
                if shape_of(operand):
                    visit(operand)

    visit(value)
    return found


def fill(evaluator: Evaluator, value: SSAValue, scratch: Scratch, lane: int | None, target: Target) -> None:
    """Compute `value` into scratch."""

    def write(point: Point, register: Register) -> None:
        scratch.write(point, evaluator.text.broadcast(register) if has_lane(point) else register)

    sink(evaluator, [value], lane, target, [write])
