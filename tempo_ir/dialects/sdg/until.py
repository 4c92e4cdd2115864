"""Dims that end by data (`sdg.until`): which step brings which points, and what may be known before the end.

The bound `T` of such a dim is the number of steps to the first at which the condition holds, that step included; what
the caller gives is only the most that `T` may be. So nobody knows `T` before the last step is done, and what the
condition is computed from must not need it. A point *comes with* step `n` if it exists for every `T > n` and for no
smaller one: of `%x in (t)` the point `t` comes with step `t`, of `%x in (t: 0 to T - 1)` with step `t + 1`. The
condition of a step may need what comes with this step or an earlier one. All else, a read of a range to `T` above all,
has its place after the end, where `T` is a number like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tempo_ir.dialects.sdg.attributes import TokenType
from tempo_ir.dialects.sdg.base import Access, OpError, SdgOp
from tempo_ir.dialects.sdg.locations import op_text
from tempo_ir.dialects.sdg.reads import program_ops, read_domain
from tempo_ir.dialects.sdg.sources import SourceOp
from tempo_ir.dialects.sdg.structure import OutputOp, ProgramOp, UntilOp
from tempo_ir.dialects.sdg.symbols import property_symbols
from tempo_ir.dialects.types import Extent, shape_of
from tempo_ir.graphs import reachable
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import (
    Compare,
    Const,
    Expr,
    Index,
    IndexExpressionError,
    Slice,
    Sym,
    compare,
    conj,
    free_symbols,
)
from tempo_ir.index.rules import rises

MOST_STEPS_AHEAD = 16
"""By how many steps a point may come later than its own, `(t: 0 to T - 16)`, and still be seen to come with a step."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """With which step a point of a domain comes: `t + shift`, or, where not `moves`, all with step `shift`, which is -1
    for what is there before the first step."""

    shift: int
    moves: bool

    def step(self, dim: str) -> Expr:
        """The step of each point, over the dims of the domain."""
        return Sym(dim) + self.shift if self.moves else Const(self.shift)


BEFORE = Arrival(-1, False)


def until_of(ops: Iterable[SdgOp]) -> UntilOp | None:
    """The op that ends a dim by data; None where all dims have bounds. Raises OpError for a second one."""
    found = [op for op in ops if isinstance(op, UntilOp)]
    if len(found) > 1:
        raise OpError(
            f"dim {found[0].dim} ends by data, and {found[1].dim} too: one dim of a program may, bound the other",
            found[1],
        )
    return found[0] if found else None


def bound_of(until: UntilOp, space: Space) -> str:
    """The name of the bound of the dim that ends. Raises OpError where the bound is no symbol."""
    bound = space.bound(until.dim)
    if not isinstance(bound, Sym):
        raise OpError(
            f"dim {until.dim} ends by data, so its bound is found by the program: declare it as a symbol of its own, "
            f"not as {bound}",
            until,
        )
    return bound.name


def needed_for(until: UntilOp) -> dict[SdgOp, None]:
    """The ops that the end of a dim is computed from, `until` first."""

    def producers(op: SdgOp) -> list[SdgOp]:
        owners = [access.value.owner for access in op.accesses]
        return [owner for owner in owners if isinstance(owner, SdgOp)]

    return reachable([until], producers)


def names_bound(op: SdgOp, bound: str) -> bool:
    """Whether what an op reads or computes names a bound; what it is over is another question."""
    return bound in property_symbols(op) or any(names(access, bound) for access in op.accesses)


def names(access: Access, bound: str) -> bool:
    """Whether a read names a bound: in its index, or in an extent of what is read."""
    type_ = access.type
    extents = () if isinstance(type_, TokenType) else shape_of(type_)
    named = any(not isinstance(extent, int) and bound in free_symbols(extent) for extent in extents)
    return named or bound in free_symbols(access.index)


@lru_cache(maxsize=4096)
def arrival(space: Space, domain: Domain, dim: str) -> Arrival | None:
    """With which step of a dim that ends by data the points of a domain come; None where that is no shift of the
    dim."""
    from tempo_ir.index import isl

    bound = space.bound(dim)
    try:
        points = isl.domain_set(space, domain)
        position = points.find_dim_by_name(isl.DIM.param, isl.encode(str(bound)))
        anywhere = points if position < 0 else points.project_out(isl.DIM.param, position, 1)
        anywhere = anywhere.intersect_params(isl.params_set(space))
        if dim not in domain.dims and anywhere.is_equal(points):
            return BEFORE
        for shift in range(MOST_STEPS_AHEAD + 1):
            found = Arrival(shift, dim in domain.dims)
            there = isl.condition_set(space, domain.dims, Compare("<", found.step(dim), bound))
            if anywhere.intersect(there).is_equal(points):
                return found
    except IndexExpressionError:
        return None
    return None


def check_until(program: ProgramOp) -> None:
    """What ends a dim is known when its step is done. Raises OpError with the op that is not, and the way out."""
    space, ops = program.space, program_ops(program)
    until = until_of(ops)
    if until is None:
        return
    bound = bound_of(until, space)
    for dim, other in space.dims:
        if not rises(other, bound):
            raise OpError(f"the bound {other} of dim {dim} grows as {bound} falls, which data decides", until)
    for op in ops:
        check_room(op, until, space)
    for op in needed_for(until):
        if isinstance(op, SourceOp):
            continue
        check_known(op, until, bound)
        check_reads_of_step(op, until, space)


def check_room(op: SdgOp, until: UntilOp, space: Space) -> None:
    """Memory is reserved for the most steps that there may be: no fewer may need more. Raises OpError."""
    bound = bound_of(until, space)
    tensors = [result.type for result in op.results if not isinstance(result.type, TokenType)]
    extents: list[Extent] = []
    if isinstance(op, OutputOp):
        tensors.append(op.accesses[0].type)
        ends = [op.domain.upper(dim, space) for dim in op.domain.dims]
        extents += [end for end in ends if free_symbols(end).isdisjoint(op.domain.dims)]
    extents += [extent for tensor in tensors for extent in shape_of(tensor)]
    for extent in extents:
        if not isinstance(extent, int) and not rises(extent, bound):
            raise OpError(
                f"the extent {extent} grows as {bound} falls, and dim {until.dim} ends by data: no memory can be "
                "reserved for it",
                op,
            )


def check_known(op: SdgOp, until: UntilOp, bound: str) -> None:
    """What the end is computed from does not name it. Raises OpError."""
    if not names_bound(op, bound):
        return
    early = next((f"reads {access}" for access in op.accesses if names(access, bound)), f"needs {bound}")
    raise OpError(
        f"{early}, and the end of dim {until.dim} is computed from it ({op_text(until)}): {bound} is known only after "
        f"the last step; let the condition read steps up to {until.dim}",
        op,
    )


def check_reads_of_step(op: SdgOp, until: UntilOp, space: Space) -> None:
    """An op that the end is computed from comes with a step, and reads what comes with that step or before. Raises
    OpError."""
    dim = until.dim
    mine = arrival(space, op.domain, dim)
    if mine is None:
        raise OpError(
            f"is there at the points {op.domain}, and the end of dim {dim} is computed from it ({op_text(until)}): "
            f"which they are must not depend on {space.bound(dim)}, but for the end of a range of {dim}",
            op,
        )
    for number, access in enumerate(op.accesses):
        producer = access.value.owner
        if not isinstance(producer, SdgOp) or isinstance(producer, SourceOp):
            continue
        theirs = arrival(space, producer.domain, dim)
        reader = read_domain(op, number)
        if theirs is None or not comes_later(space, reader, mine, access.index, producer.domain, theirs, dim):
            continue
        raise OpError(
            f"reads {access}, which comes with a later step, and the end of dim {dim} is computed from it "
            f"({op_text(until)}): read steps up to {dim}",
            op,
        )


def comes_later(
    space: Space, consumer: Domain, mine: Arrival, index: Index, producer: Domain, theirs: Arrival, dim: str
) -> bool:
    """Whether some point that is read may come with a later step than its reader."""
    if not theirs.moves:
        return not _proved(space, consumer, (), Const(theirs.shift), mine.step(dim))
    entry = index[producer.dims.index(dim)]
    last = entry.stop - 1 if isinstance(entry, Slice) else entry
    nonempty = (Compare("<", entry.start, entry.stop),) if isinstance(entry, Slice) else ()
    return not _proved(space, consumer, nonempty, last + theirs.shift, mine.step(dim))


def _proved(space: Space, consumer: Domain, held: Sequence[Compare], first: Expr, second: Expr) -> bool:
    """Whether `first <= second` at all points of a domain at which something holds."""
    claim = compare("<=", first, second)
    from tempo_ir.index import isl

    return isl.prove(claim, space, Domain(consumer.dims, consumer.ranges, conj(consumer.where, *held)))
