"""Reductions and positions of extremes at coordinates: loops over the reduced axes that carry accumulators.

One of the reduced axes is a lane where the result leaves room for one (a tile has two axes), the others are walked
point by point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from xdsl.dialects.builtin import f32, i8, i64
from xdsl.ir import Attribute, Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import FoldOp
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import ReduceKind, bit_width, is_unsigned
from tempo_ir.dialects.types import Extent, is_bool, is_float
from tempo_ir.index import as_expr
from tempo_ir.lowering.kernels.elementwise import positions
from tempo_ir.lowering.kernels.tiles import Coordinate, Coordinates, Lane, Tile, combine, extents_of, lanes_of
from tempo_ir.lowering.kernels.translator import AxisKey, Carried, Emitter, Iterated, Translator

_KINDS: Mapping[type[Operation], ReduceKind] = MappingProxyType(
    {
        sdg.SumOp: ReduceKind.SUM,
        sdg.MeanOp: ReduceKind.SUM,
        sdg.ProdOp: ReduceKind.PROD,
        sdg.MaxOp: ReduceKind.MAX,
        sdg.MinOp: ReduceKind.MIN,
        sdg.ArgmaxOp: ReduceKind.MAX,
        sdg.ArgminOp: ReduceKind.MIN,
    }
)
_COMBINE: Mapping[ReduceKind, type[ew.BinaryOp]] = MappingProxyType(
    {
        ReduceKind.SUM: ew.AddOp,
        ReduceKind.PROD: ew.MulOp,
        ReduceKind.MAX: ew.MaxOp,
        ReduceKind.MIN: ew.MinOp,
        ReduceKind.OR: ew.OrOp,
        ReduceKind.AND: ew.AndOp,
    }
)


_PASSES = (sdg.ContractOp, sdg.ReduceOp, sdg.ArgReduceOp, sdg.SoftmaxOp, FoldOp)
SHORT_REDUCTION = 24
"""Elements of an axis below which an open axis makes the better lane."""


def identity(kind: ReduceKind, element: Attribute) -> float:
    """What leaves every element as it is when combined with it."""
    if kind in (ReduceKind.SUM, ReduceKind.OR):
        return 0
    if kind in (ReduceKind.PROD, ReduceKind.AND):
        return 1
    if is_float(element):
        return -math.inf if kind is ReduceKind.MAX else math.inf
    bits = bit_width(element)
    if is_unsigned(element):
        return 0 if kind is ReduceKind.MAX else (1 << bits) - 1
    return -(1 << (bits - 1)) if kind is ReduceKind.MAX else (1 << (bits - 1)) - 1


def accumulator(element: Attribute) -> Attribute:
    """The type in which elements are accumulated: f16 and bf16 in f32; booleans, which have no order, as i8."""
    if is_bool(element):
        return i8
    return f32 if is_float(element) and bit_width(element) < 32 else element


def reduced_axes(
    translator: Translator,
    owner: Operation,
    value: SSAValue,
    axes: Sequence[int],
    at: Coordinates,
    *,
    alone: bool = True,
) -> tuple[list[Iterated], tuple[Lane, ...]]:
    """How to iterate over the axes of `value` that are reduced, for a result read at `at`; and the lanes of the
    result."""
    shape = translator.shape(value)
    return lanes_and_axes(translator, owner, {axis: shape[axis] for axis in axes}, at, alone=alone)


def lanes_and_axes(
    translator: Translator, owner: object, extents: Mapping[int, Extent], at: Coordinates, *, alone: bool = True
) -> tuple[list[Iterated], tuple[Lane, ...]]:
    """One of the reduced axes is a lane, the last of the greatest ones, unless the result has two lanes already.

    `alone` says that a block of it is read for the lanes of the result and for nothing else.
    """
    lanes = lanes_of(at)
    keys = {axis: _reduced_key(translator, AxisKey(owner, axis), lanes) for axis in extents}
    many = len(lanes) > 1 or not translator.pinned.keys().isdisjoint(keys.values())
    free = [axis for axis in extents if keys[axis] not in translator.decisions.points and not many]
    whole = translator.whole
    chosen = max(free, key=lambda axis: (keys[axis] in whole, _weight(extents[axis]), axis), default=None)
    others = math.prod(extents_of(lanes)) if alone and _is_read(translator, owner) else 0
    blocks = dict.fromkeys(extents, 0)
    if chosen is not None:
        extent = extents[chosen]
        block = translator.blocks.reductions(extent, others)
        blocks[chosen] = extent if keys[chosen] in whole and isinstance(extent, int) else block
    iterated = [Iterated(keys[axis], extent, blocks[axis]) for axis, extent in extents.items()]
    return sorted(iterated, key=lambda axis: axis.block), lanes


def _reduced_key(translator: Translator, key: AxisKey, lanes: tuple[Lane, ...]) -> AxisKey:
    """The axis that is reduced; another one than the whole axis of the result where that has a lane already."""
    taken = any(translator.key_of(lane) in translator.whole for lane in lanes)
    return AxisKey(key.owner, key.axis, "again") if taken and key in translator.whole else key


def _is_read(translator: Translator, owner: object) -> bool:
    """Whether the operands of an op are made of memory one by one, without products or other passes."""
    waiting = list(owner.operands) if isinstance(owner, Operation) else []
    seen = set(waiting)
    while waiting:
        value = translator.aliases.get(waiting[-1], waiting[-1])
        waiting.pop()
        if value in translator.sources or not isinstance(value.owner, Operation):
            continue
        if isinstance(value.owner, _PASSES):
            return False
        waiting += [operand for operand in value.owner.operands if operand not in seen]
        seen.update(value.owner.operands)
    return True


def _weight(extent: Extent) -> int:
    return extent if isinstance(extent, int) else SHORT_REDUCTION


def inserted(at: Coordinates, places: Mapping[int, Coordinate]) -> Coordinates:
    """The coordinates of an operand, given those of the result and, by axis, of the axes that the result lacks."""
    kept = iter(at)
    return tuple(places[axis] if axis in places else next(kept) for axis in range(len(at) + len(places)))


def reduce_tile(translator: Translator, kind: ReduceKind, tile: Tile, lane: Lane | None) -> Tile:
    """A tile combined along a lane; padding does not count. Nothing is done where there is no lane."""
    if lane is None:
        return tile
    return reduce_padded(translator, kind, translator.masked(tile, lane, identity(kind, tile.value.element)), lane)


def reduce_padded(translator: Translator, kind: ReduceKind, tile: Tile, lane: Lane) -> Tile:
    """A tile combined along a lane, whose padding changes nothing."""
    if lane not in tile.lanes:
        tile = Tile(translator.filled(tile, (*tile.lanes, lane)), (*tile.lanes, lane))
    axis = tile.lanes.index(lane)
    rest = tuple(other for other in tile.lanes if other is not lane)
    return Tile(translator.builder.reduce(kind, tile.value, axis), rest)


def fold(
    translator: Translator,
    kind: ReduceKind,
    element: Attribute,
    axes: Sequence[Iterated],
    lanes: tuple[Lane, ...],
    body: Callable[[dict[int, Coordinate]], Tile],
    *,
    lane_first: bool = False,
) -> Tile:
    """`body`, which is asked at the coordinates of the reduced axes by number, combined over all of them.

    What a program of many threads carries has the reduced lane as its first axis where `lane_first` says that the body
    has; elsewhere it is the last one.
    """
    lane_first = lane_first and translator.blocks.powers_of_two

    wide = carried_along(translator, axes, lanes)
    translator.unordered.update(axis.key for axis in axes)

    def step(at: list[Coordinate], carried: Carried | None) -> Carried:
        places = {axis.key.axis: coordinate for axis, coordinate in zip(axes, at, strict=True)}
        lane = next((coordinate.lane for coordinate in at if coordinate.lane is not None), None)
        tile = body(places)
        tile = Tile(tile.value.to(element), tile.lanes, tile.zero_padded)
        kept = lanes
        if wide and lane is not None:
            tile = translator.masked(tile, lane, identity(kind, element))
            kept = (lane, *lanes) if lane_first else (*lanes, lane)
        else:
            tile = reduce_tile(translator, kind, tile, lane)
        if carried is not None:
            tile = combine(translator.builder, _COMBINE[kind], Tile(carried[0], kept), tile)
        return [translator.filled(tile, kept)]

    extents = extents_of(lanes)
    if wide:
        extents = (wide, *extents) if lane_first else (*extents, wide)
    (result,) = translator.over(axes, [(identity(kind, element), element, extents)], step)
    if wide:
        result = translator.builder.reduce(kind, result, 0 if lane_first else len(lanes))
    return Tile(result, lanes)


WIDE_ELEMENTS = 256
"""Most elements of an accumulator that keeps the reduced lane."""
WIDE_FILLINGS = 4
"""The same for a program of many threads, in fillings of its threads."""


def carried_along(translator: Translator, axes: Sequence[Iterated], lanes: tuple[Lane, ...]) -> int:
    """The size of the reduced lane where blocks are combined element by element and the lane is summed at the end, 0
    where each block is: a sum across the lanes of a vector costs more than several across vectors."""
    lane = next((axis for axis in axes if axis.block), None)
    if lane is None or len(lanes) > 1:
        return 0
    (*_, last) = translator.digits(lane)
    block = 0 if last[0].key in translator.decisions.points else last[0].block
    elements = block * (lanes[0].size if lanes else 1)
    loops = len(axes) > 1 or len(translator.digits(lane)) > 1 or not _lies_whole(lane)
    most = max(WIDE_ELEMENTS, WIDE_FILLINGS * translator.blocks.filling)
    return block if loops and elements <= most else 0


def _lies_whole(axis: Iterated) -> bool:
    """Whether one block holds the whole axis."""
    return isinstance(axis.extent, int) and axis.extent <= axis.block


def emit_reduction(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """Sums, products, greatest and least elements, means."""
    assert isinstance(op, sdg.ReduceOp)
    kind, element = _KINDS[type(op)], translator.element(op.operand)
    if is_bool(element):
        kind = ReduceKind.OR if kind is ReduceKind.MAX else ReduceKind.AND
    axes, lanes = reduced_axes(translator, op, op.operand, op.axes, at)
    total = fold(
        translator,
        kind,
        element if is_bool(element) else accumulator(element),
        axes,
        lanes,
        lambda places: translator.pull(op.operand, inserted(at, places)),
        lane_first=_is_summed_first(op, at, axes),
    )
    if isinstance(op, sdg.MeanOp):
        total = combine(translator.builder, ew.DivOp, total, element_count(translator, op))
    return Tile(total.value.to(element), total.lanes)


def _is_summed_first(op: sdg.ReduceOp, at: Coordinates, axes: Sequence[Iterated]) -> bool:
    """Whether the axis that is reduced by blocks stands before the lane of the result, in the operand."""
    kept = [axis for axis in range(len(at) + len(op.axes)) if axis not in op.axes]
    laned = [axis for axis, coordinate in zip(kept, at, strict=True) if coordinate.lane is not None]
    return any(axis.block and laned and axis.key.axis < laned[0] for axis in axes)


def element_count(translator: Translator, op: sdg.MeanOp) -> Tile:
    """The number of elements that a mean is over, in the type of the accumulator."""
    shape = translator.shape(op.operand)
    count = as_expr(1)
    for axis in op.axes:
        count = count * shape[axis]
    return Tile(translator.builder.index(count).to(accumulator(translator.element(op.operand))))


def emit_position(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """The position of the first extreme element, or of the first NaN."""
    assert isinstance(op, sdg.ArgReduceOp)
    builder = translator.builder
    kind = _KINDS[type(op)]
    positional = ReduceKind.ARGMAX if kind is ReduceKind.MAX else ReduceKind.ARGMIN
    element = accumulator(translator.element(op.operand))
    axes, lanes = reduced_axes(translator, op, op.operand, (op.axis,), at)

    def step(places: list[Coordinate], carried: Carried | None) -> Carried:
        (place,) = places
        tile = translator.pull(op.operand, inserted(at, {op.axis: place}))
        tile = Tile(tile.value.to(element), tile.lanes)
        where = positions(translator, Coordinate(place.start))
        best = tile
        if place.lane is not None:
            masked = translator.masked(tile, place.lane, identity(kind, element))
            best = reduce_tile(translator, kind, masked, place.lane)
            found = reduce_tile_position(translator, positional, masked, place.lane)
            where = combine(builder, ew.AddOp, found, where)
        if carried is not None:
            best, where = _better(translator, kind, (Tile(carried[0], lanes), Tile(carried[1], lanes)), (best, where))
        return [translator.filled(best, lanes), translator.filled(where, lanes)]

    initial = [(identity(kind, element), element, extents_of(lanes)), (0, i64, extents_of(lanes))]
    return Tile(translator.over(axes, initial, step)[1], lanes)


def reduce_tile_position(translator: Translator, kind: ReduceKind, tile: Tile, lane: Lane) -> Tile:
    """The place within the lane of the first extreme element."""
    if lane not in tile.lanes:
        tile = Tile(translator.filled(tile, (*tile.lanes, lane)), (*tile.lanes, lane))
    rest = tuple(other for other in tile.lanes if other is not lane)
    return Tile(translator.builder.reduce(kind, tile.value, tile.lanes.index(lane), i64), rest)


def _better(
    translator: Translator, kind: ReduceKind, old: tuple[Tile, Tile], new: tuple[Tile, Tile]
) -> tuple[Tile, Tile]:
    """The better of two (value, position) pairs; the old one of ties; NaN is better than any number."""
    builder = translator.builder
    take = combine(builder, ew.GtOp if kind is ReduceKind.MAX else ew.LtOp, new[0], old[0])
    if is_float(new[0].value.element):
        new_nan = combine(builder, ew.NeOp, new[0], new[0])
        old_number = combine(builder, ew.EqOp, old[0], old[0])
        take = combine(builder, ew.OrOp, take, combine(builder, ew.AndOp, new_nan, old_number))
    return combine(builder, ew.SelectOp, take, new[0], old[0]), combine(builder, ew.SelectOp, take, new[1], old[1])


EMITTERS: Mapping[type[Operation], Emitter] = MappingProxyType(
    {
        sdg.SumOp: emit_reduction,
        sdg.MeanOp: emit_reduction,
        sdg.ProdOp: emit_reduction,
        sdg.MaxOp: emit_reduction,
        sdg.MinOp: emit_reduction,
        sdg.ArgmaxOp: emit_position,
        sdg.ArgminOp: emit_position,
    }
)
