"""
Operands of a dot at points, in the type of its sum. Where two vectors of bf16 that lie side by side are read as one of
words, each half is a vector of floats after one instruction: the even positions of both, and the odd ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from tempo_ir.dialects.tile.attributes import element_of
from tempo_ir.dialects.tile.shape import DotOp
from tempo_ir.lowering.llvm import access, shuffle
from tempo_ir.lowering.llvm.elementwise import convert
from tempo_ir.lowering.llvm.evaluate import At, Evaluator, Point
from tempo_ir.lowering.llvm.text import Register

Operands = tuple[dict[At, Register], dict[At, Register]]


def operands(evaluator: Evaluator, op: DotOp, points: Sequence[Point], depth: At) -> Operands:
    """The left operand by row and the right one by column, at one depth, in the type of the sum."""
    rows, columns = (list(dict.fromkeys(point[axis] for point in points)) for axis in (0, 1))
    return read(evaluator, op, op.lhs, {row: (row, depth) for row in rows}), read(
        evaluator, op, op.rhs, {column: (depth, column) for column in columns}
    )


def read(evaluator: Evaluator, op: DotOp, operand: SSAValue, points: Mapping[At, Point]) -> dict[At, Register]:
    """One operand at the points of rows or columns."""
    source, total = element_of(operand), element_of(op.result)
    registers = evaluator.at(operand, list(points.values()))
    return {at: convert(x, source, total, rounded=False) for at, x in zip(points, registers, strict=True)}


def paired_columns(evaluator: Evaluator, op: DotOp, points: Sequence[Point]) -> list[tuple[At, At]]:
    """The columns of a right operand of bf16 as it lies in memory, two vectors of them that lie side by side at a time;
    none where not all are of that kind."""
    columns = sorted({point[1] for point in points if point[1].lane}, key=lambda at: at.position.constant)
    if not columns or len(columns) % 2 or op.rhs in evaluator.environment or element_of(op.result) != f32:
        return []
    pairs = list(zip(columns[::2], columns[1::2], strict=True))
    beside = all(second.position == first.position + evaluator.lanes for first, second in pairs)
    return pairs if beside and access.has_pairs(op.rhs, 1) else []


def operands_of_pairs(
    evaluator: Evaluator, op: DotOp, points: Sequence[Point], depth: At, pairs: Sequence[tuple[At, At]]
) -> Operands:
    """The left operand by row, and the right one by column, of which of each pair the first one has the even positions
    of both, the second one the odd ones."""
    rhs: dict[At, Register] = {}
    for pair in pairs:
        first, second = ((depth, column) for column in pair)
        word = access.load_pair(evaluator, (op.rhs, first), (op.rhs, second))
        if word is None:
            a, b = read(evaluator, op, op.rhs, dict(zip(pair, (first, second), strict=True))).values()
            halves = [shuffle.shuffle(a, b, order) for order in even_and_odd(evaluator.lanes)]
        else:
            halves = floats(word)
        rhs.update(zip(pair, halves, strict=True))
    return read(evaluator, op, op.lhs, {row: (row, depth) for row, _ in points}), rhs


def even_and_odd(lanes: int) -> tuple[range, range]:
    """The even and the odd ones of the lanes of two vectors."""
    return range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)


def floats(word: Register) -> list[Register]:
    """The two bf16 in a word, the lower one first."""
    return [word.text.bits(half, "f32") for half in (word << 16, word & -(1 << 16))]


def sorted_columns(sums: Mapping[Point, Register], pairs: Sequence[tuple[At, At]]) -> dict[Point, Register]:
    """The columns in their order, of sums by even and odd ones."""
    columns: dict[Point, Register] = {}
    for row in dict.fromkeys(row for row, _ in sums):
        for pair in pairs:
            even, odd = (sums[row, column] for column in pair)
            order = [lane + of for lane in range(even.lanes) for of in (0, even.lanes)]
            halves = order[: even.lanes], order[even.lanes :]
            columns.update({(row, c): shuffle.shuffle(even, odd, half) for c, half in zip(pair, halves, strict=True)})
    return columns
