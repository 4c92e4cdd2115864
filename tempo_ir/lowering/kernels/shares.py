"""Sinks of a sum in shares: the programs of the grid run along the shares too, each over every so manieth block.

Before: `%sum, %greatest, %total = loop.shares "hgn,nhd->hgd" %score, %v into 16 of 64`. After: a grid of 16 by the
heads; a program carries what a pass of a softmax carries (`weighted_sums`) over blocks p, p + 16, p + 32 and so on, and
writes it as it is; where there is none that is what a pass begins with, -inf and 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from tempo_ir.dialects.loop import SharesOp
from tempo_ir.lowering.kernels.contraction import Contraction
from tempo_ir.lowering.kernels.nests import (
    GRID_AXES,
    GridAxis,
    Sink,
    lies_in_one_block,
    program_coordinate,
    weighted_blocks,
)
from tempo_ir.lowering.kernels.tiles import Coordinate, Coordinates, Tile
from tempo_ir.lowering.kernels.translator import AxisKey, Carried, Iterated, Source, Translator
from tempo_ir.lowering.kernels.weighted_sums import Weighted


def write_shares(translator: Translator, owner: object, sinks: Sequence[Sink], op: SharesOp) -> list[GridAxis]:
    """The sums, the greatest scores and the totals of the shares; returns the grid."""
    targets = {sink.value: sink.target for sink in sinks}
    shape = translator.shape(op.result)
    keys = [AxisKey(owner, number) for number in range(len(shape))]
    blocks = {axis + 1: block for axis, block in weighted_blocks(translator, op).items()}
    axes = [
        Iterated(key, extent, 0 if key in translator.decisions.points else blocks.get(number, 0))
        for number, (key, extent) in enumerate(zip(keys, shape, strict=True))
    ]
    along_grid = [number for number, axis in enumerate(axes) if not lies_in_one_block(axis) or number == 0][:GRID_AXES]
    places: dict[int, Coordinate] = {}
    grid: list[GridAxis] = []
    for number in along_grid:
        places[number], extent = program_coordinate(translator, axes[number], len(grid))
        grid.append(GridAxis(extent))
    inner = [number for number in range(len(axes)) if number not in places]
    translator.dealt[AxisKey(op, op.axis)] = places[0].start, op.shares

    def step(at: list[Coordinate], carried: Carried | None) -> Carried:
        everywhere = {**places, **dict(zip(inner, at, strict=True))}
        _write(translator, op, tuple(everywhere[number] for number in range(len(axes))), targets)
        return []

    translator.over([axes[number] for number in inner], [], step)
    return grid


def _write(translator: Translator, op: SharesOp, at: Coordinates, targets: Mapping[SSAValue, Source]) -> None:
    """One share, at the coordinates of its sum."""
    share, *place = at
    contraction = Contraction.of(translator, op, tuple(place))
    pass_ = Weighted(translator, contraction, 0, contraction.lanes(1))
    greatest, total, result = pass_.run()
    terms, output = op.letters
    rows = tuple(contraction.at[letter] for letter in output if letter in terms[0])
    translator.store(targets[op.result], (share, *place), pass_.laned(result))
    translator.store(targets[op.greatest], (share, *rows), Tile(greatest, pass_.lanes))
    translator.store(targets[op.total], (share, *rows), Tile(total, pass_.lanes))
