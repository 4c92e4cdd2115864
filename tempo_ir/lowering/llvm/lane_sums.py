"""
Dots whose lanes run along N of operands that lie along K: products as vectors along K, and the sums across their lanes
as one vector, by a tree that takes two instructions and an addition to merge two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from tempo_ir.dialects.tile.attributes import element_of, shape_of
from tempo_ir.dialects.tile.shape import DotOp
from tempo_ir.lowering.llvm import access, shuffle
from tempo_ir.lowering.llvm.address import Linear
from tempo_ir.lowering.llvm.evaluate import At, Evaluator, Point, overhang
from tempo_ir.lowering.llvm.operands import even_and_odd, floats, operands, read
from tempo_ir.lowering.llvm.text import Register


def is_summed_into_lanes(evaluator: Evaluator, op: DotOp) -> bool:
    """Is a dot whose lanes run along N computed from vectors along K?"""
    return access.runs_along_depth(op, evaluator.lanes, lambda value: value not in evaluator.environment)


def rows_at_once(op: DotOp, registers: int, lanes: int) -> int:
    """How many rows share each vector that is loaded: of each its left operand and the rounds of its sums that are not
    over lie in registers (with more 4 rows of 128 take 2.5 times as long)."""
    rows, depth = shape_of(op.lhs)
    most = max(1, registers // (-(-depth // lanes) + lanes.bit_length()))
    return -(-rows // -(-rows // most))


def dot_into_lanes(evaluator: Evaluator, op: DotOp, points: Sequence[Point]) -> list[Register]:
    """Operands as vectors along K, which is short, and the sums across lanes of as many columns as a vector has lanes
    as one vector: nothing passes through scalars."""
    lanes, columns = evaluator.lanes, shape_of(op.rhs)[1]
    groups: dict[At, list[At]] = {}
    for row, column in points:
        groups.setdefault(column, []).append(row)
    products, sums = _Products.of(evaluator, op), dict[Point, Register]()
    for column, rows in groups.items():
        last = (overhang(column, columns, lanes) or lanes) - 1

        def vectors(i: int, column: At = column, rows: Sequence[At] = rows, last: int = last) -> list[Register]:
            return products.at(rows, At(column.position + min(i, last)))

        across = shuffle.sum_into_lanes(vectors, lanes)
        sums.update(zip([(row, column) for row in rows], across, strict=True))
    initial = evaluator.at(products.start, points)
    return [evaluator.text.broadcast(x) + sums[point] for x, point in zip(initial, points, strict=True)]


Piece = tuple[DotOp, int]
"""A dot and a position along what it contracts, from which on a vector of it is multiplied."""


@dataclass(frozen=True)
class _Products:
    """Vectors whose lanes add up to the result of a dot without what it starts with, `start`; that of a dot that starts
    with another of this form has the products of both."""

    evaluator: Evaluator
    pieces: Sequence[Piece]
    start: SSAValue
    sorted: dict[tuple[Piece, At], list[Register]] = field(default_factory=dict[tuple[Piece, At], list[Register]])
    """The left operand at the even and odd positions of a piece and the one after it, by row."""

    @staticmethod
    def of(evaluator: Evaluator, op: DotOp) -> _Products:
        """The products of a dot."""
        pieces, start = list[Piece](), op.result
        while isinstance(maker := start.owner, DotOp) and (start is op.result or start not in evaluator.environment):
            if not is_summed_into_lanes(evaluator, maker):
                break
            pieces[:0] = [(maker, i) for i in range(0, shape_of(maker.lhs)[1], evaluator.lanes)]
            start = maker.accumulator
        return _Products(evaluator, pieces, start)

    def at(self, rows: Sequence[At], column: At) -> list[Register]:
        """The vector of each row."""
        totals: dict[At, Register] = {}
        waiting = list(self.pieces)
        while waiting:
            piece = waiting.pop(0)
            operands = self._of_pair(piece, waiting[0], rows, column) if waiting else []
            if operands:
                waiting.pop(0)
            for lhs, rhs in operands or [self._of_piece(piece, rows, column)]:
                for row in rows:
                    product = self.evaluator.text.broadcast(lhs[row]) * self.evaluator.text.broadcast(rhs)
                    totals[row] = product + totals[row] if row in totals else product
        return [totals[row] for row in rows]

    def _of_piece(self, piece: Piece, rows: Sequence[At], column: At) -> tuple[dict[At, Register], Register]:
        """The operands at a vector of positions."""
        (op, i), text = piece, self.evaluator.text
        lhs, rhs = operands(self.evaluator, op, [(row, column) for row in rows], At(Linear(i), lane=True))
        rest = shape_of(op.lhs)[1] - i
        if rest >= text.lanes:
            return lhs, rhs[column]
        inside = text.tail_mask(rest)
        cut = {
            at: text.select(inside, text.broadcast(x), text.constant(0, x.kind, text.lanes)) for at, x in lhs.items()
        }
        return cut, rhs[column]

    def _of_pair(
        self, piece: Piece, second: Piece, rows: Sequence[At], column: At
    ) -> list[tuple[dict[At, Register], Register]]:
        """The operands at the even and the odd ones of two vectors of positions, where these are of bf16 side by side
        in memory: where two are read as one word, each is a float after one instruction."""
        evaluator, pair = self.evaluator, (piece, second)
        whole = all(shape_of(op.lhs)[1] - i >= evaluator.lanes and access.has_pairs(op.rhs, 0) for op, i in pair)
        if not whole or element_of(piece[0].result) != f32:
            return []
        first, after = ((op.rhs, (At(Linear(i), lane=True), column)) for op, i in pair)
        word = access.load_pair(evaluator, first, after)
        if word is None:
            return []
        for row in rows:
            if (piece, row) not in self.sorted:
                a, b = (
                    evaluator.text.broadcast(read(evaluator, op, op.lhs, {row: (row, At(Linear(i), lane=True))})[row])
                    for op, i in pair
                )
                self.sorted[piece, row] = [shuffle.shuffle(a, b, order) for order in even_and_odd(evaluator.lanes)]
        even, odd = ({row: self.sorted[piece, row][half] for row in rows} for half in (0, 1))
        return list(zip((even, odd), floats(word), strict=True))
