"""Calls of a host object at all points of a dim by one call, of the vectorised form that their op names.

Before, where nothing but the next call waits for a call, and who waits for the last reads it at `B - 1`:

    %e = sdg.merge {b = 0 : %e0[t], b > 0 : %n[t, b - 1]} in (t, b)
    %y, %n = sdg.host @env::@step(%a[t, b]) after %e[t, b] vectorized @step_all along (b) in (t, b)

After; where there is no point of b there is no call, and the results have no rows:

    %y1, %n = sdg.host @env::@step(%a[t, 0:B]) after %e0[t] vectorized @step_all along (b) over (b) in (t where B >= 1)
    %y = sdg.merge {B >= 1 : %y1[t], true : %nothing} in (t)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import FixedBitwidthType
from xdsl.ir import SSAValue

from tempo_ir.dialects.sdg import Access, AccessOp, HostOp, MergeOp, SdgOp, TokenType, Vectorized
from tempo_ir.dialects.sdg.reads import unreached_problem
from tempo_ir.dialects.types import element, shape_of, tensor
from tempo_ir.index import (
    TRUE,
    Cond,
    Domain,
    Slice,
    Space,
    Sym,
    compare,
    conj,
    free_symbols,
    negate,
    substitute,
)
from tempo_ir.passes.building import GraphBuilder, normal_form
from tempo_ir.passes.utilities import identity
from tempo_ir.passes.vectorize.batching import Batch, Operand, repeated, without

CALL_BYTES = 2**17
"""What memory moves in the time of a call of Python (about 10 microseconds): where the rows of one point are more, to
keep those of all points for one call gains nothing."""


@dataclass(frozen=True)
class Chain:
    """The calls of `op` along a dim, one after the other: case `number` of `merge` waits for the call before."""

    op: HostOp
    merge: MergeOp
    number: int
    batch: Batch


class NoChainError(ValueError):
    """The calls along a dim cannot be one; says why."""


def points_of(op: SdgOp, dim: str, space: Space) -> Batch:
    """The points of an op along a dim."""
    return Batch(dim, op.domain.lower(dim, space), op.domain.upper(dim, space))


def with_points(op: SdgOp, batch: Batch) -> Domain:
    """The domain of an op over all points of a dim: without the dim, and for a call where there is a point of it."""
    domain = without(op.domain, batch.dim)
    if not isinstance(op, HostOp):
        return domain
    return normal_form(replace(domain, where=conj(domain.where, nonempty(batch))), op.space)


def nonempty(batch: Batch) -> Cond:
    """That there is a point."""
    return compare(">=", batch.end, batch.first + 1)


def chain_of(op: HostOp, dim: str, space: Space) -> Chain:
    """The calls of an op along a dim of its own, as they follow each other. Raises NoChainError."""
    form = op.vectorized
    if form is None or dim not in form.along:
        raise NoChainError(f"@{op.object}::@{op.method} names no vectorised form along it")
    if any(space.names.index(dim) > space.names.index(inner) for inner in form.over.dims):
        raise NoChainError(f"one call makes those of {form.over.dims[0]}, an outer dim, by now")
    batch, merge = points_of(op, dim, space), op.token.owner
    tied = {symbol for name, *bounds in op.domain.ranges if name != dim for symbol in free_symbols(tuple(bounds))}
    if dim in free_symbols(op.domain.where) or dim in tied:
        raise NoChainError("its points are no range")
    previous = Access(op.next_token, tuple(substitute(identity(op), {dim: Sym(dim) - 1})))
    between = NoChainError(f"other calls of @{op.object} stand between these")
    if not isinstance(merge, MergeOp) or op.accesses[-1].index != identity(merge) or len(list(merge.result.uses)) != 1:
        raise between
    number = next((number for number, access in enumerate(merge.accesses) if access == previous), None)
    if number is None or not _follows(merge, number, op.domain, batch, space):
        raise between
    for use in op.next_token.uses:
        reader = use.operation
        assert isinstance(reader, AccessOp)
        if not (reader is merge and use.index == number) and not _is_last(reader, use.index, op, batch, space):
            raise between
    return Chain(op, merge, number, batch)


def _follows(merge: MergeOp, number: int, calls: Domain, batch: Batch, space: Space) -> bool:
    """Whether a case of a merge is that of all points but the first."""
    from tempo_ir.index import isl

    held = conj(*(negate(cond) for cond in merge.conds[:number]), merge.conds[number])
    first = compare("=", Sym(batch.dim), batch.first)
    at_first, later = (replace(calls, where=conj(calls.where, part)) for part in (first, negate(first)))
    return isl.prove(held, space, later) and isl.prove(negate(held), space, at_first)


def _is_last(reader: AccessOp, number: int, op: HostOp, batch: Batch, space: Space) -> bool:
    """Whether a reader waits for the call at the last point."""
    from tempo_ir.dialects.sdg.reads import read_domain
    from tempo_ir.index import isl

    entries = reader.accesses[number].index
    points = [entry for entry in entries if not isinstance(entry, Slice)]  # all of them, since a token has no rows
    there = dict(zip(op.domain.dims, points, strict=True))
    last = substitute(batch.end - 1, there)
    return isl.prove(compare("=", there[batch.dim], last), space, read_domain(reader, number))


def chains(ops: Sequence[SdgOp], dim: str, space: Space) -> dict[HostOp, Chain]:
    """The calls along a dim that may be one call each."""
    found: dict[HostOp, Chain] = {}
    for op in ops:
        if isinstance(op, HostOp) and op.vectorized is not None and dim in op.domain.dims:
            try:
                found[op] = chain_of(op, dim, space)
            except NoChainError:
                continue
    return found


def saves_calls(op: HostOp) -> bool:
    """Whether calls cost more than the memory of the rows of all points."""
    values = [access.type for access in op.accesses[:-1]] + [result.type for result in op.outputs]
    total = 0
    for type_ in values:
        kind = element(type_)
        assert isinstance(kind, FixedBitwidthType)
        total += kind.size * prod(extent for extent in shape_of(type_) if isinstance(extent, int))
    return total <= CALL_BYTES


def one_call(chain: Chain, operands: Sequence[Operand]) -> tuple[HostOp, list[Access]]:
    """The call of the vectorised form, inserted before the op, and its results over the other dims of the op, with no
    rows where there is no call."""
    op, batch = chain.op, chain.batch
    domain = with_points(op, batch)
    build = GraphBuilder(op, domain, op.location)
    arguments = [repeated(build, operand, batch) for operand in operands]
    form = op.vectorized
    assert form is not None
    ranges = ((batch.dim, batch.first, batch.end),) if any(name == batch.dim for name, *_ in op.domain.ranges) else ()
    over = Domain((batch.dim, *form.over.dims), (*ranges, *form.over.ranges))
    call = HostOp(
        op.object,
        op.method,
        *arguments,
        after=_waits_for(chain, build),
        returns=[tensor(element(r.type), (batch.count, *shape_of(r.type))) for r in op.outputs],
        domain=domain,
        gradient=op.gradient,
        vectorized=Vectorized(form.method, form.along, over),
    )
    build.insert(call)
    return call, [_or_nothing(chain, build, value, old) for value, old in zip(call.outputs, op.outputs, strict=True)]


def _waits_for(chain: Chain, build: GraphBuilder) -> Access:
    """The token that the first call waits for."""
    merge, batch, space = chain.merge, chain.batch, chain.op.space
    first = {batch.dim: batch.first}
    cases = zip(merge.conds, merge.accesses, strict=True)
    kept = [(substitute(cond, first), access) for number, (cond, access) in enumerate(cases) if number != chain.number]
    domain = build.domain
    ways = [(domain.simplify(cond, space), Access(token.value, substitute(token.index, first))) for cond, token in kept]
    conds = tuple(cond for cond, _ in ways)
    ways = [way for number, way in enumerate(ways) if unreached_problem(space, domain.dims, conds, number) is None]
    if len(ways) == 1:
        return ways[0][1]
    return build.insert(MergeOp(*ways, domain=domain, result_type=TokenType()))


def _or_nothing(chain: Chain, build: GraphBuilder, value: SSAValue, old: SSAValue) -> Access:
    """A result, and no rows where there is no call."""
    from tempo_ir.index import isl

    op, batch = chain.op, chain.batch
    domain = without(op.domain, batch.dim)
    read = Access(value, tuple(map(Sym, domain.dims)))
    value.name_hint = old.name_hint
    if isl.prove(nonempty(batch), op.space, domain):
        return read
    everywhere = build.at(domain)
    shape = (batch.count, *shape_of(old.type))
    nothing = everywhere.broadcast(everywhere.number(0, element(old.type)), shape)
    merge = MergeOp((nonempty(batch), read), (TRUE, nothing), domain=domain, result_type=read.tensor)
    return everywhere.insert(merge, old.name_hint)


def follow(chain: Chain, call: HostOp) -> None:
    """Who waited for the last of the calls waits for the one call."""
    position = chain.op.domain.dims.index(chain.batch.dim)
    for use in list(chain.op.next_token.uses):
        reader = use.operation
        if isinstance(reader, AccessOp) and reader is not chain.merge:
            index = reader.accesses[use.index].index
            reader.with_access(use.index, call.next_token, (*index[:position], *index[position + 1 :]))
