"""Ops that move, select or place elements, at coordinates: the coordinates of the operand follow from those of the
result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop.checks import VALUE
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.types import Extent, Shape
from tempo_ir.index import Const, Expr, Facts, Slice, Sym, as_expr, free_symbols, maximum, minimum, simplify, substitute
from tempo_ir.index.rules import terms
from tempo_ir.lowering.kernels.elementwise import broadcast_coordinates, positions
from tempo_ir.lowering.kernels.layout import Array, Axis, row_major
from tempo_ir.lowering.kernels.tiles import ORIGIN, Coordinate, Coordinates, Lane, Tile, combine, lanes_of
from tempo_ir.lowering.kernels.translator import Emitter, Refine, Source, Translator


def emit_transpose(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """Axis n of the result is axis permutation[n] of the operand."""
    assert isinstance(op, sdg.TransposeOp)
    places = dict(zip(op.permutation, at, strict=True))
    return translator.pull(op.operand, [places[axis] for axis in range(len(at))])


def emit_broadcast(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """Stretched axes are read at 0."""
    return translator.pull(op.operands[0], broadcast_coordinates(translator, op.operands[0], at))


def emit_slice(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """Ranges shift and stretch the coordinates, points are coordinates."""
    assert isinstance(op, sdg.SliceOp)
    kept = iter(at)
    places = [
        _taken(translator, entry, kept_)
        for entry, kept_ in (
            (e, next(kept) if isinstance(e, Slice) else None) for e in substitute(op.take, translator.iterators)
        )
    ]
    return translator.pull(op.operand, places)


def _taken(translator: Translator, entry: Expr | Slice, at: Coordinate | None) -> Coordinate:
    if not isinstance(entry, Slice):
        return Coordinate(entry)
    assert at is not None
    start = translator.builder.simplify(entry.start + at.start * entry.step)
    return Coordinate(start, at.lane, at.step * entry.step)


def emit_reverse(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """The coordinate counted from the end."""
    assert isinstance(op, sdg.ReverseOp)
    last = as_expr(translator.shape(op.operand)[op.axis]) - 1
    places = list(at)
    places[op.axis] = Coordinate(last - at[op.axis].start, at[op.axis].lane, -at[op.axis].step)
    return translator.pull(op.operand, places)


# Concatenation and padding


def emit_concat(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """A lane is cut where one operand ends and the next begins; a point chooses the operand when the kernel runs."""
    assert isinstance(op, sdg.ConcatOp)
    bounds: list[Expr] = [Const(0)]
    for operand in op.inputs:
        bounds.append(bounds[-1] + translator.shape(operand)[op.axis])
    place = at[op.axis]
    if place.lane is not None:
        return _concat_lane(translator, op, at, bounds)
    for operand, low, high in zip(op.inputs, bounds, bounds[1:], strict=False):
        if translator.holds("<=", low, place.start) and translator.holds("<", place.start, high):
            return translator.pull(operand, _moved(at, op.axis, place.start - low))
    tiles = [
        translator.pull(operand, _moved(at, op.axis, _clipped(place.start - low, high - low)))
        for operand, low, high in zip(op.inputs, bounds, bounds[1:], strict=False)
    ]
    result = tiles[-1]
    index = translator.builder.index(place.start)
    for tile, high in list(zip(tiles, bounds[1:], strict=True))[-2::-1]:
        below = Tile(index < translator.builder.index(high))
        result = combine(translator.builder, ew.SelectOp, below, tile, result)
    return result


def _concat_lane(translator: Translator, op: sdg.ConcatOp, at: Coordinates, bounds: Sequence[Expr]) -> Tile:
    lane, shift = _unit_lane(translator, at[op.axis])
    for operand, low, high in zip(op.inputs, bounds, bounds[1:], strict=False):
        if translator.after(lane, low - shift) and translator.before(lane, high - shift):
            start = translator.builder.simplify(at[op.axis].start - low)
            return translator.pull(operand, _replaced(at, op.axis, Coordinate(start, lane)))
    raise Refine(translator.key_of(lane), cuts=[bound - shift for bound in bounds[1:-1]])


def _unit_lane(translator: Translator, coordinate: Coordinate) -> tuple[Lane, Expr]:
    """The lane of a coordinate that counts up by ones from a place that the launch knows, and that place."""
    assert coordinate.lane is not None
    translator.needs_order(coordinate.lane)
    shift = translator.builder.simplify(coordinate.shift)
    if coordinate.step != 1 or translator.builder.is_local(shift):
        raise Refine(translator.key_of(coordinate.lane), points=True)
    return coordinate.lane, shift


def _clipped(index: Expr, extent: Expr) -> Expr:
    """An index moved into an axis that it may leave, in order to be read without being used."""
    return maximum(minimum(index, extent - 1), 0)


def _moved(at: Coordinates, axis: int, start: Expr) -> Coordinates:
    return _replaced(at, axis, Coordinate(start))


def _replaced(at: Coordinates, axis: int, coordinate: Coordinate) -> Coordinates:
    return (*at[:axis], coordinate, *at[axis + 1 :])


def emit_pad(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """A lane is cut where the operand begins and ends; a point decides when the kernel runs whether it is inside."""
    assert isinstance(op, sdg.PadOp)
    value = translator.constant(op.value, translator.element(op.operand))
    places: list[Coordinate] = []
    inside: Tile | None = None
    for low, extent, coordinate in zip(op.low, translator.shape(op.operand), at, strict=True):
        high = low + extent
        if coordinate.lane is not None:
            lane, shift = _unit_lane(translator, coordinate)
            if translator.before(lane, low - shift) or translator.after(lane, high - shift):
                return value
            if not (translator.after(lane, low - shift) and translator.before(lane, high - shift)):
                raise Refine(translator.key_of(lane), cuts=[low - shift, high - shift])
            places.append(Coordinate(translator.builder.simplify(coordinate.start - low), lane))
            continue
        within, place = _padded_point(translator, coordinate.start, low, as_expr(extent))
        places.append(Coordinate(place))
        if within is not None:
            inside = within if inside is None else combine(translator.builder, ew.AndOp, inside, within)
    tile = translator.pull(op.operand, places)
    return tile if inside is None else combine(translator.builder, ew.SelectOp, inside, tile, value)


def _padded_point(translator: Translator, start: Expr, low: Expr, extent: Expr) -> tuple[Tile | None, Expr]:
    """Whether a point lies in the operand (None: it is known to), and where."""
    high = low + extent
    if translator.holds("<=", low, start) and translator.holds("<", start, high):
        return None, start - low
    builder = translator.builder
    index = builder.index(start)
    within = (index >= builder.index(low)) & (index < builder.index(high))
    return Tile(within), _clipped(start - low, extent)


# Reshapes


def emit_reshape(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """Dense memory is seen in the new shape; else the coordinates are counted in row-major order and taken apart
    again."""
    assert isinstance(op, sdg.ReshapeOp)
    old, new = translator.shape(op.operand), translator.shape(op.result)
    if (places := _unit_axes(at, old, new)) is not None:
        return translator.pull(op.operand, places)
    source = translator.sources.get(op.operand)
    if source is not None and is_dense(source, old):
        axes = tuple(Axis(extent, stride) for extent, stride in zip(new, row_major(new), strict=True))
        return translator.load(Source(source.pointer, source.element, Array(source.array.offset, axes)), at)
    return translator.pull(op.operand, reshaped(translator, at, new, old))


def _unit_axes(at: Coordinates, old: Shape, new: Shape) -> Coordinates | None:
    """The coordinates of the operand where a reshape only adds and drops axes of one element."""
    kept = iter([place for place, extent in zip(at, new, strict=True) if extent != 1])
    if [extent for extent in old if extent != 1] != [extent for extent in new if extent != 1]:
        return None
    return tuple(ORIGIN if extent == 1 else next(kept) for extent in old)


def is_dense(source: Source, shape: Shape) -> bool:
    """Whether the elements lie one after the other in row-major order."""
    strides = row_major(shape)
    return all(
        axis.wrap is None and (axis.stride == stride or axis.extent == 1)
        for axis, stride in zip(source.array.axes, strides, strict=True)
    )


def reshaped(translator: Translator, at: Coordinates, shape: Shape, into: Shape) -> Coordinates:
    """The coordinates in a tensor of shape `into` of what a tensor of `shape` has at `at`."""
    for lane in lanes_of(at):
        translator.needs_order(lane)
    symbols = {lane: Sym(f"$x{number}") for number, lane in enumerate(lanes_of(at))}
    facts = Facts(
        (
            *translator.builder.facts.ranges,
            *((s.name, as_expr(lane.low), as_expr(lane.limit) - 1) for lane, s in symbols.items()),
        ),
        nonnegative=True,
    )
    flat: Expr = Const(0)
    for coordinate, stride in zip(at, row_major(shape), strict=True):
        index = coordinate.start
        if coordinate.lane is not None:
            index = coordinate.shift + symbols[coordinate.lane] * coordinate.step
        flat = flat + index * stride
    places: list[Coordinate] = []
    for axis, (extent, stride) in enumerate(zip(into, row_major(into), strict=True)):
        digit = flat if stride == Const(1) else simplify(flat // stride, facts)
        if axis > 0:
            digit = simplify(digit % as_expr(extent), facts)
        places.append(_coordinate(translator, digit if extent != 1 else Const(0), symbols, stride))
    return tuple(places)


def _coordinate(translator: Translator, digit: Expr, symbols: Mapping[Lane, Sym], stride: Expr) -> Coordinate:
    """The coordinate that an index is, counted along at most one lane."""
    used = [lane for lane, symbol in symbols.items() if symbol.name in free_symbols(digit)]
    if not used:
        return Coordinate(digit)
    lane = used[0]
    step = terms(digit).get((symbols[lane],), 0)
    rest = digit - symbols[lane] * step
    if len(used) == 1 and step and symbols[lane].name not in free_symbols(rest):
        return Coordinate(translator.builder.simplify(rest + lane.first * step), lane, step)
    key = translator.key_of(lane)
    factor = _splits(stride, lane.limit)
    if factor and lane.low == 0 and key not in translator.decisions.factors:
        raise Refine(key, factor=factor)
    raise Refine(key, points=True)


def _splits(stride: Expr, extent: Extent) -> int:
    """The stride where an axis of so many elements is some whole rows of so many each, else 0."""
    if not isinstance(stride, Const) or not isinstance(extent, int) or not 1 < stride.value < extent:
        return 0
    return 0 if extent % stride.value else stride.value


# Gathers


def emit_gather(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """Rows of a table; a point is clipped into the table, and an id outside of it is reported."""
    assert isinstance(op, sdg.GatherOp)
    rank = len(translator.shape(op.ids))
    before, inner, behind = at[: op.axis], at[op.axis : op.axis + rank], at[op.axis + rank :]
    rows = translator.shape(op.table)[op.axis]
    ids = checked_ids(translator, op, op.ids, inner, rows)
    if len(ids.lanes) == 0:
        return translator.pull(op.table, (*before, Coordinate(row_symbol(translator, ids, rows)), *behind))
    source = translator.sources.get(op.table)
    others = lanes_of((*before, *behind))
    lane = ids.lanes[0]
    if source is None or len(ids.lanes) > 1 or lane in others or len(others) > 1:
        raise Refine(translator.key_of(lane), points=True)
    return translator.gather(source, (*before, Coordinate(Const(0)), *behind), op.axis, ids)


def checked_ids(translator: Translator, op: Operation, value: SSAValue, at: Coordinates, rows: Extent) -> Tile:
    """Ids at the coordinates, as i64; one outside of the rows is reported."""
    ids = translator.pull(value, at)
    ids = Tile(ids.value.to(i64), ids.lanes, ids.zero_padded)
    limit = Tile(translator.builder.index(rows).to(i64))
    negative = combine(translator.builder, ew.LtOp, ids, 0)
    beyond = combine(translator.builder, ew.GeOp, ids, limit)
    outside = combine(translator.builder, ew.OrOp, negative, beyond)
    translator.check(outside, f"id {VALUE} is outside of the {rows} rows, 0 to {as_expr(rows) - 1}", op, ids)
    return ids


def row_symbol(translator: Translator, row: Tile, rows: Extent) -> Expr:
    """A symbol for a row that the data choose, clipped into the table."""
    builder = translator.builder
    last = builder.index(as_expr(rows) - 1)
    index = builder.maximum(builder.minimum(builder.cast_index(row.value), last), 0)
    return builder.counter(index, Const(0), as_expr(rows), "row")


def emit_one_hot(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """1 where the id is the place on the last axis."""
    assert isinstance(op, sdg.OneHotOp)
    ids = translator.pull(op.ids, at[:-1])
    hot = combine(translator.builder, ew.EqOp, Tile(ids.value.to(i64), ids.lanes), positions(translator, at[-1]))
    element = translator.element(op.result)
    return Tile(hot.value if element == i1 else hot.value.to(element), hot.lanes)


EMITTERS: Mapping[type[Operation], Emitter] = MappingProxyType(
    {
        sdg.TransposeOp: emit_transpose,
        sdg.BroadcastOp: emit_broadcast,
        sdg.SliceOp: emit_slice,
        sdg.ReverseOp: emit_reverse,
        sdg.ConcatOp: emit_concat,
        sdg.PadOp: emit_pad,
        sdg.ReshapeOp: emit_reshape,
        sdg.GatherOp: emit_gather,
        sdg.OneHotOp: emit_one_hot,
    }
)
