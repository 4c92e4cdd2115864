"""Reductions that run over the tiles of an axis: what is carried, and how a part of the axis changes it.

A reduction over `0:t + 1` in tiles of 64 starts with what is left beside whole tiles, 1 to 64 elements, and goes on
with one whole tile at each point of a new dim m:

    %first = sdg.sum %a[64 * (t floordiv 64):t + 1] axes [0] in (t)
    %tile = sdg.sum %a[64 * m:64 * m + 64] axes [0] in (t, m: 0 to t floordiv 64)
    %sum = sdg.merge {m = 0 : %first[t], m > 0 : %next[t, m - 1]} in (t, m: 0 to t floordiv 64 + 1)
    %next = sdg.add %sum[t, m], %tile[t, m] in (t, m: 0 to t floordiv 64)

so that every tile is static, nothing is padded and no element is read that the program does not read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import BFloat16Type, Float16Type, f32, i64
from xdsl.ir import Attribute

from tempo_ir.dialects.sdg import (
    Access,
    AddOp,
    AndOp,
    ArgmaxOp,
    ArgReduceOp,
    BinaryOp,
    ContractOp,
    EqOp,
    GtOp,
    IndexOp,
    LtOp,
    MaximumOp,
    MaxOp,
    MeanOp,
    MergeOp,
    MinimumOp,
    MinOp,
    MulOp,
    NeOp,
    OrOp,
    ProdOp,
    ReduceOp,
    SumOp,
)
from tempo_ir.dialects.sdg.symbols import position
from tempo_ir.dialects.types import element, is_bool, is_float, shape_of
from tempo_ir.index import (
    Compare,
    Const,
    Domain,
    Expr,
    Slice,
    Space,
    Sym,
    as_expr,
    free_symbols,
    maximum,
    simplify,
    substitute,
)
from tempo_ir.passes.building import GraphBuilder
from tempo_ir.passes.tile.axes import Axes, Part
from tempo_ir.passes.tile.pieces import PartBuilder, Place, ends


def wide(element_type: Attribute) -> Attribute:
    """The type that sums of elements are carried in: f32 for those of 16 bits."""
    return f32 if isinstance(element_type, Float16Type | BFloat16Type) else element_type


class Running(ABC):
    """A reduction along an axis, as a recurrence over parts of the axis."""

    names: tuple[str, ...]
    """What is carried."""

    largest: int = 256
    """Elements of a tile at most, where its length is not given."""

    @property
    @abstractmethod
    def places(self) -> Sequence[Place]:
        """The axis, in each operand that has it."""

    @abstractmethod
    def step(self, parts: PartBuilder, carried: Sequence[Access] | None) -> list[Access]:
        """What is carried after a part; None before the first."""

    @abstractmethod
    def result(self, build: GraphBuilder, carried: Sequence[Access]) -> Access:
        """The value of the reduction, from what is carried after the last part."""


@dataclass
class Reduction(Running):
    """Sums, products, extremes and means."""

    op: ReduceOp
    axis: int
    names = ("running",)

    @property
    def places(self) -> Sequence[Place]:
        return [Place(self.op.accesses[0], self.axis)]

    def step(self, parts: PartBuilder, carried: Sequence[Access] | None) -> list[Access]:
        op, build = self.op, parts.build
        kind = SumOp if isinstance(op, MeanOp) else type(op)
        part = parts.of(op.accesses[0], self.axis)
        if kind in (SumOp, ProdOp):
            part = build.cast(part, wide(element(part.type)))
        reduced = build.reduce(kind, part, op.axes)
        return [reduced if carried is None else build.build(combination(kind, reduced), carried[0], reduced)]

    def result(self, build: GraphBuilder, carried: Sequence[Access]) -> Access:
        op, (total,) = self.op, carried
        if isinstance(op, MeanOp):
            shape = shape_of(op.accesses[0].type)
            total = build.div(total, build.count([shape[axis] for axis in op.axes], element(total.type)))
        return build.cast(total, element(op.result.type))


def combination(kind: type[ReduceOp], operand: Access) -> type[BinaryOp]:
    """The op that makes one value of those of two parts."""
    if kind in (MaxOp, MinOp) and is_bool(element(operand.type)):
        return OrOp if kind is MaxOp else AndOp
    kinds: dict[type[ReduceOp], type[BinaryOp]] = {SumOp: AddOp, ProdOp: MulOp, MaxOp: MaximumOp, MinOp: MinimumOp}
    return kinds[kind]


@dataclass
class ArgReduction(Running):
    """Positions of extremes: the extreme is carried beside; of equal ones the first wins, of NaN the first NaN."""

    op: ArgReduceOp
    names = ("extreme", "position")

    @property
    def places(self) -> Sequence[Place]:
        return [Place(self.op.accesses[0], self.op.axis)]

    def step(self, parts: PartBuilder, carried: Sequence[Access] | None) -> list[Access]:
        op, build = self.op, parts.build
        greatest = isinstance(op, ArgmaxOp)
        part = parts.of(op.accesses[0], op.axis)
        if is_bool(element(part.type)):
            part = build.cast(part, i64)
        extreme = build.reduce(MaxOp if greatest else MinOp, part, (op.axis,))
        inside = build.build(type(op), part, axis=op.axis)
        start = parts.part.start
        position = inside
        if start != Const(0):
            position = build.add(inside, self._offset(build, start))
        if carried is None:
            return [extreme, position]
        before, place = carried
        better = build.build(GtOp if greatest else LtOp, extreme, before)
        equal = build.build(EqOp, extreme, before)
        if is_float(element(part.type)):
            new, old = (build.build(NeOp, value, value) for value in (extreme, before))
            fresh = build.build(GtOp, build.cast(new, i64), build.cast(old, i64))
            better = build.build(OrOp, better, fresh)
            equal = build.build(OrOp, equal, build.logical_and(new, old))
        earlier = build.logical_and(equal, build.build(LtOp, position, place))
        taken = build.build(OrOp, better, earlier)
        return [build.select(taken, extreme, before), build.select(taken, position, place)]

    @staticmethod
    def _offset(build: GraphBuilder, start: Expr) -> Access:
        expression = position(start, build.domain.dims)
        return build.build(IndexOp, expression=expression, symbols=free_symbols(start))

    def result(self, build: GraphBuilder, carried: Sequence[Access]) -> Access:
        return carried[1]


@dataclass
class Contraction(Running):
    """Sums of products."""

    op: ContractOp
    axes: Axes
    names = ("running",)

    @property
    def places(self) -> Sequence[Place]:
        reads = zip(self.op.accesses, self.axes, strict=True)
        return [Place(access, axis) for access, axis in reads if axis is not None]

    def step(self, parts: PartBuilder, carried: Sequence[Access] | None) -> list[Access]:
        build = parts.build
        operands = [
            access if axis is None else parts.of(access, axis)
            for access, axis in zip(self.op.accesses, self.axes, strict=True)
        ]
        operands = [build.cast(operand, wide(element(self.op.result.type))) for operand in operands]
        product = build.contract(self.op.spec.data, *operands)
        return [product if carried is None else build.add(carried[0], product)]

    def result(self, build: GraphBuilder, carried: Sequence[Access]) -> Access:
        return build.cast(carried[0], element(self.op.result.type))


@dataclass(frozen=True)
class Tiles:
    """The whole tiles of an axis, and what is left beside them: 1 to `tile` elements where there are any.

    Tiles are counted from the end of the axis that other points share: `r[t:T]` has those of `r[0:T]`, from behind.
    """

    tile: int
    extent: Expr
    count: Expr
    from_end: bool

    @staticmethod
    def of(running: Running, domain: Domain, space: Space, tile: int) -> Tiles:
        """The tiles of the axis along which a reduction runs."""
        extent = domain.simplify(as_expr(running.places[0].extent), space)
        whole = domain.simplify(maximum(extent - 1, 0), space) // tile
        ranges = [end for place in running.places for end in ends(place) if end.entry is not None]
        return Tiles(tile, extent, whole, bool(ranges) and all(_moves_at_start(end, domain) for end in ranges))

    @property
    def left(self) -> Part:
        """What is left beside whole tiles."""
        if self.from_end:
            return Part(Const(0), _extent(self.extent - self.tile * self.count))
        return Part(self.tile * self.count, _extent(self.extent - self.tile * self.count), is_last=True)

    def at(self, dim: str) -> Part:
        """The tile at a point of the new dim."""
        if self.from_end:
            return Part(simplify(self.extent - self.tile * (Sym(dim) + 1)), self.tile)
        return Part(self.tile * Sym(dim), self.tile)


def _extent(extent: Expr) -> Expr | int:
    extent = simplify(extent)
    return extent.value if isinstance(extent, Const) else extent


def _moves_at_start(place: Place, domain: Domain) -> bool:
    """Whether the end of a range is the same at points where its start is not."""
    number = place.entry
    assert number is not None
    taken = place.access.index[number]
    assert isinstance(taken, Slice)
    starts, stops = (free_symbols(bound) & set(domain.dims) for bound in (taken.start, taken.stop))
    return taken.step == 1 and stops < starts | stops


def run_over(running: Running, tiles: Tiles, build: GraphBuilder, dim: str, bound: Expr) -> Access:
    """Build the recurrence; the value of the reduction at the points of the builder's domain."""
    domain = build.domain
    first = running.step(PartBuilder(build, tiles.left), None)
    points = _with_dim(domain, dim, tiles.count, bound)
    until = _with_dim(domain, dim, simplify(tiles.count + 1), bound)
    merges: list[MergeOp] = []
    for name, value in zip(running.names, first, strict=True):
        start, later = Compare("=", Sym(dim), Const(0)), Compare(">", Sym(dim), Const(0))
        merge = MergeOp((start, value), (later, value), domain=until)
        build.insert(merge, name)
        merges.append(merge)
    current = tuple(Sym(name) for name in until.dims)
    inner = build.at(points)
    following = running.step(PartBuilder(inner, tiles.at(dim)), [Access(merge.result, current) for merge in merges])
    for merge, value in zip(merges, following, strict=True):
        merge.with_access(1, value.value, substitute(value.index, {dim: Sym(dim) - 1}))
    last = (*current[:-1], tiles.count)
    return running.result(build, [Access(merge.result, last) for merge in merges])


def _with_dim(domain: Domain, dim: str, end: Expr, bound: Expr) -> Domain:
    ranges = domain.ranges if end == bound else (*domain.ranges, (dim, Const(0), end))
    return Domain((*domain.dims, dim), ranges, domain.where)
