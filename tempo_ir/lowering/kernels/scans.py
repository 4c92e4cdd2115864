"""Sinks with an order of their own: running sums and products, and sums scattered into rows.

Neither can be asked for at one coordinate alone: a scan carries on along its axis, a scatter adds wherever the ids
say. Both are written by the loop that computes them; the axes beside are iterated over as those of any other sink.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tempo_ir.dialects import sdg
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import ReduceKind
from tempo_ir.index import Expr, as_expr
from tempo_ir.lowering.kernels.nests import GRID_AXES, GridAxis, Sink, lies_in_one_block, program_coordinate
from tempo_ir.lowering.kernels.reductions import accumulator, identity, reduce_tile
from tempo_ir.lowering.kernels.shapes import checked_ids, row_symbol
from tempo_ir.lowering.kernels.tiles import Coordinate, Coordinates, Tile, combine, extents_of, lanes_of
from tempo_ir.lowering.kernels.translator import AxisKey, Carried, Iterated, Translator, Unsupported


def beside(
    translator: Translator, owner: object, sink: Sink, axis: int, body: Callable[[Mapping[int, Coordinate]], None]
) -> list[GridAxis]:
    """Run `body` at the coordinates of all axes of a sink but one, the last of them being a lane; returns the grid.

    A program of one thread takes a scan along the last axis, where memory is contiguous, row by row: it has no lane.
    """
    shape = translator.shape(sink.value)
    others = [number for number in range(len(shape)) if number != axis]
    keys = {number: AxisKey(owner, number) for number in others}
    free = [number for number in others if shape[number] != 1 and keys[number] not in translator.decisions.points]
    if axis == len(shape) - 1 and not translator.blocks.filling:
        free = []
    axes = {
        number: Iterated(
            keys[number], shape[number], translator.blocks.columns(shape[number]) if number == max(free) else 0
        )
        if free
        else Iterated(keys[number], shape[number], 0)
        for number in others
    }
    places: dict[int, Coordinate] = {}
    grid: list[GridAxis] = []
    for number, iterated in axes.items():
        cut = iterated.key in translator.decisions.cuts or iterated.key in translator.decisions.factors
        if len(grid) < GRID_AXES and not cut and not lies_in_one_block(iterated):
            places[number], extent = program_coordinate(translator, iterated, len(grid))
            grid.append(GridAxis(extent))
    inner = [number for number in others if number not in places]

    def step(at: list[Coordinate], carried: Carried | None) -> Carried:
        body({**places, **dict(zip(inner, at, strict=True))})
        return []

    translator.over([axes[number] for number in inner], [], step)
    return grid


def _placed(places: Mapping[int, Coordinate], axis: int, coordinate: Coordinate) -> Coordinates:
    everywhere = {**places, axis: coordinate}
    return tuple(everywhere[number] for number in range(len(everywhere)))


def write_scan(translator: Translator, owner: object, sink: Sink, op: sdg.ScanOp) -> list[GridAxis]:
    """A running sum or product: along a lane by scans of blocks, or row by row where another axis is the lane."""
    kind = ReduceKind.SUM if isinstance(op, sdg.CumsumOp) else ReduceKind.PROD
    operation = ew.AddOp if kind is ReduceKind.SUM else ew.MulOp
    element, builder = translator.element(op.result), translator.builder
    total_type = accumulator(element)
    extent = translator.shape(op.operand)[op.axis]
    key = AxisKey(op, op.axis)

    def along(places: Mapping[int, Coordinate]) -> None:
        lanes = lanes_of(places.values())
        block = 0 if lanes or key in translator.decisions.points else translator.blocks.reductions(extent)

        def step(at: list[Coordinate], carried: Carried | None) -> Carried:
            coordinates = _placed(places, op.axis, _turned(at[0], as_expr(extent) - 1) if op.reverse else at[0])
            tile = translator.pull(op.operand, coordinates)
            tile = Tile(tile.value.to(total_type), tile.lanes, tile.zero_padded)
            rest = tile
            if (lane := at[0].lane) is not None:
                tile = translator.masked(tile, lane, identity(kind, total_type))
                tile = Tile(translator.filled(tile, (lane,)), (lane,))
                rest = reduce_tile(translator, kind, tile, lane)
                tile = Tile(builder.scan(kind, tile.value, 0), (lane,))
            if carried is not None:
                before = Tile(carried[0], lanes)
                tile, rest = combine(builder, operation, tile, before), combine(builder, operation, rest, before)
            translator.store(sink.target, coordinates, Tile(tile.value.to(element), tile.lanes))
            return [translator.filled(rest, lanes)]

        translator.over(
            [Iterated(key, extent, block)], [(identity(kind, total_type), total_type, extents_of(lanes))], step
        )

    return beside(translator, owner, sink, op.axis, along)


def _turned(coordinate: Coordinate, last: Expr) -> Coordinate:
    """The coordinate counted from the end."""
    return Coordinate(last - coordinate.start, coordinate.lane, -coordinate.step)


def write_scatter_add(translator: Translator, owner: object, sink: Sink, op: sdg.ScatterAddOp) -> list[GridAxis]:
    """Zeros, then the updates added one id after the other."""
    element = translator.element(op.result)
    if accumulator(element) != element:
        raise Unsupported(f"{op.name} of 16-bit floats is rounded once, at the end")
    rows = translator.shape(op.result)[op.axis]

    def fill_and_add(places: Mapping[int, Coordinate]) -> None:
        lanes = lanes_of(places.values())

        def clear(at: list[Coordinate], carried: Carried | None) -> Carried:
            zero = Tile(translator.constant_tile(0, element, extents_of(lanes)), lanes)
            translator.store(sink.target, _placed(places, op.axis, at[0]), zero)
            return []

        translator.over([Iterated(AxisKey(op, -1), rows, 0)], [], clear)

        def add(at: list[Coordinate], carried: Carried | None) -> Carried:
            ids = checked_ids(translator, op, op.ids, tuple(at), rows)
            before = [places[number] for number in range(op.axis)]
            behind = [places[number] for number in range(op.axis + 1, len(places) + 1)]
            update = translator.pull(op.updates, (*before, *at, *behind))
            row = Coordinate(row_symbol(translator, ids, rows))
            translator.add(sink.target, _placed(places, op.axis, row), update)
            return []

        axes = [Iterated(AxisKey(op, number), extent, 0) for number, extent in enumerate(translator.shape(op.ids))]
        translator.over(axes, [], add)

    return beside(translator, owner, sink, op.axis, fill_and_add)
