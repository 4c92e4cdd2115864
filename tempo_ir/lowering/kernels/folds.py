"""Folds at coordinates: one loop that carries a tile of each value.

What a fold carries has axes of the classes of one of its values, the widest: a block of that is computed by itself. So
asking for a value at coordinates says where the others are read, and one loop gives all of them.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from tempo_ir.dialects.loop import FoldOp
from tempo_ir.index import Const, substitute
from tempo_ir.lowering.kernels.axis_classes import AxisClasses, values_of
from tempo_ir.lowering.kernels.draws import start_of
from tempo_ir.lowering.kernels.tiles import ORIGIN, Coordinates, Tile, lanes_of
from tempo_ir.lowering.kernels.translator import Translator


def emit_fold(translator: Translator, value: SSAValue, at: Coordinates) -> Tile:
    """A result of a fold, and with it all others that have no axis more."""
    op = value.owner
    assert isinstance(op, FoldOp)
    builder, block = translator.builder, op.body.block
    own = next(number for number, final in enumerate(op.finals) if final is value)
    places = carried_places(op, own, at)
    starts = [translator.filled(translator.pull(op.carried[n], place), lanes_of(place)) for n, place in places.items()]
    for argument, outside in zip(block.args[len(op.carried) :], op.reads, strict=True):
        translator.aliases[argument] = outside
    count = substitute(op.count, translator.iterators)
    with builder.loop(0, builder.index(count), 1, starts) as loop:
        counter = builder.counter(loop.index, Const(0), count)
        kept = translator.iterators, translator.counted
        translator.iterators = {**translator.iterators, op.iterator: counter}
        translator.counted = {**translator.counted, op.iterator: counter + start_of(op.iterator)}
        translator.inside[block] = builder.depth(counter)
        for (number, place), tile in zip(places.items(), loop.carried, strict=True):
            translator.know(block.args[number], place, Tile(tile, lanes_of(place)))
        following = [translator.pull(op.next_values[number], place) for number, place in places.items()]
        loop.carry(
            *(translator.filled(tile, lanes_of(place)) for tile, place in zip(following, places.values(), strict=True))
        )
        translator.iterators, translator.counted = kept
        translator.forget(values_of(block))
        del translator.inside[block]
    for (number, place), tile in zip(places.items(), loop.results, strict=True):
        translator.know(op.finals[number], place, Tile(tile, lanes_of(place)))
    return Tile(loop.results[list(places).index(own)], lanes_of(places[own]))


def carried_places(op: FoldOp, own: int, at: Coordinates) -> dict[int, Coordinates]:
    """Where the values that a fold carries are read, by number, if one of its results is read at `at`; without those
    that have an axis more than it."""
    classes = AxisClasses()
    classes.visit(op.body.block)
    for argument, following in zip(op.body.block.args, op.next_values, strict=False):
        classes.tie_all(argument, following)
    axes = classes.of_value(op.body.block.args[own])
    known = {axis: coordinate for axis, coordinate in zip(axes, at, strict=True) if axis is not None}
    places: dict[int, Coordinates] = {}
    for number, argument in enumerate(op.body.block.args[: len(op.carried)]):
        axes = classes.of_value(argument)
        if all(axis is None or axis in known for axis in axes):
            places[number] = tuple(ORIGIN if axis is None else known[axis] for axis in axes)
    return places
