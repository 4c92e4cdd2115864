"""How each op works on the axes that were merged into axis 0 of its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, cast

from tempo_ir.dialects.sdg import (
    Access,
    AxisOp,
    BinaryOp,
    BroadcastOp,
    CastOp,
    ContractOp,
    GatherOp,
    MaxOp,
    MeanOp,
    MinOp,
    OneHotOp,
    OrderOp,
    ProdOp,
    ReduceOp,
    ReshapeOp,
    ScanOp,
    SdgOp,
    SelectOp,
    SliceOp,
    StopGradientOp,
    SumOp,
    TransposeOp,
    UnaryOp,
)
from tempo_ir.dialects.types import Shape, element, shape_of
from tempo_ir.passes.building import Constructor, GraphBuilder, full, number_of
from tempo_ir.passes.simplify.shape import takes_all


@dataclass(frozen=True)
class Reads:
    """What an op reads: `given`, and `apart` where axis 0 of an operand is `lead` axes that a reshape merged."""

    given: Sequence[Access]
    apart: Sequence[Access | None]
    lead: Shape

    @property
    def more(self) -> int:
        """By how much axes behind the first one move."""
        return len(self.lead) - 1

    @property
    def only(self) -> Access:
        """The one operand of an op that has one, apart."""
        (read,) = self.apart
        assert read is not None
        return read


Rule: TypeAlias = Callable[[GraphBuilder, SdgOp, Reads], Access | None]
"""Builds the op on the axes as they were, over the same domain; None where it cannot. A result that has the rows has
them apart, another is that of the op."""


def elementwise(build: GraphBuilder, op: SdgOp, reads: Reads) -> Access | None:
    """Operands that have the rows have them first; the others are the same for all rows, or one number."""
    rank = len(shape_of(op.results[0].type))
    if not all(apart is not None or serves_all(access, rank) for access, apart in reads_of(reads)):
        return None
    if any(apart is not None and len(shape_of(access.tensor)) != rank for access, apart in reads_of(reads)):
        return None
    operands = [apart or repeated(build, access, rank, reads.lead) for access, apart in reads_of(reads)]
    if isinstance(op, CastOp):
        return build.insert(CastOp(reads.only, element(op.result.type), domain=op.domain))
    return build.insert(cast(Constructor, type(op))(*operands, domain=op.domain))


def reads_of(reads: Reads) -> list[tuple[Access, Access | None]]:
    """Each operand, and what it is apart."""
    return list(zip(reads.given, reads.apart, strict=True))


def serves_all(access: Access, rank: int) -> bool:
    """Whether an operand of an op with a result of this rank is the same in all of its rows."""
    shape = shape_of(access.tensor)
    return len(shape) < rank or shape[0] == 1 or number_of(access) is not None


def repeated(build: GraphBuilder, access: Access, rank: int, lead: Shape) -> Access:
    """An operand that is the same in all rows, for rows that are apart."""
    shape, number = shape_of(access.tensor), number_of(access)
    if len(shape) < rank:
        return access
    if shape[0] != 1 and number is not None:
        return build.constant(number, element(access.type), (*lead, *shape[1:]))
    return build.reshape(access, (*[1] * (len(lead) - 1), *shape))


def contraction(build: GraphBuilder, op: SdgOp, reads: Reads) -> Access | None:
    """The letter of the rows becomes one for each axis; all operands that have it are flat, and have it first."""
    inputs, output = cast(ContractOp, op).letters
    letter = next(letters[0] for letters, apart in zip(inputs, reads.apart, strict=True) if apart is not None)
    for letters, apart in zip(inputs, reads.apart, strict=True):
        if (apart is None) != (letter not in letters) or letters.rfind(letter) > 0:
            return None
    if output.rfind(letter) > 0:
        return None
    free = (name for name in "abcdefghijklmnopqrstuvwxyz" if name not in "".join(inputs))
    several = "".join(next(free) for _ in range(reads.more)) + letter
    split = [letters.replace(letter, several) for letters in (*inputs, output)]
    operands = [apart or access for access, apart in reads_of(reads)]
    return build.insert(ContractOp(f"{','.join(split[:-1])}->{split[-1]}", *operands, domain=op.domain))


def reduction(build: GraphBuilder, op: SdgOp, reads: Reads) -> Access | None:
    """Of rows, or over all of them."""
    axes = cast(ReduceOp, op).axes
    moved = [axis + reads.more for axis in axes if axis]
    rows = range(len(reads.lead)) if 0 in axes else ()
    return build.insert(cast(type[ReduceOp], type(op))(reads.only, (*rows, *moved), domain=op.domain))


def along_axis(build: GraphBuilder, op: SdgOp, reads: Reads) -> Access | None:
    """Along another axis than that of the rows."""
    own = cast(AxisOp, op).axis
    if not own:
        return None
    axis, kind = own + reads.more, cast(Constructor, type(op))
    if isinstance(op, ScanOp):
        return build.insert(kind(reads.only, axis=axis, domain=op.domain, reverse=op.reverse))
    if isinstance(op, OrderOp):
        return build.insert(kind(reads.only, axis=axis, domain=op.domain, descending=op.descending))
    return build.insert(kind(reads.only, axis=axis, domain=op.domain))


def slice_(build: GraphBuilder, op: SdgOp, reads: Reads) -> Access | None:
    """All rows are taken."""
    take = cast(SliceOp, op).take
    if not takes_all(take[0], shape_of(reads.given[0].tensor)[0]):
        return None
    return build.insert(SliceOp(reads.only, (*map(full, reads.lead), *take[1:]), domain=op.domain))


def reshape(build: GraphBuilder, op: SdgOp, reads: Reads) -> Access | None:
    """Rows stay whole."""
    rows, result = shape_of(reads.given[0].tensor)[0], shape_of(op.results[0].type)
    if not result or result[0] != rows:
        return None
    return build.insert(ReshapeOp(reads.only, (*reads.lead, *result[1:]), domain=op.domain))


def broadcast(build: GraphBuilder, op: SdgOp, reads: Reads) -> Access | None:
    """Each row is repeated, the rows are not."""
    result = shape_of(op.results[0].type)
    if len(result) != len(shape_of(reads.given[0].tensor)):
        return None
    return build.insert(BroadcastOp(reads.only, (*reads.lead, *result[1:]), domain=op.domain))


def transpose(build: GraphBuilder, op: SdgOp, reads: Reads) -> Access | None:
    """The rows stay in front."""
    first, *others = cast(TransposeOp, op).permutation
    if first:
        return None
    permutation = (*range(len(reads.lead)), *(axis + reads.more for axis in others))
    return build.insert(TransposeOp(reads.only, permutation, domain=op.domain))


def gather(build: GraphBuilder, op: SdgOp, reads: Reads) -> Access | None:
    """The rows are those of the ids, which stand first."""
    table, ids = reads.apart
    if cast(GatherOp, op).axis or table is not None or ids is None:
        return None
    return build.insert(GatherOp(reads.given[0], ids, 0, domain=op.domain))


def one_hot(build: GraphBuilder, op: SdgOp, reads: Reads) -> Access | None:
    """The new axis is the last one."""
    op = cast(OneHotOp, op)
    return build.insert(OneHotOp(reads.only, op.depth, element(op.result.type), domain=op.domain))


RULES: Mapping[type[SdgOp], Rule] = MappingProxyType(
    {
        SelectOp: elementwise,
        CastOp: elementwise,
        StopGradientOp: elementwise,
        **dict.fromkeys((SumOp, ProdOp, MaxOp, MinOp, MeanOp), reduction),
        ContractOp: contraction,
        SliceOp: slice_,
        ReshapeOp: reshape,
        BroadcastOp: broadcast,
        TransposeOp: transpose,
        GatherOp: gather,
        OneHotOp: one_hot,
    }
)


def rule_of(op: SdgOp) -> Rule | None:
    """How an op works on rows that are apart; None for one that takes them as they are."""
    if isinstance(op, UnaryOp | BinaryOp):
        return elementwise
    if isinstance(op, AxisOp):
        return along_axis
    return RULES.get(type(op))
