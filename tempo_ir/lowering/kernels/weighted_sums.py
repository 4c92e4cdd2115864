"""Sums weighted by a softmax, as in attention: one pass over the axis, nothing of its length is kept.

`contract "bhgn,nbhd->bhgd" softmax(x), v` along an axis that does not lie in one block carries, beside the greatest
element and the sum of the weights of a row, the weighted sum, which is rescaled where the greatest element grows
(Rabe and Staats, "Self-attention does not need O(n^2) memory", 2021). Where x is a contraction itself, its block is
computed in the same pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from xdsl.ir import Attribute, Operation

from tempo_ir.dialects import sdg
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import ReduceKind
from tempo_ir.dialects.tile.builder import Value
from tempo_ir.index import Const
from tempo_ir.lowering.kernels.contraction import Contraction, columns_of, emit_contract, rows_of
from tempo_ir.lowering.kernels.masked_keys import key_range
from tempo_ir.lowering.kernels.nests import points
from tempo_ir.lowering.kernels.reductions import WIDE_ELEMENTS, carried_along, inserted
from tempo_ir.lowering.kernels.softmax import Pass, nonzero
from tempo_ir.lowering.kernels.tiles import ORIGIN, Coordinate, Coordinates, Lane, Tile, combine
from tempo_ir.lowering.kernels.translator import Carried, Emitter, Iterated, Refine, Translator

CARRIED_WEIGHTS = 128
"""Most weights of a block on a CPU that are added to those of the blocks before one by one: more lie in memory, where
each costs a load and a store (measured for 256: 1.02 times as fast without, 1.04 with few keys)."""


def emit_weighted_sum(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """An einsum, in one pass if one operand is a softmax along the one axis that is summed."""
    assert isinstance(op, sdg.ContractOp)
    contraction = Contraction.of(translator, op, at)
    number = _softmax_operand(translator, contraction)
    if number is None:
        return emit_contract(translator, op, at)
    rows, columns = contraction.lanes(number), contraction.lanes(1 - number)
    if set(rows) & set(columns) or not (rows or columns):
        return emit_contract(translator, op, at)
    for lanes in (rows, columns):
        if len(lanes) == 2:
            raise Refine(translator.key_of(lanes[0]), points=True)
    together = translator.together.get(op, ())
    if together and all(at[axis].lane is None and isinstance(at[axis].start, Const) for axis in together):
        _know_all(translator, op, at, together, number)
        return translator.pull(op.result, at)
    tile = Weighted(translator, contraction, number, columns).sum()
    return Tile(tile.value.to(translator.element(op.result)), tile.lanes)


def _know_all(
    translator: Translator, op: sdg.ContractOp, at: Coordinates, together: Sequence[int], number: int
) -> None:
    """The sums at all points along some axes, in one pass: they have their keys and values in common."""
    places = [
        tuple(point.get(axis, coordinate) for axis, coordinate in enumerate(at))
        for point in points(translator.shape(op.result), together)
    ]
    contractions = [Contraction.of(translator, op, place) for place in places]
    passes = [Weighted(translator, each, number, each.lanes(1 - number)) for each in contractions]
    first, *_ = passes

    def step(coordinates: list[Coordinate], carried: Carried | None) -> Carried:
        parts = [None] * len(passes) if carried is None else _chunks(carried, len(passes))
        return [value for each, part in zip(passes, parts, strict=True) for value in each.step(coordinates, part)]

    carried = translator.over(first.axes, [start for each in passes for start in each.initial()], step)
    for place, each, part in zip(places, passes, _chunks(carried, len(passes)), strict=True):
        tile = each.divided(part)
        translator.know(op.result, place, Tile(tile.value.to(translator.element(op.result)), tile.lanes))


def _chunks(carried: Carried, count: int) -> list[Carried]:
    """What is carried, for each pass its own."""
    size = len(carried) // count
    return [carried[begin : begin + size] for begin in range(0, len(carried), size)]


def _softmax_operand(translator: Translator, contraction: Contraction) -> int | None:
    """The operand that is a softmax along the summed axis, where that axis takes more than one block."""
    if len(contraction.inputs) != 2 or len(contraction.summed) != 1:
        return None
    ((letter, extent),) = contraction.summed.items()
    if isinstance(extent, int) and extent <= translator.blocks.reductions(extent):
        return None
    for number, (letters, operand) in enumerate(zip(contraction.inputs, contraction.op.inputs, strict=True)):
        op, other = operand.owner, contraction.inputs[1 - number]
        if (
            isinstance(op, sdg.SoftmaxOp)
            and letters[op.axis] == letter
            and letter in other
            and operand not in translator.sources
        ):
            return number
    return None


class Weighted(Pass):
    """The pass of a softmax that carries the sum of the rows of the other operand too, each times its weight.

    Operand `number` of the contraction is the softmax, or of shares the scores that it would be of.
    """

    alone = False

    def __init__(self, translator: Translator, contraction: Contraction, number: int, columns: tuple[Lane, ...]):
        weights = contraction.op.inputs[number]
        softmax = weights.owner if isinstance(contraction.op, sdg.ContractOp) else None
        letters = contraction.inputs[number]
        self.letter = next(letter for letter in letters if letter not in contraction.at)
        super().__init__(
            translator,
            softmax if isinstance(softmax, sdg.SoftmaxOp) else contraction.op,
            softmax.operand if isinstance(softmax, sdg.SoftmaxOp) else weights,
            letters.index(self.letter),
            tuple(contraction.at[letter] for letter in letters if letter in contraction.at),
        )
        self.contraction = contraction
        self.other = 1 - number
        self.columns = columns
        self.shape = (self.lanes[0].size if self.lanes else 1), (columns[0].size if columns else 1)
        self.axes = [replace(axis, block=self._block(axis)) for axis in self.axes]
        self.along = carried_along(translator, self.axes, self.lanes)
        most = WIDE_ELEMENTS if translator.blocks.powers_of_two else CARRIED_WEIGHTS
        if self.along * self.shape[0] > most:  # the greatest is found across the lane in every block anyway
            self.along = 0
        at = {axis: place for axis, place in enumerate(inserted(self.row, {self.axis: ORIGIN})) if axis != self.axis}
        counting = key_range(translator, self.operand, self.axis, at, self.axes[0].block or 1)
        if counting is not None:
            translator.stretches[self.axes[0].key] = counting

    def _block(self, axis: Iterated) -> int:
        """The keys of a block."""
        more = not isinstance(axis.extent, int) and not self.translator.holds("<=", axis.extent, axis.block)
        return self.translator.blocks.keys(axis.block, self.shape, self.contraction.element, more=more)

    def sum(self) -> Tile:
        """The weighted sums, over the lanes of the rows and of the columns."""
        return self.divided(self.translator.over(self.axes, self.initial(), self.step))

    def divided(self, carried: Carried) -> Tile:
        """The sums of what is carried after the last block."""
        _, total, result = self.totalled(carried)
        return combine(
            self.translator.builder,
            ew.DivOp,
            self.laned(result),
            nonzero(self.translator, Tile(total, self.lanes)),
        )

    def values(self, along: Coordinate) -> Tile:
        """A block of what is summed, 0 where it is padding."""
        assert along.lane is not None
        return self.translator.masked(self.summed(along), along.lane, 0)

    def summed(self, along: Coordinate) -> Tile:
        """What is summed, where it is read."""
        number = self.other
        places = self.contraction.coordinates(number, {self.letter: along})
        return self.translator.pull(self.contraction.op.inputs[number], places)

    def completed(self, result: Value, weight: Tile, along: Coordinate) -> Value:
        """The sum after a block, of which the products are in it."""
        return result

    def laned(self, result: Value) -> Tile:
        """What is carried of the sum, over its lanes."""
        if self.lanes and self.columns:
            return Tile(result, (self.lanes[0], self.columns[0]))
        axis = 1 if self.lanes else 0
        return Tile(self.translator.builder.reduce(ReduceKind.SUM, result, axis), self.lanes or self.columns)

    def initial(self) -> list[tuple[float, Attribute, tuple[int, ...]]]:
        return [*super().initial(), (0, self.element, self.shape)]

    def step(self, at: list[Coordinate], carried: Carried | None) -> Carried:
        translator, builder = self.translator, self.translator.builder
        translator.in_pass = True
        block, (along,) = self.block(at, carried), at
        translator.in_pass = False
        assert along.lane is not None
        values = self.values(along)
        weights = rows_of(translator, block.weight, self.lanes, along.lane)
        columns = columns_of(translator, values, self.columns, along.lane)
        if carried is None:
            start = translator.constant_tile(0, self.element, self.shape)
        else:
            assert block.factor is not None
            factor = block.factor.value[:, None] if self.lanes else block.factor.value
            start = carried[2] * factor
        element = self.contraction.element
        result = builder.dot(weights.to(element), columns.to(element), start)
        return [*block.carried, self.completed(result, block.weight, along)]


EMITTERS: Mapping[type[Operation], Emitter] = MappingProxyType({sdg.ContractOp: emit_weighted_sum})
