"""How each op does all points of a dim at once: the points become axis 0 of its operands and of its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, cast

from tempo_ir.dialects.sdg import (
    Access,
    ArangeOp,
    ArgReduceOp,
    AxisOp,
    BinaryOp,
    BroadcastOp,
    CastOp,
    ConcatOp,
    ContractOp,
    GatherOp,
    IndexOp,
    MaxOp,
    MeanOp,
    MergeOp,
    MinOp,
    OneHotOp,
    OrderOp,
    PadOp,
    ProdOp,
    ReduceOp,
    ReshapeOp,
    ScanOp,
    ScatterAddOp,
    SdgOp,
    SelectOp,
    SliceOp,
    StopGradientOp,
    SumOp,
    TransposeOp,
    UnaryOp,
)
from tempo_ir.dialects.sdg.symbols import call_start
from tempo_ir.dialects.types import Extent, Shape, element, shape_of, tensor
from tempo_ir.index import Const, Domain, Entry, Expr, Slice, Sym, free_symbols
from tempo_ir.passes.building import GraphBuilder, full, normal_form, symbols_of


@dataclass(frozen=True)
class Operand:
    """What a batched op reads; `batched` where axis 0 is the dim, else it is the same at all its points."""

    access: Access
    batched: bool

    @property
    def shape(self) -> Shape:
        """The shape at one point of the dim."""
        shape = shape_of(self.access.tensor)
        return shape[1:] if self.batched else shape


@dataclass(frozen=True)
class Batch:
    """The dim that becomes an axis, and its points: from `first` to below `end`."""

    dim: str
    first: Expr
    end: Expr

    @property
    def count(self) -> Extent:
        """How many points there are."""
        extent = Slice(self.first, self.end).extent
        return extent.value if isinstance(extent, Const) else extent


Batching: TypeAlias = Callable[[GraphBuilder, SdgOp, Sequence[Operand], Batch], Access]


def aligned(build: GraphBuilder, operand: Operand, rank: int, batch: Batch) -> Access:
    """An operand such that numpy's broadcasting pairs its own axes with those of a result of `rank`, and axis 0 with
    the batch: axes of extent 1 are put after the batch axis."""
    missing = rank - len(operand.shape)
    if not operand.batched or not missing:
        return operand.access
    return build.reshape(operand.access, (batch.count, *[1] * missing, *operand.shape))


def repeated(build: GraphBuilder, operand: Operand, batch: Batch) -> Access:
    """An operand with the batch axis, repeated along it where it has none."""
    if operand.batched:
        return operand.access
    return build.broadcast(operand.access, (batch.count, *operand.shape))


def elementwise(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """Operands aligned to the rank of the result."""
    rank = len(shape_of(op.results[0].type))
    reads = [aligned(build, operand, rank, batch) for operand in operands]
    if isinstance(op, CastOp):
        return build.build(CastOp, *reads, element_type=element(op.result.type))
    return build.build(type(op), *reads)


def reduction(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """Axes move up by one."""
    axes = tuple(axis + 1 for axis in cast(ReduceOp, op).axes)
    return build.build(type(op), operands[0].access, axes=axes)


def along_axis(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """The axis moves up by one."""
    axis, read = cast(AxisOp, op).axis + 1, operands[0].access
    if isinstance(op, ScanOp):
        return build.build(type(op), read, axis=axis, reverse=op.reverse)
    if isinstance(op, OrderOp):
        return build.build(type(op), read, axis=axis, descending=op.descending)
    return build.build(type(op), read, axis=axis)


def contraction(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """The spec gains a letter: `bk,kn->bn` becomes `tbk,kn->tbn`."""
    inputs, output = cast(ContractOp, op).letters
    letter = fresh_letter(batch.dim, "".join(inputs))
    letters = [letter + own if operand.batched else own for own, operand in zip(inputs, operands, strict=True)]
    return build.contract(f"{','.join(letters)}->{letter}{output}", *(operand.access for operand in operands))


def fresh_letter(dim: str, used: str) -> str:
    """A letter that a spec does not use: the dim's own initial if it can be."""
    wanted = dim[0] + dim[0].upper() + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return next(letter for letter in wanted if letter.isascii() and letter.isalpha() and letter not in used)


def reshape(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """The shape gains the axis."""
    return build.reshape(operands[0].access, (batch.count, *shape_of(op.results[0].type)))


def broadcast(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """The shape gains the axis; the operand is aligned to it."""
    shape = shape_of(op.results[0].type)
    return build.broadcast(aligned(build, operands[0], len(shape), batch), (batch.count, *shape))


def transpose(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """The axis stays in front."""
    permutation = (0, *(axis + 1 for axis in cast(TransposeOp, op).permutation))
    return build.build(TransposeOp, operands[0].access, permutation=permutation)


def slice_(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """All of the axis is taken."""
    return build.slice(operands[0].access, (full(batch.count), *cast(SliceOp, op).take))


def pad(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """The axis is not padded."""
    op = cast(PadOp, op)
    low, high = (Const(0), *op.low), (Const(0), *op.high)
    symbols = free_symbols(low) | free_symbols(high)
    result = tensor(element(op.result.type), (batch.count, *shape_of(op.result.type)))
    return build.build(
        PadOp, operands[0].access, symbols=symbols, low=low, high=high, value=op.value, result_type=result
    )


def concat(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """Operands without the axis are repeated along it."""
    reads = [repeated(build, operand, batch) for operand in operands]
    return build.build(ConcatOp, *reads, axis=cast(ConcatOp, op).axis + 1)


def gather(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """The axis comes with the ids, where it stands first."""
    table, ids = operands
    return build.build(GatherOp, table.access, ids.access, axis=cast(GatherOp, op).axis)


def scatter_add(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """The axis comes with the updates."""
    ids, updates = operands
    shape = (batch.count, *shape_of(op.results[0].type))
    axis = cast(ScatterAddOp, op).axis + 1
    return build.build(ScatterAddOp, ids.access, updates.access, axis=axis, shape=shape, symbols=symbols_of(shape))


def one_hot(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """The new axis stays last."""
    op = cast(OneHotOp, op)
    return build.build(OneHotOp, operands[0].access, depth=op.depth, element_type=element(op.result.type))


def merge(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """The cases, which do not depend on the dim, stay; what has no such axis is repeated along it, where it is read."""
    op = cast(MergeOp, op)
    conds = op.conds
    reads: list[Access] = []
    for number, operand in enumerate(operands):
        case = normal_form(without(op.case_domain(number), batch.dim), op.space)
        reads.append(repeated(build.at(case), operand, batch))
    return build.insert(MergeOp(*zip(conds, reads, strict=True), domain=build.domain))


def index(build: GraphBuilder, op: SdgOp, operands: Sequence[Operand], batch: Batch) -> Access:
    """`t + 1` becomes the range `1:T + 1`, from where a call starts."""
    shift = cast(IndexOp, op).expression - Sym(batch.dim) + Sym(call_start(batch.dim))
    values = Slice(batch.first + shift, batch.end + shift)
    return build.build(ArangeOp, symbols=free_symbols(values), values=values)


BATCHING: Mapping[type[SdgOp], Batching] = MappingProxyType(
    {
        SelectOp: elementwise,
        CastOp: elementwise,
        StopGradientOp: elementwise,
        **dict.fromkeys((SumOp, ProdOp, MaxOp, MinOp, MeanOp), reduction),
        ContractOp: contraction,
        ReshapeOp: reshape,
        BroadcastOp: broadcast,
        TransposeOp: transpose,
        SliceOp: slice_,
        PadOp: pad,
        ConcatOp: concat,
        GatherOp: gather,
        ScatterAddOp: scatter_add,
        OneHotOp: one_hot,
        MergeOp: merge,
        IndexOp: index,
    }
)


def batching_of(op: SdgOp) -> Batching | None:
    """How an op is batched; None for one that is not."""
    if isinstance(op, UnaryOp | BinaryOp):
        return elementwise
    if isinstance(op, AxisOp | ArgReduceOp):
        return along_axis
    return BATCHING.get(type(op))


def axis_problem(op: SdgOp, batched: Sequence[bool]) -> str | None:
    """Why an op cannot take the axis by the operands that have it; None if it can."""
    if isinstance(op, GatherOp) and (batched[0] or op.axis != 0):
        return "its table varies too, or its axis is not the first"
    if isinstance(op, ScatterAddOp) and batched[0]:
        return "its ids vary"
    return None


def without(domain: Domain, dim: str) -> Domain:
    """A domain whose other dims do not depend on a dim, without it."""
    dims = tuple(name for name in domain.dims if name != dim)
    return Domain(dims, tuple(r for r in domain.ranges if r[0] != dim), domain.where)


def batched_entry(entry: Entry, batch: Batch) -> Entry:
    """The points that an entry reads over all points of the dim: `t - 1` becomes `0 - 1:T - 1`."""
    if isinstance(entry, Slice) or batch.dim not in free_symbols(entry):
        return entry
    shift = entry - Sym(batch.dim)
    return Slice(batch.first + shift, batch.end + shift)


def on_axis(entry: Entry, batch: Batch) -> Entry:
    """Where what an entry reads of the dim is on the axis."""
    if isinstance(entry, Slice):
        return Slice(entry.start - batch.first, entry.stop - batch.first, entry.step)
    return entry - batch.first


def shifts_only(entry: Entry, dim: str) -> bool:
    """Whether an entry is a dim plus something that does not depend on it."""
    return not isinstance(entry, Slice) and dim not in free_symbols(entry - Sym(dim))
