"""
Dots and reductions at points: the block's accumulators stay in registers while a loop runs along the contracted axis.

The form of a dot follows the lanes of the points that are asked for:

- lanes on N: vectors of the right operand times scalars of the left one (the axpy form); lanes on M: its mirror;
- no lanes: both operands as vectors along K, then all sums across lanes at once (the dot-product form);
- no lanes and K shorter than a vector: scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from tempo_ir.dialects.tile.attributes import ReduceKind, bit_width, element_of, is_unsigned, shape_of
from tempo_ir.dialects.tile.shape import DotOp, ReduceOp
from tempo_ir.lowering.llvm import access, shuffle
from tempo_ir.lowering.llvm.address import ZERO, Linear, linear, materialize
from tempo_ir.lowering.llvm.elementwise import convert, integer_extremum
from tempo_ir.lowering.llvm.evaluate import ORIGIN, At, Evaluator, Point, has_lane
from tempo_ir.lowering.llvm.memory import LINE, Buffer, element_layout, register_layout
from tempo_ir.lowering.llvm.scratch import Scratch
from tempo_ir.lowering.llvm.text import AVX512_LANES, REDUCTION_FLAGS, Register, Running, Text, Variable, suffix

STREAMED_BYTES = 1 << 17
"""A right operand of more bytes is taken to come from memory, not from a cache."""

STREAMED_ROWS = 8
"""Most rows of the left operand for which that matters: with more the right one is read anew for the next rows, from
the cache."""

AHEAD_BYTES = 1 << 12
"""How long before they are read the lines of such an operand are asked for, where several of its rows are read at once:
what is on a page of its own the processor does not foresee (measured: 2.5 times as fast for rows of 8 KB, 1.3 for rows
of 4 KB). Rows that are read one after the other it does foresee (1.1 to 1.2 times as fast if nothing is asked for)."""

PAIRED_ROWS = 2
"""Most rows of the left operand that are spread over even and odd positions for the sake of a right one of bf16."""

F32_BYTES = 4

LANES = At(ZERO, lane=True)
"""The positions of one vector."""


def for_each_block(evaluator: Evaluator, extent: int, step: int, body: Callable[[Linear, int], None]) -> None:
    """
    `body(start, count)` over 0 to extent by `step`: full steps in a loop (none for a single one), then the rest, whose
    start is a number. What is computed in a block is forgotten after it.
    """
    full = extent // step * step

    def block(start: Linear, count: int) -> None:
        evaluator.frames.append({})
        body(start, count)
        evaluator.frames.pop()

    if full == step:
        block(ZERO, step)
    elif full:
        text = evaluator.text
        with text.loop(text.constant(0, "i64"), text.constant(full, "i64"), step) as counter:
            evaluator.bounds.learn(counter, lower=[ZERO], upper=[Linear(full - step)])
            block(linear(counter), step)
    if extent - full:
        block(Linear(full), extent - full)


# -- dot


def dot(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> list[Register]:
    """`tile.dot`"""
    op = value.owner
    assert isinstance(op, DotOp)
    depth = shape_of(op.lhs)[1]
    if not has_lane(points[0]) and depth >= evaluator.lanes:
        return _dot_along_depth(evaluator, op, points)
    return _dot_along_output(evaluator, op, points, depth)


Operands = tuple[dict[At, Register], dict[At, Register]]


def _operands(evaluator: Evaluator, op: DotOp, points: Sequence[Point], depth: At) -> Operands:
    """The left operand by row and the right one by column, at one depth, in the type of the sum."""
    rows, columns = (list(dict.fromkeys(point[axis] for point in points)) for axis in (0, 1))
    source, total = element_of(op.lhs), element_of(op.result)

    def wide(registers: Sequence[Register]) -> list[Register]:
        return [convert(x, source, total, rounded=False) for x in registers]

    lhs = wide(evaluator.at(op.lhs, [(row, depth) for row in rows]))
    rhs = wide(evaluator.at(op.rhs, [(depth, column) for column in columns]))
    return dict(zip(rows, lhs, strict=True)), dict(zip(columns, rhs, strict=True))


def _accumulate(total: Variable | Running, a: Register, b: Register) -> None:
    total.set(a * b + total.get())


def _dot_along_output(evaluator: Evaluator, op: DotOp, points: Sequence[Point], depth: int) -> list[Register]:
    text, vector = evaluator.text, has_lane(points[0])
    initial = evaluator.at(op.accumulator, points)
    totals = [text.variable(text.broadcast(x) if vector else x) for x in initial]

    def step(start: Linear, count: int) -> None:
        for i in range(count):
            lhs, rhs = _operands(evaluator, op, points, At(start + i))
            if vector:
                lhs, rhs = ({at: text.broadcast(x) for at, x in side.items()} for side in (lhs, rhs))
            for total, point in zip(totals, points, strict=True):
                _accumulate(total, lhs[point[0]], rhs[point[1]])

    for_each_block(evaluator, depth, depth if depth <= 4 else 2, step)
    return [total.get() for total in totals]


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
    sums = _sums_one_by_one if _has_streams(evaluator, op, points) else _sums_along_depth
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
    ahead = len(columns) > 1 and not evaluator.near and _comes_from_memory(evaluator, op)
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
            lhs, rhs = halves.pop(0) if halves else _operands(evaluator, op, points, At(start + i, lane=True))
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
    for half, order in enumerate([range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)]):
        lhs = [shuffle.shuffle(a, b, order) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
        rhs = [text.bits(word & -(1 << 16) if half else word << 16, "f32") for word in words]
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


def _has_streams(evaluator: Evaluator, op: DotOp, points: Sequence[Point]) -> bool:
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


def combine_pairwise(parts: Sequence[Register], combine: Callable[[Register, Register], Register]) -> Register:
    """All parts combined, as a balanced tree."""
    parts = list(parts)
    while len(parts) > 1:
        pairs = [combine(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, parts[-1]] if len(parts) % 2 else pairs
    return parts[0]


def sum_lanes(vectors: Sequence[Register]) -> list[Register]:
    """The sum over the lanes of each vector, many at once where there are many."""
    lanes = vectors[0].lanes
    sums: list[Register] = []
    for i in range(0, len(vectors), lanes):
        group = vectors[i : i + lanes]
        if shuffle.can_sum_together(len(group), lanes):
            sums += shuffle.sums(group)
        else:
            sums += [shuffle.horizontal("fadd" if x.is_float else "add", x) for x in group]
    return sums


# -- reduce


def reduce(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> list[Register]:
    """`tile.reduce`"""
    op = value.owner
    assert isinstance(op, ReduceOp)
    axis = op.axis_number
    if op.is_squeeze:
        return evaluator.at(op.value, [(*point[:axis], ORIGIN, *point[axis:]) for point in points])
    extent = shape_of(op.value)[axis]
    along_lanes = not any(has_lane(point) for point in points) and extent >= evaluator.lanes

    def inputs(points: Sequence[Point], start: Linear, count: int) -> list[list[Register]]:
        """Per point its inputs at `count` positions from start on, as vectors where the lanes run along the axis."""
        step = evaluator.lanes if along_lanes else 1
        ats = [At(start + i, along_lanes) for i in range(0, count, step)]
        flat = evaluator.at(op.value, [(*point[:axis], at, *point[axis:]) for point in points for at in ats])
        if along_lanes:
            flat = [evaluator.text.broadcast(x) for x in flat]
        return [flat[i : i + len(ats)] for i in range(0, len(flat), len(ats))]

    if op.is_position:
        return _Positions(evaluator, op).run(inputs, points, extent, along_lanes)
    if element_layout(element_of(op.value)).kind[0] == "f" and op.kind.data in (ReduceKind.MAX, ReduceKind.MIN):
        return _Extremes(evaluator, op).run(inputs, points, extent, along_lanes)
    return _Fold(evaluator, op).run(inputs, points, extent, along_lanes)


Inputs = Callable[[Sequence[Point], Linear, int], list[list[Register]]]


class _Fold:
    """Reductions that combine elements: sum, prod, max, min, and, or."""

    def __init__(self, evaluator: Evaluator, op: ReduceOp):
        self.evaluator = evaluator
        self.text = evaluator.text
        self.kind = op.kind.data
        self.element = element_of(op.value)
        self.is_unsigned = is_unsigned(self.element)

    def run(self, inputs: Inputs, points: Sequence[Point], extent: int, along_lanes: bool) -> list[Register]:
        lanes = self.text.lanes
        step = lanes if along_lanes else 1
        count = -(-extent // step)
        unroll = min(4 if len(points) <= 4 else 1, count)
        if count * len(points) <= 8 or count == unroll:
            totals = [self.total(group, extent, along_lanes) for group in inputs(points, ZERO, extent)]
        else:
            totals = self.loop(inputs, points, extent, along_lanes, unroll)
        return self.across_lanes(totals) if along_lanes else totals

    def total(self, group: Sequence[Register], extent: int, along_lanes: bool) -> Register:
        return combine_pairwise(self.masked(group, extent if along_lanes else None), self.combine)

    def masked(self, group: Sequence[Register], count: int | None) -> list[Register]:
        """The vectors of `count` positions with the identity in the lanes past the end."""
        lanes = self.text.lanes
        if count is None or count % lanes == 0:
            return list(group)
        identity = self.identity(group[-1].kind)
        return [*group[:-1], self.text.select(self.text.tail_mask(count % lanes), group[-1], identity)]

    def loop(
        self, inputs: Inputs, points: Sequence[Point], extent: int, along_lanes: bool, unroll: int
    ) -> list[Register]:
        step = self.text.lanes if along_lanes else 1
        totals: list[list[Variable]] = []

        def body(start: Linear, count: int) -> None:
            for accumulators, group in zip(totals, inputs(points, start, count), strict=True):
                masked = self.masked(group, count if along_lanes else None)
                for total, x in zip(accumulators, masked, strict=False):
                    total.set(self.combine(total.get(), x))

        # the kind of the accumulators is that of the inputs, a vector where they are: ask once, outside the loop
        vector = along_lanes or any(has_lane(point) for point in points)
        initial = self.identity(element_layout(self.element).kind)
        initial = self.text.broadcast(initial) if vector else initial
        totals += [[self.text.variable(initial) for _ in range(unroll)] for _ in points]
        for_each_block(self.evaluator, extent, unroll * step, body)
        return [combine_pairwise([total.get() for total in accumulators], self.combine) for accumulators in totals]

    def identity(self, kind: str) -> Register:
        """What combines with x to x."""
        return self.text.constant(identity(self.kind, kind, self.is_unsigned), kind)

    def combine(self, a: Register, b: Register) -> Register:
        return combine(self.kind, a, b, self.is_unsigned)

    def across_lanes(self, totals: Sequence[Register]) -> list[Register]:
        if self.kind is ReduceKind.SUM:
            return sum_lanes(totals)
        return [shuffle.horizontal(horizontal_name(self.kind, x, self.is_unsigned), x) for x in totals]


EXTREMES_AT_ONCE = 4
"""Points whose extremes one loop finds: each has a mask, of which registers hold few."""


class _Extremes(_Fold):
    """
    The greatest or least float, or NaN where there is one. Numbers are compared as if there were none, which is one
    instruction, and NaN is looked for beside, in two vectors at a time: half the work of comparing with NaN.
    """

    def run(self, inputs: Inputs, points: Sequence[Point], extent: int, along_lanes: bool) -> list[Register]:
        groups = [points[i : i + EXTREMES_AT_ONCE] for i in range(0, len(points), EXTREMES_AT_ONCE)]
        return [x for group in groups for x in self.group(inputs, group, extent, along_lanes)]

    def group(self, inputs: Inputs, points: Sequence[Point], extent: int, along_lanes: bool) -> list[Register]:
        """The extremes of a few points."""
        step = self.text.lanes if along_lanes else 1
        lanes = self.text.lanes if along_lanes or any(has_lane(point) for point in points) else 0
        unroll = min(4, -(-extent // step))
        kind = element_layout(self.element).kind
        start = self.text.constant(identity(self.kind, kind, self.is_unsigned), kind, lanes)
        best = [[self.text.variable(start) for _ in range(unroll)] for _ in points]
        unordered = [self.text.variable(self.flag(self.text.constant(0, "i1", lanes))) for _ in points]

        def body(first: Linear, count: int) -> None:
            for accumulators, seen, group in zip(best, unordered, inputs(points, first, count), strict=True):
                vectors = self.masked(group, count if along_lanes else None)
                for total, x in zip(accumulators, vectors, strict=False):
                    total.set(self.better(x, total.get()))
                found = [self.text.compare("uno", x, y) for x, y in zip(vectors[::2], vectors[1::2], strict=False)]
                if len(vectors) % 2:
                    found.append(self.text.compare("uno", vectors[-1], vectors[-1]))
                seen.set(combine_pairwise([seen.get(), *map(self.flag, found)], Register.__or__))

        for_each_block(self.evaluator, extent, unroll * step, body)
        results: list[Register] = []
        for accumulators, seen in zip(best, unordered, strict=True):
            extreme = combine_pairwise([total.get() for total in accumulators], self.better)
            is_nan = seen.get() if seen.kind == "i1" else self.text.compare("ne", seen.get(), 0)
            if along_lanes:
                extreme, is_nan = self.across(extreme), shuffle.horizontal("or", is_nan)
            results.append(self.text.select(is_nan, float("nan"), extreme))
        return results

    def better(self, a: Register, b: Register) -> Register:
        """The greater or lesser; b, which is a number, where a is NaN."""
        return self.text.select(self.text.compare("ogt" if self.kind is ReduceKind.MAX else "olt", a, b), a, b)

    def flag(self, mask: Register) -> Register:
        """A mask in the form that registers hold: bits where vectors have 16 lanes (AVX-512), else as wide as lanes."""
        if not mask.lanes or mask.lanes == AVX512_LANES:
            return mask
        return self.text.convert("sext", mask, "i64" if bit_width(self.element) == 64 else "i32")

    def across(self, x: Register) -> Register:
        """The extreme of the lanes of numbers."""
        name = "fmax" if self.kind is ReduceKind.MAX else "fmin"
        return self.text.call(f"llvm.vector.reduce.{name}.{suffix(x.kind, x.lanes)}", x.kind, 0, x, flags="nnan nsz")


def identity(kind: ReduceKind, register_kind: str, unsigned: bool) -> float:
    """The number that combines with x to x."""
    if kind in (ReduceKind.SUM, ReduceKind.OR):
        return 0
    if kind is ReduceKind.PROD:
        return 1
    if kind is ReduceKind.AND:
        return 1 if register_kind == "i1" else -1
    if register_kind[0] == "f":
        return float("-inf") if kind is ReduceKind.MAX else float("inf")
    width = int(register_kind[1:])
    low, high = (0, (1 << width) - 1) if unsigned else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    return low if kind is ReduceKind.MAX else high


def combine(kind: ReduceKind, a: Register, b: Register, unsigned: bool) -> Register:
    """Two elements as one."""
    text = a.text
    match kind:
        case ReduceKind.SUM:
            return shuffle.add(a, b)
        case ReduceKind.PROD:
            return text.binary("fmul" if a.is_float else "mul", a, b, REDUCTION_FLAGS)
        case ReduceKind.AND:
            return a & b
        case ReduceKind.OR:
            return a | b
        case _ if a.is_float:
            return text.maximum(a, b) if kind is ReduceKind.MAX else text.minimum(a, b)
        case _:
            return integer_extremum(a, b, unsigned, largest=kind is ReduceKind.MAX)


def horizontal_name(kind: ReduceKind, x: Register, unsigned: bool) -> str:
    """LLVM's name of the reduction across lanes."""
    sign = "f" if x.is_float else "u" if unsigned else "s"
    names = {
        ReduceKind.SUM: "fadd" if x.is_float else "add",
        ReduceKind.PROD: "fmul" if x.is_float else "mul",
        ReduceKind.MAX: "fmaximum" if x.is_float else f"{sign}max",
        ReduceKind.MIN: "fminimum" if x.is_float else f"{sign}min",
        ReduceKind.AND: "and",
        ReduceKind.OR: "or",
    }
    return names[kind]


class _Positions:
    """argmax and argmin: the best value and its position, updated where a later element is strictly better."""

    def __init__(self, evaluator: Evaluator, op: ReduceOp):
        self.evaluator = evaluator
        self.text: Text = evaluator.text
        self.is_max = op.kind.data is ReduceKind.ARGMAX
        self.element = element_of(op.value)
        self.result = element_of(op.result)
        self.is_unsigned = is_unsigned(self.element)

    def better(self, a: Register, b: Register) -> Register:
        """Is a strictly better than b? A NaN is better than all but a NaN."""
        text = self.text
        if not a.is_float:
            sign = "u" if self.is_unsigned else "s"
            return text.compare(sign + ("gt" if self.is_max else "lt"), a, b)
        # unordered or greater, but not if b is NaN already
        either = text.compare("ugt" if self.is_max else "ult", a, b)
        both = text.both(either, text.compare("ord", b, b))
        assert both is not None
        return both

    def run(self, inputs: Inputs, points: Sequence[Point], extent: int, along_lanes: bool) -> list[Register]:
        text, lanes = self.text, self.text.lanes
        step = lanes if along_lanes else 1
        first = inputs(points, ZERO, step)
        values = [text.variable(group[0]) for group in first]
        positions = [
            text.variable(text.iota("i32") if along_lanes else text.constant(0, "i32", group[0].lanes))
            for group in first
        ]

        def body(start: Linear, count: int) -> None:
            start = start + step
            position = text.convert("trunc", materialize(text, start), "i32") if not start.is_constant else None
            position = text.constant(start.constant, "i32") if position is None else position
            position = text.broadcast(position) + text.iota("i32") if along_lanes else position
            for value, best, group in zip(values, positions, inputs(points, start, count), strict=True):
                x, old = group[0], value.get()
                better = self.better(x, old)
                if count < step:
                    inside = text.both(better, text.tail_mask(count))
                    assert inside is not None
                    better = inside
                value.set(text.select(better, x, old))
                best.set(text.select(better, position, best.get()))

        for_each_block(self.evaluator, extent - step, step, body)
        pairs = [(value.get(), best.get()) for value, best in zip(values, positions, strict=True)]
        results = [self.across_lanes(*pair) if along_lanes else pair[1] for pair in pairs]
        return [x if bit_width(self.result) == 32 else text.convert("zext", x, "i64") for x in results]

    def across_lanes(self, values: Register, positions: Register) -> Register:
        """The smallest position among the lanes that hold the best value."""
        text = self.text
        kind = ReduceKind.MAX if self.is_max else ReduceKind.MIN
        best = text.broadcast(shuffle.horizontal(horizontal_name(kind, values, self.is_unsigned), values))
        if values.is_float:
            found = text.compare("oeq", values, best)
            is_nan = text.compare("uno", values, values)
            found = text.binary("or", found, is_nan)
        else:
            found = text.compare("eq", values, best)
        candidates = text.select(found, positions, text.constant(0x7FFFFFFF, "i32", values.lanes))
        return shuffle.horizontal("umin", candidates)
