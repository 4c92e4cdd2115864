"""Kernels that are computed block by block of rows: each program has blocks of rows, and computes all values of a block
before it goes on to the next.

    grid 8; for each block of 64 rows of the program:
      h = tanh(x @ w + b)      a tile of 64 rows and all columns, which is made once and stays in the nearest cache
      y = h @ v                reads it
      store y
      g += h^T @ y             a sum over rows is carried from block to block
    store g                    as the part of the program

Weights lie whole beside the loop. Blocks are dealt out to the programs in turn: what a program sums depends on the
number of programs alone. Of rows that are no whole blocks the last ones are a block of their own, of the first program,
whose masks are in no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import AttendOp, PartsOp
from tempo_ir.dialects.operation import ops_of
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import ReduceKind
from tempo_ir.dialects.types import Extent, shape_of
from tempo_ir.index import Const, Expr, as_expr, maximum, minimum, simplify
from tempo_ir.lowering.formation.row_bodies import RowBody, yielded_by
from tempo_ir.lowering.kernels.axis_classes import AxisClasses, reduced_classes
from tempo_ir.lowering.kernels.nests import GridAxis, Sink
from tempo_ir.lowering.kernels.reductions import accumulator, reduce_tile
from tempo_ir.lowering.kernels.tiles import ORIGIN, Coordinate, Coordinates, Lane, Tile, combine, extents_of, lanes_of
from tempo_ir.lowering.kernels.translator import AxisKey, Carried, Translator, Unsupported


def is_computed_by_rows(block: Block) -> bool:
    """Whether a body is one that loop-fuse-rows makes: it goes from product to product, or what it gives differs in
    shape, or is parts of sums."""
    yielded = yielded_by(block)
    if len({shape_of(value.type) for value in yielded}) > 1 or any(isinstance(v.owner, PartsOp) for v in yielded):
        return True
    made: set[SSAValue] = set()
    for op in ops_of(block):
        reads = any(operand in made for operand in op.operands)
        if reads and isinstance(op, sdg.ContractOp):
            return not any(isinstance(other, sdg.SoftmaxOp | AttendOp) for other in block.ops)
        if reads or isinstance(op, sdg.ContractOp):
            made.update(op.results)
    return False


def write_rows(translator: Translator, owner: object, sinks: Sequence[Sink], body: RowBody) -> list[GridAxis]:
    """Compute and write all values of a body block by block of rows; returns the grid."""
    key = AxisKey(owner, 0, "rows")
    decisions = translator.decisions
    if key in decisions.points or key in decisions.cuts or key in decisions.factors or key in decisions.rings:
        raise Unsupported("rows are read in pieces")
    return _Rows(translator, sinks, body, key).write()


@dataclass
class _Rows:
    """The kernel of a body by rows while it is built."""

    translator: Translator
    sinks: Sequence[Sink]
    body: RowBody
    key: AxisKey

    def __post_init__(self) -> None:
        self.builder = self.translator.builder
        self.block = self.translator.blocks.block_of_rows(self.body.extent)
        self.extent = as_expr(self.body.extent)
        self.sums = [sink for sink in self.sinks if sink.value not in self.body.rows]
        parts = [op.count for sink in self.sums if isinstance(op := sink.value.owner, PartsOp)]
        most = self.translator.blocks.programs_of_rows(self.body.extent)
        self.programs = parts[0] if parts else 1 if self.sums else most
        self.classes = AxisClasses.of(self._owner())
        self.columns: dict[AxisKey, Lane] = {}
        # what has no rows is read through the same lanes in all blocks, and so once
        keys = [AxisKey(op, n) for op in self._owner().ops for n in reduced_classes(op, self.classes)]
        self.translator.shared = {key: key for key in keys}

    def _owner(self) -> Block:
        owner = self.sinks[0].value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        assert block is not None
        return block

    def write(self) -> list[GridAxis]:
        """All of it."""
        grid, own = list[GridAxis](), Const(0)
        if self.programs > 1:
            own = self.builder.counter(self.builder.program_id(0), Const(0), Const(self.programs), "p")
            grid.append(GridAxis(self.programs))
        whole = simplify(self.extent // self.block)
        carried = self._whole_blocks(own, whole)
        rest = simplify(self.extent % self.block)
        if rest != Const(0):
            carried = self._last_block(own, whole, rest, carried)
        for sink, total in zip(self.sums, carried or self._start(), strict=True):
            at = self._columns(_sum_of(sink.value).results[0])
            place = (Coordinate(own), *at) if isinstance(sink.value.owner, PartsOp) else at
            element = self.translator.element(sink.value)
            self.translator.store(sink.target, place, Tile(total.to(element), self._lanes(_sum_of(sink.value))))
        return grid

    def _whole_blocks(self, own: Expr, whole: Expr) -> Carried | None:
        """The program's blocks that have all their rows."""
        if self.programs == 1 and whole == Const(1):
            return self._block(Coordinate(Const(0), Lane(self.key, Const(0), self.block, self.block, 0, True)), None)
        trips = simplify((whole - own + (self.programs - 1)) // self.programs)
        with self.builder.loop(0, self.builder.index(trips), 1, self._start()) as loop:
            counter = self.builder.counter(loop.index, Const(0), trips)
            first = (own + counter * self.programs) * self.block
            lane = Lane(self.key, first, self.block, first + self.block, 0, True)
            loop.carry(*self._block(Coordinate(first, lane), loop.carried))
        return loop.results

    def _last_block(self, own: Expr, whole: Expr, rest: Expr, carried: Carried | None) -> Carried:
        """The block of the rows that are left, if some are, of the first program."""
        trips = maximum(minimum(rest, 1) - own, 0)
        with self.builder.loop(0, self.builder.index(trips), 1, carried or self._start()) as loop:
            first = (whole + self.builder.counter(loop.index, Const(0), trips)) * self.block
            lane = Lane(self.key, first, self.block, self.body.extent, 0, False)
            loop.carry(*self._block(Coordinate(first, lane), loop.carried))
        return loop.results

    def _block(self, row: Coordinate, carried: Carried | None) -> Carried:
        """All values of a block of rows, what is written of them, and the sums with what the block adds."""
        translator = self.translator
        translator.made = {}
        for value in self.body.rows:
            at = self._columns(value, row)
            tile = translator.pull(value, at)
            targets = [sink.target for sink in self.sinks if sink.value is value]
            for target in targets:
                translator.store(target, at, tile)
            if targets and isinstance(value.owner, Operation):  # what is written lies in the nearest cache: it is read
                tile = translator.load(targets[0], at)
            translator.made[value] = at, tile
        ops = [_sum_of(sink.value) for sink in self.sums]
        sums = [self._sum(op, row) for op in ops]
        translator.made = {}
        if carried is not None:
            known = [Tile(before, self._lanes(op)) for before, op in zip(carried, ops, strict=True)]
            sums = [combine(self.builder, ew.AddOp, *pair) for pair in zip(known, sums, strict=True)]
        return [translator.filled(tile, self._lanes(op)) for tile, op in zip(sums, ops, strict=True)]

    def _lanes(self, op: Operation) -> tuple[Lane, ...]:
        """The lanes of a sum while it is carried: a product has those of its left operand first."""
        at = self._columns(op.results[0])
        if isinstance(op, sdg.ContractOp):
            inputs, output = op.letters
            at = tuple(at[n] for n in sorted(range(len(at)), key=lambda n: output[n] not in inputs[0]))
        return lanes_of(at)

    def _sum(self, op: Operation, row: Coordinate) -> Tile:
        """What a block adds to a sum."""
        translator = self.translator
        at = self._columns(op.results[0])
        if isinstance(op, sdg.SumOp):
            return self._reduced(op, row)
        (axis,) = {self.classes.find((value, number)) for value, number in list(self.body.rows.items())[:1]}
        translator.pinned = {
            AxisKey(op, number): row for number, found in reduced_classes(op, self.classes).items() if found == axis
        }
        tile = translator.emitters[type(op)](translator, op, at)
        translator.pinned = {}
        return Tile(tile.value.to(accumulator(tile.value.element)), tile.lanes)

    def _reduced(self, op: sdg.SumOp, row: Coordinate) -> Tile:
        """The sum of a block along its rows, and all other axes that are summed."""
        at = self._columns(op.operand, row)
        tile = self.translator.pull(op.operand, at)
        kept = iter(self._columns(op.result))
        lanes = {at[axis].lane: next(kept).lane for axis in range(len(at)) if axis not in op.axes}
        tile = Tile(tile.value.to(accumulator(tile.value.element)), tile.lanes, tile.zero_padded)
        for lane in lanes_of(at[axis] for axis in op.axes):
            tile = reduce_tile(self.translator, ReduceKind.SUM, tile, lane)
        return Tile(tile.value, tuple(lanes[lane] or lane for lane in tile.lanes))

    def _columns(self, value: SSAValue, row: Coordinate = ORIGIN) -> Coordinates:
        """Where a value is read whole: each axis that is not that of the rows is one lane."""
        rows = self.body.rows.get(value)
        return tuple(row if number == rows else self._whole(value, number, extent)
                     for number, extent in enumerate(shape_of(value.type)))  # fmt: skip

    def _whole(self, value: SSAValue, number: int, extent: Extent) -> Coordinate:
        if extent == 1:
            return ORIGIN
        assert isinstance(extent, int)
        key = AxisKey(value, number)
        return Coordinate(Const(0), self.columns.setdefault(key, Lane(key, Const(0), extent, extent, 0, True)))

    def _start(self) -> Carried:
        """The sums of no rows."""
        ops = [_sum_of(sink.value) for sink in self.sums]
        kinds = [accumulator(self.translator.element(op.results[0])) for op in ops]
        return [
            self.translator.constant_tile(0, kind, extents_of(self._lanes(op)))
            for kind, op in zip(kinds, ops, strict=True)
        ]


def _sum_of(value: SSAValue) -> Operation:
    """The op that makes a sum over rows, which is written as it is or in parts."""
    op = value.owner
    if isinstance(op, PartsOp):
        op = op.operand.owner
    assert isinstance(op, Operation)
    return op
