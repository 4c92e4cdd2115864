"""
Products of deep operands, piece by piece along what they contract.

A panel of the right operand serves all rows of the left one. If it is deeper than the nearest cache, each block of rows
reads it from the second one, and so a piece that fits serves all rows of a group before the next piece; the sums in
between lie beside. Measured, 512 x 512 x 512, where a cycle has two multiplications of vectors: 170 GF/s for 142.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.tile.attributes import element_of, shape_of
from tempo_ir.dialects.tile.elementwise import ElementwiseOp
from tempo_ir.dialects.tile.shape import DotOp
from tempo_ir.lowering.llvm.address import ZERO, Linear, linear
from tempo_ir.lowering.llvm.evaluate import At, Evaluator, Part, for_each_block
from tempo_ir.lowering.llvm.memory import Buffer, element_layout, register_layout
from tempo_ir.lowering.llvm.scratch import Scratch

NEAR_BYTES = 1 << 15
"""Bytes of a piece of a panel: what the nearest cache holds beside rows of the left operand."""

ROWS = 64
"""Rows of a group, of which the sums lie beside the piece."""

Visit = Callable[[Linear, int], None]
"""Computes rows of the result, from a first one on."""


@dataclass(frozen=True)
class Pieces:
    """A dot whose right operand lies in panels, `count` pieces of `depth`, of which the last one may be less deep."""

    dot: DotOp
    panel: int
    depth: int
    count: int

    @staticmethod
    def of(evaluator: Evaluator, value: SSAValue, dots: Sequence[DotOp], steps: Sequence[int]) -> Pieces | None:
        """The pieces of the one dot that a tile is computed of, point by point, in blocks of so many rows and columns;
        None where its panels are not deep, are not as wide as a block, or serve the rows of one block alone."""
        if len(dots) != 1 or shape_of(value) != shape_of(dots[0].result) or shape_of(value)[0] <= steps[0]:
            return None
        (dot,) = dots
        panels = evaluator.environment.get(dot.rhs)
        if not isinstance(panels, Scratch) or panels.panel is None or panels.panel != steps[1]:
            return None
        if not _is_pointwise(evaluator, value, dot):
            return None
        whole, line = shape_of(dot.rhs)[0], panels.panel * panels.buffer.element.size
        count = -(-whole * line // NEAR_BYTES)
        depth = -(-whole // (2 * count)) * 2
        return Pieces(dot, panels.panel, depth, -(-whole // depth)) if count > 1 else None

    def run(self, evaluator: Evaluator, column: Linear, step: int, visit: Visit) -> None:
        """Compute the columns of a panel: sums of all pieces but the last one, by `step` rows, and `visit` rows of the
        result with that."""
        rows, kind = shape_of(self.dot.result)[0], element_layout(element_of(self.dot.result)).kind
        size = min(ROWS, rows)
        memory = Buffer(evaluator.text.allocate(kind, size * self.panel), register_layout(kind))
        sums = Scratch(memory, (size, self.panel), strides=(self.panel, 1), lane=1, padded=True)

        def group(first: Linear, count: int) -> None:
            self._group(evaluator, sums, (first, column), (count, step), visit)

        for_each_block(evaluator, rows, size, group)

    def _group(
        self, evaluator: Evaluator, sums: Scratch, origin: tuple[Linear, Linear], rows: tuple[int, int], visit: Visit
    ) -> None:
        """So many rows of a panel, by so many, from its origin on."""
        text, start = evaluator.text, (self.count - 1) * self.depth
        self._sum(evaluator, self.dot.accumulator, Part(ZERO, 0, sums, origin), rows)
        with text.loop(text.constant(0, "i64"), text.constant(start, "i64"), self.depth) as piece:
            evaluator.bounds.learn(piece, lower=[ZERO], upper=[Linear(start - self.depth)])
            evaluator.parts[self.dot] = Part(linear(piece), self.depth, sums, origin)
            self._sum(evaluator, self.dot.result, evaluator.parts[self.dot], rows)
        evaluator.parts[self.dot] = Part(Linear(start), shape_of(self.dot.rhs)[0] - start, sums, origin)
        for_each_block(evaluator, *rows, lambda first, count: visit(origin[0] + first, count))
        del evaluator.parts[self.dot]

    def _sum(self, evaluator: Evaluator, value: SSAValue, part: Part, rows: tuple[int, int]) -> None:
        """Keep a value as the sums of the pieces so far."""
        row, column = part.origin
        columns = [At(column + i, lane=True) for i in range(0, self.panel, evaluator.lanes)]

        def block(first: Linear, count: int) -> None:
            points = [(At(row + first + i), at) for i in range(count) for at in columns]
            for point, register in zip(points, evaluator.compute(value, points), strict=True):
                part.sums.write(part.place(point), evaluator.text.broadcast(register))

        for_each_block(evaluator, *rows, block)


def _is_pointwise(evaluator: Evaluator, value: SSAValue, dot: DotOp) -> bool:
    """Does computing a point of a value ask for that point of the dot only?"""
    found: dict[SSAValue, bool | None] = {}

    def visit(current: SSAValue) -> bool | None:
        """None: it does not ask for the dot."""
        if current not in found:
            found[current] = look(current)
        return found[current]

    def look(current: SSAValue) -> bool | None:
        if current is dot.result:
            return True
        op = current.owner
        if (current in evaluator.environment and current is not value) or not isinstance(op, Operation):
            return None
        asked = [asks for operand in op.operands if (asks := visit(operand)) is not None]
        if not asked:
            return None
        return all(asked) and isinstance(op, ElementwiseOp) and shape_of(current) == shape_of(dot.result)

    return bool(visit(value))
