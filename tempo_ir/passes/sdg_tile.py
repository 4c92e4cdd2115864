"""sdg-tile: a reduction over a range whose length changes becomes a recurrence over tiles of one length.

Before:

    %y = sdg.max %a[0:t + 1] axes [0] in (t) : (!v) -> !v

After `sdg-tile{tile=64}`, in a program that declares `dims(t: T, m: (T - 1) floordiv 64 + 1)`:

    %first = sdg.max %a[64 * (t floordiv 64):t + 1] axes [0] in (t) : (!v) -> !v                // 1 to 64 rows
    %tile = sdg.max %a[64 * m:64 * m + 64] axes [0] in (t, m: 0 to t floordiv 64) : (!v) -> !v
    %running = sdg.merge {m = 0 : %first[t], m > 0 : %next[t, m - 1]} in (t, m: 0 to t floordiv 64 + 1) : ...
    %next = sdg.maximum %running[t, m], %tile[t, m] in (t, m: 0 to t floordiv 64) : (!v, !v) -> !v
    %y = sdg.broadcast %running[t, t floordiv 64] in (t) : (!v) -> !v

Whole tiles have a static length; what is left beside them, one to 64 elements, comes first, so that nothing is padded
and nothing is read that the program does not read. Tiles are counted from the end that does not move: those of `0:t +
1` from the start, those of `r[t:T]` from behind, so that a tile is the same at all t, and sdg-reduce-domain takes
what is done to it alone out of the loop over t.

Sums, products, extremes, means (any and all are extremes of booleans), positions of extremes and contractions run
over tiles; 16-bit sums are carried in f32. A contraction with the weights of a softmax becomes *online* softmax: one
pass that carries the greatest score, the sum of the weights and the weighted sum, without a row of scores
(`tile.online`). What an operand is made of is done tile by tile too, back to ranges that are read (`tile.axes` has a
rule for each op); an op without a rule is done as it was, and its value sliced.

Several reductions over the same tiles stand side by side, so that one loop may make them all: with `static=true` a
batch that is an axis is done tile by tile, from activations to gradients, and activations of one tile are kept.

It does not apply where a length is fixed (`static=true` takes such axes too, which needs less memory at once), where
it is never more than a tile, or no affine expression, or where data decides the bound that it depends on; nor to scans
and sorts along the axis and to what reads nothing else, nor to a softmax whose weights are read by others too. `tile`
gives the length of the tiles; without it a tile holds as many elements as fit a part of the innermost cache, at least
one vector.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import FixedBitwidthType, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects.sdg import (
    AccessOp,
    ArgReduceOp,
    ContractOp,
    HostOp,
    OpError,
    OutputOp,
    ProgramOp,
    ReduceOp,
    SdgOp,
    SourceOp,
    domain_of,
)
from tempo_ir.dialects.sdg.points import Analysis
from tempo_ir.dialects.sdg.reads import claim_problem, program_ops
from tempo_ir.dialects.sdg.until import bound_of, until_of
from tempo_ir.dialects.types import element, shape_of
from tempo_ir.graphs import reachable
from tempo_ir.index import Expr, IndexExpressionError, Space, compare, free_symbols
from tempo_ir.index.isl_text import LARGEST_NUMBER
from tempo_ir.names import fresh_name
from tempo_ir.passes.building import GraphBuilder
from tempo_ir.passes.remarks import count, remark
from tempo_ir.passes.tile.axes import lettered
from tempo_ir.passes.tile.online import weighted_sum
from tempo_ir.passes.tile.pieces import Place, ends
from tempo_ir.passes.tile.running import ArgReduction, Contraction, Reduction, Running, Tiles, run_over
from tempo_ir.passes.utilities import erase, identity, programs

SMALLEST_TILE = 16
"""Elements of a vector of f32 on the widest machines."""
TILE_BYTES = 32 * 1024
"""What the tiles of one reduction may hold together: they share the innermost cache with what is carried."""


_KEPT = (HostOp, OutputOp, SourceOp)


@dataclass(frozen=True)
class SdgTilePass(ModulePass):
    """Reductions over ranges that change run over tiles of one length."""

    name = "sdg-tile"

    tile: int | None = None
    """Elements of a tile; chosen for each reduction where none is given."""

    static: bool = False
    """Tile axes of a fixed length too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.tile is not None and self.tile < 1:
            raise PassFailedException(f"sdg-tile: a tile has at least one element, got tile={self.tile}")
        if self.tile is not None and self.tile > LARGEST_NUMBER:
            raise PassFailedException(f"sdg-tile: a tile has at most 2**40 elements, got tile={self.tile}")
        for program in list(programs(op)):
            calls = any(isinstance(inner, HostOp) for inner in program.body.ops)
            before = program.clone() if calls else None
            tiled = Tiler(program, self.tile, self.static).run()
            if before is not None and tiled and not host_points_are_known(program):
                remark(program, "not tiled: the points at which host calls are needed would not be known exactly")
                replace(program, before)
                continue
            count(self, "tiled", tiled)


def host_points_are_known(program: ProgramOp) -> bool:
    """Whether all host calls can be narrowed to the points that something needs."""
    analysis = Analysis(program)
    try:
        for op in program.body.ops:
            if isinstance(op, HostOp):
                analysis.domain(op)
    except OpError:
        return False
    return True


def replace(program: ProgramOp, by: ProgramOp) -> None:
    """Put another program in the place of one."""
    block = program.parent
    assert block is not None
    block.insert_op_before(by, program)
    program.detach()
    program.erase()


@dataclass
class Tiler:
    """Tiles the reductions of one program."""

    program: ProgramOp
    tile: int | None
    static: bool
    dims: dict[Expr, list[str]] = field(default_factory=dict[Expr, list[str]])
    """The new dims by their bounds."""

    def run(self) -> int:
        """Tile, in place, until nothing is left to tile; how many reductions were."""
        tiled = 0
        waiting = program_ops(self.program)
        while waiting:
            op = waiting.pop(0)
            running = self.choose(op)
            if running is None:
                continue
            before = set(program_ops(self.program))
            self.apply(op, running)
            tiled += 1
            waiting += [made for made in program_ops(self.program) if made not in before]
            waiting = [each for each in waiting if each.parent is not None]
        if tiled > 1:
            first_without(self.program, {name for names in self.dims.values() for name in names})
        return tiled

    def choose(self, op: SdgOp) -> Running | None:
        """How an op runs over the tiles of one of its axes; None if it does not."""
        running = next((each for each in reductions(op) if self.is_long(op, each)), None)
        if running is None:
            return None
        if any(not isinstance(use.operation, AccessOp) for use in op.results[0].uses):
            remark(op, "not tiled: a gradient names it")
            return None
        whole = values_within(running)
        if not self.static and set(running.places) <= set(whole):
            remark(op, f"not tiled: {whole[0].access} is not computed tile by tile")
            return None
        for end in whole:
            remark(op, f"{end.access} is not computed tile by tile: its value is sliced")
        return running

    def is_long(self, op: SdgOp, running: Running) -> bool:
        """Whether the axis is one to tile, and may be longer than a tile."""
        extent, tile = running.places[0].extent, self.tile or tile_of(running)
        if isinstance(extent, int):
            return self.static and extent > tile
        if claim_problem(compare("<=", extent, tile), self.program.space, op.domain) is None:
            return False
        tiles = Tiles.of(running, op.domain, self.program.space, tile)
        if self.bound(op, tiles) is None:
            remark(op, f"not tiled: the length {extent} is no affine expression of the dims")
            return False
        if self.ended in free_symbols(tiles.count):
            remark(op, f"not tiled: data decides {self.ended}, and fewer steps may leave more beside whole tiles")
            return False
        return True

    @property
    def ended(self) -> str | None:
        """The bound that data decides; what is left beside whole tiles may be more where it is less."""
        until = until_of(program_ops(self.program))
        return None if until is None else bound_of(until, self.program.space)

    def bound(self, op: SdgOp, tiles: Tiles) -> Expr | None:
        """The bound of a dim that has a point for each whole tile and one more; None where there is none."""
        from tempo_ir.index import isl

        try:
            return isl.ceiling(tiles.count, self.program.space, op.domain) + 1
        except IndexExpressionError:
            return None

    def apply(self, op: SdgOp, running: Running) -> None:
        """Put the recurrence in the place of a reduction."""
        space = self.program.space
        tiles = Tiles.of(running, op.domain, space, self.tile or tile_of(running))
        bound = self.bound(op, tiles)
        assert bound is not None
        build = GraphBuilder(op, op.domain, op.location)
        value = run_over(running, tiles, build, self.dim_of(bound, op), bound)
        if value.index != identity(op) or domain_of(value.value) != op.domain:
            value = build.copy(value)
        value.value.name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(value.value)
        erase_unused(op)

    def dim_of(self, bound: Expr, op: SdgOp) -> str:
        """A dim of a bound, inside all dims of the op; declared where there is none."""
        names = self.dims.setdefault(bound, [])
        space = self.program.space
        inner = space.names[max((space.names.index(dim) + 1 for dim in op.domain.dims), default=0) :]
        known = next((name for name in names if name in inner), None)
        if known is not None:
            return known
        taken = {*space.names, *space.params, *(name for each in self.dims.values() for name in each)}
        name = fresh_name("m", taken, "")
        self.program.space = Space((*space.dims, (name, bound)), space.where)
        names.append(name)
        return name


def first_without(program: ProgramOp, dims: set[str]) -> None:
    """Ops that need nothing made over some dims stand before those over them: loops over the same tiles stand side by
    side then, and can be one loop, which keeps the rows of one tile."""
    ops = program_ops(program)
    over = reachable((op for op in ops if dims & set(op.domain.dims)), readers)
    behind = [op for op in ops if op in over]
    if not behind:
        return
    block = behind[0].parent
    assert block is not None
    for op in ops[ops.index(behind[0]) :]:
        if op not in over:
            op.detach()
            block.insert_op_before(op, behind[0])


def readers(op: SdgOp) -> Iterator[SdgOp]:
    """The ops that read a result of an op."""
    users = (use.operation for result in op.results for use in result.uses)
    return (user for user in users if isinstance(user, SdgOp))


def reductions(op: SdgOp) -> Iterator[Running]:
    """The ways in which an op may run over an axis."""
    match op:
        case ReduceOp():
            yield from (Reduction(op, axis) for axis in op.axes)
        case ArgReduceOp():
            yield ArgReduction(op)
        case ContractOp():
            inputs, output = op.letters
            for letter in dict.fromkeys("".join(inputs)):
                axes = lettered(inputs, letter)
                if letter in output or axes is None:
                    continue
                yield weighted_sum(op, axes, letter) or Contraction(op, axes)
        case _:
            return


def tile_of(running: Running) -> int:
    """As many elements of the axis, a power of two, as leave the innermost cache room."""
    row = sum(map(_row_bytes, dict.fromkeys(end for place in running.places for end in ends(place))))
    tile = running.largest
    while tile > SMALLEST_TILE and tile * row > TILE_BYTES:
        tile //= 2
    return tile


def _row_bytes(end: Place) -> int:
    """The bytes of one element of the axis; open axes beside it count as one element."""
    shape = shape_of(end.access.type)
    sizes = [extent for axis, extent in enumerate(shape) if axis != end.axis and isinstance(extent, int)]
    kind = element(end.access.type)
    assert isinstance(kind, FixedBitwidthType)
    return math.prod(sizes) * kind.size


def values_within(running: Running) -> list[Place]:
    """The values that are not made tile by tile, though an op of the program makes them."""
    found = dict.fromkeys(end for place in running.places for end in ends(place))
    return [end for end in found if end.entry is None]


def erase_unused(op: SdgOp) -> None:
    """Erase an op that nothing uses, and what it alone used."""
    waiting: list[Operation] = [op]
    while waiting:
        current = waiting.pop()
        if current.parent is None or isinstance(current, _KEPT):
            continue
        if any(result.uses.get_length() for result in current.results):
            continue
        waiting += [operand.owner for operand in current.operands if isinstance(operand.owner, Operation)]
        erase([current])
