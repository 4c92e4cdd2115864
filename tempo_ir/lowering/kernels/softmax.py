"""Softmax at coordinates.

Along an axis that lies in one block, everything is read at the same coordinates and shared. Else the greatest element
and the sum of the weights of a row come from one pass over it, in which the sum is rescaled where the greatest element
grows (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018); they are computed once per row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.dialects.builtin import NameLoc, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import ReduceKind
from tempo_ir.dialects.types import Extent
from tempo_ir.index import as_expr
from tempo_ir.lowering.kernels.reductions import (
    accumulator,
    carried_along,
    inserted,
    reduce_padded,
    reduce_tile,
    reduced_axes,
)
from tempo_ir.lowering.kernels.tiles import Coordinate, Coordinates, Tile, combine, extents_of, lanes_of
from tempo_ir.lowering.kernels.translator import Carried, Emitter, Refine, Translator


def emit_softmax(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """`exp(x - greatest) / sum`; a row of -inf alone gives zeros."""
    assert isinstance(op, sdg.SoftmaxOp)
    row, along = at[: op.axis] + at[op.axis + 1 :], at[op.axis]
    if any(lane in lanes_of(row) for lane in lanes_of((along,))):
        raise Refine(translator.key_of(lanes_of(row)[0]), points=True)
    if covers(translator, along, translator.shape(op.operand)[op.axis]):
        weight, total = _weights_of_block(translator, op, row, along)
    else:
        greatest, total = _statistics(translator, op, row)
        weight = weight_of(translator, _wide(translator, op.operand, at), greatest)
    # one division per row: the product differs from the quotient by an ulp, less than the weights do
    share = combine(translator.builder, ew.DivOp, 1.0, nonzero(translator, total))
    quotient = combine(translator.builder, ew.MulOp, weight, share)
    return Tile(quotient.value.to(translator.element(op.operand)), quotient.lanes)


def covers(translator: Translator, coordinate: Coordinate, extent: Extent) -> bool:
    """Whether a coordinate reads an axis from its first element to its last."""
    lane = coordinate.lane
    return (
        lane is not None
        and coordinate.step == 1
        and coordinate.start == as_expr(0)
        and lane.limit == extent
        and isinstance(extent, int)
        and lane.size >= extent
    )


def _wide(translator: Translator, operand: SSAValue, at: Coordinates) -> Tile:
    """The operand in the type of the accumulator."""
    tile = translator.pull(operand, at)
    return Tile(tile.value.to(accumulator(translator.element(operand))), tile.lanes, tile.zero_padded)


def weight_of(translator: Translator, tile: Tile, greatest: Tile) -> Tile:
    """`exp(x - greatest)`; of a row of -inf alone all weights are 0."""
    nothing = combine(translator.builder, ew.EqOp, greatest, -math.inf)
    shift = combine(translator.builder, ew.SelectOp, nothing, 0.0, greatest)
    return combine(translator.builder, ew.ExpOp, combine(translator.builder, ew.SubOp, tile, shift))


def nonzero(translator: Translator, total: Tile) -> Tile:
    """The total, or 1 where there is nothing."""
    nothing = combine(translator.builder, ew.EqOp, total, 0.0)
    return combine(translator.builder, ew.SelectOp, nothing, 1.0, total)


def _weights_of_block(
    translator: Translator, op: sdg.SoftmaxOp, row: Coordinates, along: Coordinate
) -> tuple[Tile, Tile]:
    """The weights of a row and their sum, where one block holds all of it."""
    tile, lanes = _wide(translator, op.operand, inserted(row, {op.axis: along})), lanes_of(row)
    greatest = reduce_tile(translator, ReduceKind.MAX, tile, along.lane)
    weight = weight_of(translator, tile, Tile(translator.filled(greatest, lanes), lanes))
    total = reduce_tile(translator, ReduceKind.SUM, weight, along.lane)
    return weight, Tile(translator.filled(total, lanes), lanes)


def _statistics(translator: Translator, op: sdg.SoftmaxOp, row: Coordinates) -> tuple[Tile, Tile]:
    """The same in a loop over blocks, once per row."""
    key, lanes = (op, row), lanes_of(row)
    known = translator.rows.get(key)
    if known is None:
        with translator.builder.at(translator.depth(row)):
            greatest, total = Pass(translator, op, op.operand, op.axis, row).run()
        known = translator.rows[key] = (Tile(greatest, lanes), Tile(total, lanes))
    return known


@dataclass(frozen=True, slots=True)
class Block:
    """A block of rows: the greatest element and the sum of the weights after it, its weights, and what sums of before
    were multiplied by (None in the first block)."""

    carried: Carried
    weight: Tile
    factor: Tile | None


class Pass:
    """One pass over rows of `operand` for `op`, which carries the greatest element so far and the sum of the weights
    relative to it."""

    alone = True
    """Whether a block of the rows is read for nothing else."""

    def __init__(
        self,
        translator: Translator,
        op: Operation,
        operand: SSAValue,
        axis: int,
        row: Coordinates,
    ):
        self.translator = translator
        self.op = op
        self.operand = operand
        self.axis = axis
        self.row = row
        self.axes, self.lanes = reduced_axes(translator, op, operand, (axis,), row, alone=self.alone)
        self.element: Attribute = accumulator(translator.element(operand))
        translator.unordered.update(axis.key for axis in self.axes)
        self.along = carried_along(translator, self.axes, self.lanes)

    def run(self) -> Carried:
        """The greatest elements and the sums of the weights."""
        return self.totalled(self.translator.over(self.axes, self.initial(), self.step))

    def totalled(self, carried: Carried) -> Carried:
        """What is carried after the last block, with the weights summed along the lane that they keep."""
        greatest, total, *rest = carried
        if self.along:
            total = self.translator.builder.reduce(ReduceKind.SUM, total, len(self.lanes))
        return [greatest, total, *rest]

    def initial(self) -> list[tuple[float, Attribute, tuple[int, ...]]]:
        """What is carried before the first block."""
        extents = extents_of(self.lanes)
        return [
            (-math.inf, self.element, extents),
            (0, self.element, (*extents, self.along) if self.along else extents),
        ]

    def step(self, at: list[Coordinate], carried: Carried | None) -> Carried:
        """One block."""
        return self.block(at, carried).carried

    def block(self, at: Sequence[Coordinate], carried: Carried | None) -> Block:
        """One block of the rows."""
        translator, builder = self.translator, self.translator.builder
        outer, builder.location = builder.location, NameLoc(StringAttr(self.op.name), self.op.location)
        (along,) = at
        tile = _wide(translator, self.operand, inserted(self.row, {self.axis: along}))
        greatest = tile
        if along.lane is not None:
            tile = translator.masked(tile, along.lane, -math.inf)
            greatest = reduce_padded(translator, ReduceKind.MAX, tile, along.lane)
        if carried is not None:
            greatest = combine(builder, ew.MaxOp, Tile(carried[0], self.lanes), greatest)
        weight = weight_of(translator, tile, greatest)
        if along.lane is not None:  # exp(-inf) is 0
            weight = Tile(weight.value, weight.lanes, frozenset({along.lane}))
        kept = self.lanes
        if self.along and along.lane is not None:
            part, kept = weight, (*self.lanes, along.lane)
        else:
            part = reduce_tile(translator, ReduceKind.SUM, weight, along.lane)
        factor = None
        if carried is not None:
            factor = weight_of(translator, Tile(carried[0], self.lanes), greatest)
            part = combine(builder, ew.AddOp, combine(builder, ew.MulOp, Tile(carried[1], kept), factor), part)
        builder.location = outer
        return Block([translator.filled(greatest, self.lanes), translator.filled(part, kept)], weight, factor)


EMITTERS: Mapping[type[Operation], Emitter] = MappingProxyType({sdg.SoftmaxOp: emit_softmax})
