"""Attention of a block of rows (`loop.attend`): one pass over the blocks of keys that any of them has.

Before: `%o = loop.attend "thn,nhd->thd" %s, %v rows t to 1`, row t has the keys up to t. After, for 64 rows from m on,
in pseudo-code:

    for j = 0 to m / 64:            blocks of keys that all rows have: two products and the weights between them
    for j = m / 64 to m / 64 + 1:   blocks that some have: scores of other keys are -inf

so that scores stand in 64 by 64 elements of scratch (Dao et al., "FlashAttention", 2022), keys after the last row are
not visited, and masks cost nothing where there is nothing to mask. A key that a row does not have must not count even
where what is summed is infinite, though its weight is 0: in the second loop infinities and NaN are left out of the
product, and added one key after the other to the rows that have them, which takes a loop of no iterations where there
are none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import Operation

from tempo_ir.dialects.loop import AttendOp
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import INDEX, ReduceKind
from tempo_ir.dialects.tile.builder import Value
from tempo_ir.index import Const, Expr, as_expr, maximum, minimum
from tempo_ir.lowering.kernels.blocks import HELD_KEYS
from tempo_ir.lowering.kernels.contraction import Contraction
from tempo_ir.lowering.kernels.reductions import reduce_padded
from tempo_ir.lowering.kernels.tiles import Coordinate, Coordinates, Lane, Tile, combine
from tempo_ir.lowering.kernels.translator import Carried, Emitter, Refine, Translator, Unsupported
from tempo_ir.lowering.kernels.weighted_sums import Weighted


def emit_attend(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """The sums at a block of rows."""
    assert isinstance(op, AttendOp)
    contraction = Contraction.of(translator, op, at)
    rows, columns = contraction.lanes(0), contraction.lanes(1)
    if set(rows) & set(columns):
        raise Unsupported("rows and columns of a weighted sum are one axis")
    for lanes in (rows, columns):
        if len(lanes) == 2:
            raise Refine(translator.key_of(lanes[0]), points=True)
    tile = Attended(translator, contraction, op, columns).sum()
    return Tile(tile.value.to(translator.element(op.result)), tile.lanes)


class Attended(Weighted):
    """The pass over the keys of a block of rows."""

    def __init__(self, translator: Translator, contraction: Contraction, op: AttendOp, columns: tuple[Lane, ...]):
        super().__init__(translator, contraction, 0, columns)
        (axis,) = self.axes
        decisions = translator.decisions
        if any(axis.key in learnt for learnt in (decisions.points, decisions.cuts, decisions.factors, decisions.rings)):
            raise Unsupported("keys are read in pieces")
        self.keys = as_expr(axis.extent)
        self.axes = [replace(axis, block=HELD_KEYS)]
        self.along = 0
        self.place = contraction.at[op.row]
        lane = self.place.lane
        if self.place.step != 1 or (lane is not None and lane not in self.lanes):
            raise Unsupported("rows are read at more than a shift")
        self.first = translator.builder.simplify(self.place.start)
        self.last = self.first + ((lane.size if lane is not None else 1) - 1)
        self.low, self.high = op.low, op.high
        self.banded = False
        self.finite: Tile | None = None

    def sum(self) -> Tile:
        """The weighted sums: over the blocks of keys that all rows have, then over those that some have."""
        begin, inner, after, end = self._stretches()
        translator = self.translator
        carried = [translator.constant_tile(number, kind, extents) for number, kind, extents in self.initial()]
        carried = self._over(inner, after, carried, lambda block: block, after * HELD_KEYS, full=True)
        self.banded = True
        before, skipped = inner - begin, after - inner

        def block_of(number: Expr) -> Expr:
            """The blocks before those that all rows have, then those after them."""
            if self.low is None:
                return number + after
            return number + begin + skipped * minimum(1, maximum(0, number - before + 1))

        carried = self._over(as_expr(0), before + (end - after), carried, block_of, self.keys, full=False)
        self.banded = False
        return self.divided(carried)

    def _stretches(self) -> tuple[Expr, Expr, Expr, Expr]:
        """The first block of keys, those from and to which all rows have all keys, and the end of the blocks."""
        simplify = self.translator.builder.simplify
        begin = inner = as_expr(0)
        last = whole = self.keys
        if self.low is not None:
            begin = maximum(0, minimum(self.keys, self.first + self.low)) // HELD_KEYS
            inner = (maximum(0, self.last + self.low) + (HELD_KEYS - 1)) // HELD_KEYS
        if self.high is not None:
            last = maximum(0, minimum(self.keys, self.last + self.high))
            whole = maximum(0, minimum(self.keys, self.first + self.high))
        end = maximum(begin, (last + (HELD_KEYS - 1)) // HELD_KEYS)
        if self.low is not None:
            inner = minimum(inner, end)
        after = maximum(inner, whole // HELD_KEYS)
        return simplify(begin), simplify(inner), simplify(after), simplify(end)

    def _over(
        self, begin: Expr, end: Expr, carried: Carried, block_of: Callable[[Expr], Expr], limit: Expr, *, full: bool
    ) -> Carried:
        """Run over blocks, counted one by one so that each is known to be whole, or to be masked."""
        builder, (axis,) = self.translator.builder, self.axes
        name = self.translator.axis_name(axis.key)
        with builder.loop(builder.index(begin), builder.index(end), 1, carried, name) as loop:
            counter = builder.counter(loop.index, begin, end)
            first = block_of(counter) * HELD_KEYS
            lane = Lane(axis.key, first, HELD_KEYS, limit if not isinstance(limit, Const) else limit.value, 0, full)
            loop.carry(*self.step([Coordinate(first, lane)], loop.carried))
        return loop.results

    def scores(self, along: Coordinate) -> Tile:
        """The scores; of keys that a row does not have -inf."""
        tile = super().scores(along)
        if not self.banded:
            return tile
        inside = self._inside(along)
        return tile if inside is None else combine(self.translator.builder, ew.SelectOp, inside, tile, -math.inf)

    def _inside(self, along: Coordinate) -> Tile | None:
        """Whether rows have keys, as distances within a block, so that no number is wide; None where all have all."""
        builder = self.translator.builder
        own, size = self.place.lane, 1 if along.lane is None else along.lane.size
        rows = 1 if own is None else own.size
        key = Tile(builder.iota(0, size), (along.lane,)) if along.lane is not None else Tile(builder.const(0, i32))
        row = Tile(builder.iota(0, rows), (own,)) if own is not None else Tile(builder.const(0, i32))
        conditions: list[Tile] = []
        for shift, relation in ((self.low, ew.LeOp), (self.high, ew.GtOp)):
            if shift is None:
                continue
            distance = minimum(size, maximum(-rows, self.first + shift - along.start))
            moved = combine(builder, ew.AddOp, row, Tile(builder.index(distance).to(i32)))
            conditions.append(combine(builder, relation, moved, key))
        if not conditions:
            return None
        both, *others = conditions
        for other in others:
            both = combine(builder, ew.AndOp, both, other)
        return both

    def values(self, along: Coordinate) -> Tile:
        """What is summed; where some rows do not have it without infinities and NaN."""
        tile = super().values(along)
        self.finite = None
        if not self.banded or self.low is self.high is None:
            return tile
        self.finite = _is_finite(self.translator, tile)
        kept = combine(self.translator.builder, ew.SelectOp, self.finite, tile, 0.0)
        return Tile(kept.value, kept.lanes, tile.zero_padded)

    def completed(self, result: Value, weight: Tile, along: Coordinate) -> Value:
        """Infinities and NaN that were left out, added key by key to the rows that have them."""
        if self.finite is None:
            return result
        translator, builder = self.translator, self.translator.builder
        assert along.lane is not None
        flag = self.finite.value
        for _ in self.finite.lanes:
            flag = builder.reduce(ReduceKind.AND, flag, 0)
        count = builder.select(flag, builder.const(0, i64), builder.const(along.lane.size, i64)).to(INDEX)
        with builder.loop(0, count, 1, [result]) as loop:
            number = builder.counter(loop.index, as_expr(0), as_expr(along.lane.size))
            key = Coordinate(builder.simplify(minimum(along.start + number, as_expr(along.lane.limit) - 1)))
            read = self.summed(key)
            summed = Tile(read.value.to(self.element), read.lanes)
            one = Tile(builder.iota(0, along.lane.size), (along.lane,))
            one = combine(builder, ew.EqOp, one, Tile(builder.index(number).to(i32)))
            chosen = combine(builder, ew.SelectOp, one, weight, 0.0)
            own = reduce_padded(translator, ReduceKind.SUM, chosen, along.lane)
            seen = self._inside(Coordinate(along.start + number))
            inside = builder.apply(ew.LtOp, builder.index(along.start + number), builder.index(along.lane.limit))
            added = self._rows(own) * self._columns(summed)
            left_out = builder.apply(ew.XorOp, _is_finite(translator, summed).value, builder.const(1, i1))
            taken = combine(builder, ew.AndOp, seen, Tile(inside)) if seen is not None else Tile(inside)
            taken = builder.apply(ew.AndOp, self._rows(taken), self._columns(Tile(left_out, summed.lanes)))
            loop.carry(builder.select(taken, loop.carried[0] + added, loop.carried[0]))
        return loop.results[0]

    def _rows(self, tile: Tile) -> Value:
        """A value of each row, beside columns."""
        return tile.value[:, None] if tile.lanes else tile.value

    def _columns(self, tile: Tile) -> Value:
        """A value of each column, beside rows."""
        return tile.value[None, :] if tile.lanes else tile.value


def _is_finite(translator: Translator, tile: Tile) -> Tile:
    """Whether elements are neither infinite nor NaN."""
    return combine(translator.builder, ew.EqOp, combine(translator.builder, ew.MulOp, tile, 0.0), 0.0)


EMITTERS: Mapping[type[Operation], Emitter] = MappingProxyType({AttendOp: emit_attend})
