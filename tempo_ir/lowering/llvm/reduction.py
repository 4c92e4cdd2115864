"""
Reductions at points: several accumulators, of which the lanes are combined after the last element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from tempo_ir.dialects.tile.attributes import ReduceKind, bit_width, element_of, is_unsigned, shape_of
from tempo_ir.dialects.tile.shape import ReduceOp
from tempo_ir.lowering.llvm import shuffle
from tempo_ir.lowering.llvm.address import ZERO, Linear, materialize
from tempo_ir.lowering.llvm.elementwise import integer_extremum
from tempo_ir.lowering.llvm.evaluate import ORIGIN, At, Evaluator, Point, for_each_block, has_lane
from tempo_ir.lowering.llvm.memory import element_layout
from tempo_ir.lowering.llvm.text import AVX512_LANES, REDUCTION_FLAGS, Register, Text, Variable, suffix


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
