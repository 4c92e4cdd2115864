"""Softmax-weighted sums in one pass over the tiles (Milakov and Gimelshein, "Online normalizer calculation for
softmax", 2018; Rabe and Staats, "Self-attention does not need O(n^2) memory", 2021).

Carried are the greatest score so far, the sum of the weights relative to it, and the weighted sum; where the greatest
score grows, the two sums are scaled down. A row of -inf alone has the weights 0 and the sum 0. Scores exist tile by
tile only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tempo_ir.dialects.sdg import (
    Access,
    CastOp,
    ContractOp,
    DivOp,
    EqOp,
    ExpOp,
    MaximumOp,
    MaxOp,
    MulOp,
    SdgOp,
    SoftmaxOp,
    StopGradientOp,
    TransposeOp,
)
from tempo_ir.dialects.types import element, shape_of
from tempo_ir.passes.building import GraphBuilder
from tempo_ir.passes.tile.axes import Axes
from tempo_ir.passes.tile.pieces import PartBuilder, Place
from tempo_ir.passes.tile.running import Running, wide
from tempo_ir.passes.utilities import current


@dataclass
class Weighted(Running):
    """`contract "hgn,nhd->hgd" softmax(x), v`, where n is summed; what is done to the weights on the way is linear."""

    op: ContractOp
    axes: Axes
    number: int
    """The operand that the weights are."""
    softmax: SoftmaxOp
    names = ("greatest", "total", "running")
    largest = 64  # the scores of a tile are held in one block, of a partial one too

    @property
    def places(self) -> Sequence[Place]:
        scores = Place(self.softmax.accesses[0], self.softmax.axis)
        reads = zip(self.op.accesses, self.axes, strict=True)
        others = [Place(a, axis) for n, (a, axis) in enumerate(reads) if axis is not None and n != self.number]
        return [scores, *others]

    def step(self, parts: PartBuilder, carried: Sequence[Access] | None) -> list[Access]:
        build, axis = parts.build, self.softmax.axis
        scores = parts.of(self.softmax.accesses[0], axis)
        scores = build.cast(scores, wide(element(scores.type)))
        greatest = build.reduce(MaxOp, scores, (axis,))
        if carried is not None:
            greatest = build.build(MaximumOp, carried[0], greatest)
        shift = _finite(build, greatest)
        rows = list(shape_of(greatest.type))
        rows.insert(axis, 1)
        weights = build.unary(ExpOp, build.sub(scores, build.reshape(shift, rows)))
        total = build.sum(weights, (axis,))
        is_direct = self.op.accesses[self.number].value is self.softmax.result
        read = weights if is_direct else build.cast(weights, element(self.softmax.result.type))
        parts.known[Place(current(self.softmax), axis)] = read
        operands = [
            access if axis is None else parts.of(access, axis)
            for access, axis in zip(self.op.accesses, self.axes, strict=True)
        ]
        operands = [build.cast(operand, wide(element(self.op.result.type))) for operand in operands]
        weighted = build.contract(self.op.spec.data, *operands)
        if carried is None:
            return [greatest, total, weighted]
        factor = build.unary(ExpOp, build.sub(carried[0], shift))
        scaled = build.mul(carried[2], self._along_result(build, factor))
        return [greatest, build.add(build.mul(carried[1], factor), total), build.add(scaled, weighted)]

    def result(self, build: GraphBuilder, carried: Sequence[Access]) -> Access:
        _, total, weighted = carried
        nothing = build.build(EqOp, total, build.number_like(0, total))
        total = build.select(nothing, build.number_like(1, total), total)
        quotient = build.div(weighted, self._along_result(build, total))
        return build.cast(quotient, element(self.op.result.type))

    def _along_result(self, build: GraphBuilder, row: Access) -> Access:
        """A value of each row, aligned with the result of the sum."""
        inputs, output = self.op.letters
        letters = inputs[self.number][: self.softmax.axis] + inputs[self.number][self.softmax.axis + 1 :]
        order = sorted(range(len(letters)), key=lambda place: output.index(letters[place]))
        if order != list(range(len(letters))):
            row = build.build(TransposeOp, row, permutation=tuple(order))
        extents = iter(shape_of(row.type))
        return build.reshape(row, tuple(next(extents) if letter in letters else 1 for letter in output))


def _finite(build: GraphBuilder, greatest: Access) -> Access:
    """What scores are taken relative to: the greatest, or 0 where there is none but -inf."""
    nothing = build.build(EqOp, greatest, build.number_like(-math.inf, greatest))
    return build.select(nothing, build.number_like(0, greatest), greatest)


def weighted_sum(op: ContractOp, axes: Axes, letter: str) -> Weighted | None:
    """The sum as one weighted by a softmax along a letter; None if it is none, or the weights of several rows are
    summed, of which each has another greatest score."""
    inputs, output = op.letters
    found: list[Weighted] = []
    for number, axis in enumerate(axes):
        softmax = None if axis is None else softmax_of(op.accesses[number])
        if softmax is not None and softmax.axis == axis:
            found.append(Weighted(op, axes, number, softmax))
    if len(found) != 1:
        return None
    rows = inputs[found[0].number].replace(letter, "")
    return found[0] if len(set(rows)) == len(rows) and set(rows) <= set(output) else None


def softmax_of(access: Access) -> SoftmaxOp | None:
    """The softmax that weights come from, if what is done to them on the way is linear and nobody else reads them."""
    op = access.value.owner
    while isinstance(op, SdgOp) and access == current(op) and op.results[0].uses.get_length() == 1:
        if isinstance(op, SoftmaxOp):
            return op
        step = _linear_operand(op)
        if step is None:
            return None
        access, op = step, step.value.owner
    return None


def _linear_operand(op: SdgOp) -> Access | None:
    """The operand of an op that is linear in it alone, element by element."""
    match op:
        case CastOp() | StopGradientOp():
            return op.accesses[0]
        case DivOp():
            candidates = op.accesses[:1]
        case MulOp():
            candidates = op.accesses if op.lhs is not op.rhs else ()
        case _:
            return None
    shape = shape_of(op.results[0].type)
    weights = [a for a in candidates if shape_of(a.type) == shape and softmax_of(a) is not None]
    return weights[0] if len(weights) == 1 else None
