"""
Dots at points: the block's accumulators stay in registers while a loop runs along the contracted axis.

The form of a dot follows the lanes of the points that are asked for:

- lanes on N: vectors of the right operand times scalars of the left one (the axpy form); lanes on M: its mirror;
- lanes on N, of a right operand that lies along a short K: `lane_sums`;
- no lanes: both operands as vectors along K, then all sums across lanes at once (the dot-product form);
- no lanes and K shorter than a vector: scalars.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from tempo_ir.dialects.tile.attributes import element_of, shape_of
from tempo_ir.dialects.tile.shape import DotOp
from tempo_ir.lowering.llvm import access, shuffle
from tempo_ir.lowering.llvm.address import ZERO, Linear, linear
from tempo_ir.lowering.llvm.ahead import NextRows
from tempo_ir.lowering.llvm.elementwise import convert
from tempo_ir.lowering.llvm.evaluate import At, Evaluator, Point, for_each_block, for_each_block_inside, has_lane
from tempo_ir.lowering.llvm.lane_sums import dot_into_lanes, is_summed_into_lanes
from tempo_ir.lowering.llvm.memory import LINE, Buffer, element_layout, register_layout
from tempo_ir.lowering.llvm.operands import (
    Operands,
    even_and_odd,
    floats,
    operands,
    operands_of_pairs,
    paired_columns,
    sorted_columns,
)
from tempo_ir.lowering.llvm.reduction import combine_pairwise, sum_lanes
from tempo_ir.lowering.llvm.scratch import Scratch
from tempo_ir.lowering.llvm.text import Register, Running, Variable

STREAMED_BYTES = 1 << 17
"""A right operand of more bytes is taken to come from memory, not from a cache."""

STREAMED_ROWS = 8
"""Most rows of the left operand for which that matters: with more the right one is read anew for the next rows, from
the cache."""

AHEAD_BYTES = 1 << 12
"""How long before they are read the lines of such an operand are asked for, where several of its rows are read at once:
what is on a page of its own the processor does not foresee (measured: 2.5 times as fast for rows of 8 KB, 1.3 for rows
of 4 KB). Rows that are read one after the other AMD's does foresee (1.1 to 1.2 times as fast if nothing is asked for),
Intel's do not (rows of 3 KB of f32 1.25 times as fast if they are asked for, of bf16 1.6)."""

PAIRED_ROWS = 2
"""Most rows of the left operand that are spread over even and odd positions for the sake of a right one of bf16."""

F32_BYTES = 4

LANES = At(ZERO, lane=True)
"""The positions of one vector."""

ACCUMULATORS = 8
"""With fewer a sum of products waits for the one before: a multiplication takes four cycles, of which one or two begin
in each. So every second product goes to accumulators beside."""


def dot(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> list[Register]:
    """`tile.dot`"""
    op = value.owner
    assert isinstance(op, DotOp)
    depth = shape_of(op.lhs)[1]
    if not has_lane(points[0]) and depth >= evaluator.lanes:
        return _dot_along_depth(evaluator, op, points)
    if points[0][1].lane and is_summed_into_lanes(evaluator, op):
        return dot_into_lanes(evaluator, op, points)
    return _dot_along_output(evaluator, op, points, depth)


def _accumulate(total: Variable | Running, a: Register, b: Register) -> None:
    total.set(a * b + total.get())


def _dot_along_output(evaluator: Evaluator, op: DotOp, points: Sequence[Point], depth: int) -> list[Register]:
    text, vector = evaluator.text, has_lane(points[0])
    pairs = paired_columns(evaluator, op, points)
    part, first = evaluator.parts.get(op), ZERO
    if part is None:
        initial = evaluator.at(op.accumulator, points)
    else:
        first, depth = part.start, part.depth
        initial = [part.sums.read(part.place(point)) for point in points]
    initial = [text.broadcast(x) if vector else x for x in initial]
    zero = text.constant(0, initial[0].kind, evaluator.lanes if vector else 0)
    totals = [text.variable(zero if pairs else x) for x in initial]
    beside = [text.variable(zero) for _ in totals] if len(totals) < ACCUMULATORS <= depth else totals

    following = NextRows.of(evaluator, op, points) if part is None else None
    groups = _by_scalar(points) if vector and not pairs else [list(enumerate(points))]

    def step(start: Linear, count: int) -> None:
        if following is not None:
            following.ask(start, count)
        for i in range(count):
            for group in groups:
                at = At(first + start + i)
                chosen = [point for _, point in group]
                if pairs:
                    lhs, rhs = operands_of_pairs(evaluator, op, chosen, at, pairs)
                else:
                    lhs, rhs = operands(evaluator, op, chosen, at)
                if vector:
                    lhs, rhs = ({at: text.broadcast(x) for at, x in side.items()} for side in (lhs, rhs))
                for number, point in group:
                    _accumulate((beside if i % 2 else totals)[number], lhs[point[0]], rhs[point[1]])

    inside = access.inside_along(evaluator, op.rhs, 0)
    if inside is not None and depth > 1:
        for_each_block_inside(evaluator, depth, inside, 1 if depth % 2 else 2, step, cut=True)
    else:
        for_each_block(evaluator, depth, depth if depth <= 4 else 2, step)
    sums = [total.get() for total in totals]
    if beside is not totals:
        sums = [shuffle.add(x, other.get()) for x, other in zip(sums, beside, strict=True)]
    if not pairs:
        return sums
    columns = sorted_columns(dict(zip(points, sums, strict=True)), pairs)
    return [shuffle.add(x, columns[point]) for x, point in zip(initial, points, strict=True)]


def _by_scalar(points: Sequence[Point]) -> list[list[tuple[int, Point]]]:
    """Points of vectors by the number that these are multiplied with, each with its place: a number is read where it is
    needed, as a block's operands together are more than the registers beside its accumulators hold."""
    groups: dict[At, list[tuple[int, Point]]] = {}
    for number, point in enumerate(points):
        groups.setdefault(point[1] if point[0].lane else point[0], []).append((number, point))
    return list(groups.values())


def _dot_along_depth(evaluator: Evaluator, op: DotOp, points: Sequence[Point]) -> list[Register]:
    """
    Operands as vectors along K. What is multiplied with one row is read one row after the other if it is large, as
    memory likes it; several rows take several at a time, each for all of them (measured: 1.2 to 1.4 times as fast from
    the L3 cache at 2 to 8 rows, and 1.1 at 1).
    """
    sums, start = _vectors_along_depth(evaluator, op, points)
    initial = evaluator.at(start, points)
    zero = evaluator.text.constant(0, initial[0].kind).name
    across = sum_lanes(sums)
    return [x if start.name == zero else x + start for x, start in zip(across, initial, strict=True)]


def _vectors_along_depth(evaluator: Evaluator, op: DotOp, points: Sequence[Point]) -> tuple[list[Register], SSAValue]:
    """Per point a vector whose lanes add up to the result without what it starts with, and that. A dot that starts with
    another of this form goes on where that one ends: sums across lanes are many instructions."""
    depth, kind = shape_of(op.lhs)[1], element_layout(element_of(op.result)).kind
    sums = _sums_one_by_one if _has_streams(evaluator, op) else _sums_along_depth
    own, before = sums(evaluator, op, points, depth, kind), op.accumulator.owner
    if not isinstance(before, DotOp) or op.accumulator in evaluator.environment:
        return own, op.accumulator
    if shape_of(before.lhs)[1] < evaluator.lanes:
        return own, op.accumulator
    others, start = _vectors_along_depth(evaluator, before, points)
    return [shuffle.add(a, b) for a, b in zip(others, own, strict=True)], start


def _sums_along_depth(
    evaluator: Evaluator, op: DotOp, points: Sequence[Point], depth: int, kind: str
) -> list[Register]:
    """Per point a vector whose lanes add up to the result, from one loop along K."""
    text, lanes = evaluator.text, evaluator.lanes
    zero = text.constant(0, kind, lanes)
    columns = list(dict.fromkeys(point[1] for point in points))
    several = len(columns) > 1 or (evaluator.streams and not evaluator.foresees_rows)
    ahead = several and not evaluator.near and _comes_from_memory(evaluator, op)
    columns = columns if ahead else []
    paired = _is_paired(evaluator, op, depth)
    unroll = min(max(1, 8 // len(points)), 4, -(-depth // lanes)) if len(points) <= 4 else 1
    unroll = max(2, unroll) if paired else unroll
    total_of = Running if depth <= lanes * unroll else text.variable
    totals = [[total_of(zero) for _ in range(unroll)] for _ in points]
    line = LINE // access.stored_bytes(op.rhs)

    def step(start: Linear, count: int) -> None:
        halves: list[Operands] = []
        for i in range(0, count, lanes):
            if not halves and paired and count - i >= 2 * lanes:
                halves = _paired_operands(evaluator, op, points, start + i)
            lhs, rhs = halves.pop(0) if halves else operands(evaluator, op, points, At(start + i, lane=True))
            if i % line == 0 or line < lanes:
                access.prefetch(evaluator, op.rhs, _ahead(op, At(start + i), columns))
            for accumulators, point in zip(totals, points, strict=True):
                a, b = text.broadcast(lhs[point[0]]), text.broadcast(rhs[point[1]])
                total = accumulators[i // lanes % unroll]
                if count - i >= lanes:
                    _accumulate(total, a, b)
                else:
                    total.set(text.select(text.tail_mask(count - i), a * b, zero) + total.get())

    for_each_block(evaluator, depth, lanes * unroll, step)
    return [_sum_pairwise([total.get() for total in accumulators]) for accumulators in totals]


def _is_paired(evaluator: Evaluator, op: DotOp, depth: int) -> bool:
    """Is the right operand of bf16 as it lies in memory, along K, and for so few rows that to convert it takes the
    time?"""
    few = shape_of(op.lhs)[0] <= PAIRED_ROWS and depth >= 2 * evaluator.lanes
    return few and element_of(op.result) == f32 and access.has_pairs(op.rhs, 0) and _comes_from_memory(evaluator, op)


def _paired_operands(evaluator: Evaluator, op: DotOp, points: Sequence[Point], start: Linear) -> list[Operands]:
    """
    The operands at two vectors of positions, of which the first has the even ones, the second the odd ones: where two
    bf16 are read as one word, each is a float after one instruction. None where an element may be outside.
    """
    text, lanes = evaluator.text, evaluator.lanes
    rows, columns = (list(dict.fromkeys(point[axis] for point in points)) for axis in (0, 1))
    words = access.load_pairs(evaluator, op.rhs, [(At(start, lane=True), column) for column in columns])
    if words is None:
        return []
    ats = [At(start, lane=True), At(start + lanes, lane=True)]
    vectors = evaluator.at(op.lhs, [(row, at) for row in rows for at in ats])
    vectors = [text.broadcast(convert(x, element_of(op.lhs), f32, rounded=False)) for x in vectors]
    halves: list[Operands] = []
    for order, rhs in zip(even_and_odd(lanes), zip(*map(floats, words), strict=True), strict=True):
        lhs = [shuffle.shuffle(a, b, order) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
        halves.append((dict(zip(rows, lhs, strict=True)), dict(zip(columns, rhs, strict=True))))
    return halves


def _ahead(op: DotOp, depth: At, columns: Sequence[At]) -> list[Point]:
    """What is to be asked for where several rows of the right operand are read at one depth: rows to come."""
    row = shape_of(op.rhs)[0] * access.stored_bytes(op.rhs)
    rows = max(len(columns), -(-AHEAD_BYTES // row))
    return [(depth, At(column.position + rows)) for column in columns]


def _is_large(op: DotOp) -> bool:
    if shape_of(op.lhs)[0] > STREAMED_ROWS:
        return False
    return access.whole_bytes(op.rhs) >= STREAMED_BYTES


def _comes_from_memory(evaluator: Evaluator, op: DotOp) -> bool:
    """Is the right operand read where it is loaded from, and large, for few rows?"""
    return _is_large(op) and op.rhs not in evaluator.environment


def _has_streams(evaluator: Evaluator, op: DotOp) -> bool:
    """Is each point computed in a loop of its own along K? Where one row takes a large right operand, so that this one
    is read as memory likes it best; from a cache near by lines come as fast as both operands are loaded."""
    return (
        not evaluator.near
        and shape_of(op.lhs)[0] == 1
        and _is_large(op)
        and (evaluator.streams or not access.has_pairs(op.rhs, 0))
    )


def _sums_one_by_one(evaluator: Evaluator, op: DotOp, points: Sequence[Point], depth: int, kind: str) -> list[Register]:
    """
    As `_sums_along_depth`, from one loop along K after the other. Their text stands once, in a loop over consecutive
    columns, but for numbers of fewer bytes than f32, which are more work than to wait for (written out they are 1.15 to
    1.2 times as fast; f32 are as fast in either form, and compile in half the time).
    """
    first = points[0][1].position
    consecutive = all(point[1].position == first + i for i, point in enumerate(points))
    if len(points) > 1 and consecutive and access.stored_bytes(op.rhs) >= F32_BYTES:
        return _sums_in_turn(evaluator, op, points, depth, kind)
    return [_sums_along_depth(evaluator, op, [point], depth, kind)[0] for point in points]


def _sums_in_turn(evaluator: Evaluator, op: DotOp, points: Sequence[Point], depth: int, kind: str) -> list[Register]:
    """The same in a loop over points of consecutive columns."""
    text, lanes, (row, first) = evaluator.text, evaluator.lanes, points[0]
    shape = len(points), lanes
    memory = Buffer(text.allocate(kind, prod(shape)), register_layout(kind))
    sums = Scratch(memory, shape, strides=(lanes, 1), lane=1, padded=True)
    with text.loop(text.constant(0, "i64"), text.constant(len(points), "i64"), 1) as counter:
        evaluator.bounds.learn(counter, lower=[ZERO], upper=[Linear(len(points) - 1)])
        evaluator.frames.append({})
        point = row, At(first.position + linear(counter))
        (vector,) = _sums_along_depth(evaluator, op, [point], depth, kind)
        sums.write((At(linear(counter)), LANES), vector)
        evaluator.frames.pop()
    return [sums.read((At(Linear(i)), LANES)) for i in range(len(points))]


def _sum_pairwise(parts: Sequence[Register]) -> Register:
    return combine_pairwise(parts, shuffle.add)
