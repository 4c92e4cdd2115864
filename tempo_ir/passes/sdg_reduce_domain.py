"""sdg-reduce-domain: every op runs at the points that need it, and once where nothing changes.

Before:

    %d = sdg.exp %w[i] in (i, t) : (!w) -> !w                           // the same for all t
    %e = sdg.mul %d[i, t], %x[i, t] in (i, t) : (!w, !w) -> !w
    sdg.output "e" %e[i, T - 1] in (i) : !w                              // only the last step is read

After:

    %d = sdg.exp %w[i] in (i) : (!w) -> !w
    %e = sdg.mul %d[i], %x[i, t] in (i, t where t = T - 1) : (!w, !w) -> !w
    sdg.output "e" %e[i, T - 1] in (i) : !w

First domains are narrowed to the needed points (`dialects.sdg.needed.narrow`, as the front end does; host calls keep
theirs, so that they run as often as the program says); then each op loses the dims that neither its operands nor its
properties use, which is loop-invariant code motion, and its users the entries that named them.

A dim stays where a user reads a range of it (the rows would be missing), where the rest of the domain has no exact form
without it, and for host calls and random draws, which differ from point to point by their meaning.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tempo_ir.dialects.sdg import (
    AccessOp,
    CotangentOp,
    GradOp,
    HostOp,
    MergeOp,
    OutputOp,
    ProgramOp,
    RandomOp,
    SdgOp,
    SourceOp,
)
from tempo_ir.dialects.sdg.failing import may_fail
from tempo_ir.dialects.sdg.needed import leaves, loses_arrival, narrow
from tempo_ir.dialects.sdg.points import is_current
from tempo_ir.dialects.sdg.reads import holds, program_ops
from tempo_ir.dialects.sdg.symbols import property_symbols
from tempo_ir.dialects.sdg.until import needed_for, until_of
from tempo_ir.index import Domain, IndexExpressionError, Space, free_symbols
from tempo_ir.passes.remarks import count, remark
from tempo_ir.passes.utilities import is_slice, programs


@dataclass(frozen=True)
class SdgReduceDomainPass(ModulePass):
    """Drop the points that nothing needs, and the dims along which nothing changes."""

    name = "sdg-reduce-domain"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in programs(op):
            narrow(program, calls_stay=True)
            hoisted = hoist(program)
            if hoisted:
                narrow(program, calls_stay=True)
            count(self, "hoisted", hoisted)


def hoist(program: ProgramOp) -> int:
    """Drop dims along which ops do not vary, in place, until none is left; how many ops lost one."""
    hoisted: set[SdgOp] = set()
    waiting = program_ops(program)
    until = until_of(waiting)
    early = {} if until is None else dict.fromkeys(needed_for(until), until.dim)
    while waiting:
        changed = [op for op in waiting if drop_dims(op, program.space, early.get(op))]
        hoisted.update(changed)
        waiting = list(dict.fromkeys(user for op in changed for user in users(op)))
    return len(hoisted)


def users(op: SdgOp) -> Iterable[SdgOp]:
    """The ops that read an op."""
    found = (use.operation for result in op.results for use in result.uses)
    return [user for user in found if isinstance(user, SdgOp)]


def drop_dims(op: SdgOp, space: Space, ends: str | None) -> bool:
    """Drop the dims of an op that neither its operands nor its properties use; whether there were any.

    `ends` is the dim whose end is computed from the op, if one is: its points still come with steps of it.
    """
    if isinstance(op, HostOp | RandomOp | OutputOp | SourceOp | GradOp | CotangentOp) or len(op.results) != 1:
        return False
    dims = op.domain.dims
    if any(is_current(access.index, op.domain) for access in op.accesses):
        return False
    used = used_symbols(op)
    unused = [dim for dim in dims if dim not in used]
    if not unused:
        return False
    if reason := reason_to_stay(op, unused):
        remark(op, f"varies over ({', '.join(dims)}) though {', '.join(unused)} changes nothing: {reason}")
        return False
    domain = without_dims(op, unused, space)
    if domain is None:
        remark(op, f"its domain {op.domain} has no exact form without {', '.join(unused)}")
        return False
    if ends is not None and loses_arrival(op, domain, space, ends):
        remark(op, f"the end of {ends} is computed from it, and {domain} comes with no step of {ends}")
        return False
    for use in list(op.results[0].uses):
        assert isinstance(use.operation, AccessOp)
        index = use.operation.accesses[use.index].index
        kept = tuple(entry for dim, entry in zip(dims, index, strict=True) if dim not in unused)
        use.operation.with_access(use.index, op.results[0], kept)
    op.domain = domain
    return True


def used_symbols(op: SdgOp) -> frozenset[str]:
    """The dims and bounds that the operands, properties and result types of an op mention."""
    symbols = property_symbols(op)
    for access in op.accesses:
        symbols |= free_symbols(access.index)
    return symbols


def reason_to_stay(op: SdgOp, unused: Iterable[str]) -> str | None:
    """Why a user of the op cannot do without some dims; None if all can."""
    for use in op.results[0].uses:
        user = use.operation
        if not isinstance(user, AccessOp):
            return f"{user.name} names the whole value"
        index = user.accesses[use.index].index
        entries = dict(zip(op.domain.dims, index, strict=True))
        if any(is_slice(entries[dim]) for dim in unused):
            return f"{user.name} reads a range of it"
        if user is op and isinstance(op, MergeOp):
            return "it reads itself"
    return None


def without_dims(op: SdgOp, dims: Iterable[str], space: Space) -> Domain | None:
    """The points of an op without some dims; None where they have no exact form.

    That the dropped dims had a point at all (`where T >= 1`) is forgotten where nothing fails without it, be it the
    op itself when it runs.
    """
    from tempo_ir.index import isl

    dropped = set(dims)
    kept = tuple(dim for dim in op.domain.dims if dim not in dropped)
    try:
        points = isl.domain_set(space, op.domain)
        for position in reversed(range(len(op.domain.dims))):
            if op.domain.dims[position] in dropped:
                points = points.project_out(isl.DIM.set, position, 1)
        exact = isl.set_to_domain(points, kept, space)
        loose = isl.set_to_domain(points.gist_params(points.params()), kept, space)
    except IndexExpressionError:
        return None
    return loose if not may_fail(op) and holds(op, space, loose) and not leaves(op, {op: loose}, space) else exact
