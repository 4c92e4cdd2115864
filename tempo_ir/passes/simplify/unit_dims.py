"""A dim that is declared to have one point, as `e` of `dims(i: I, e: 1)`, has the point 0: nothing varies along it."""

from __future__ import annotations

from collections.abc import Mapping

from tempo_ir.dialects.sdg import (
    Access,
    AccessOp,
    CotangentOp,
    GradOp,
    HostOp,
    MergeOp,
    OutputOp,
    ProgramOp,
    RandomOp,
    SdgOp,
    UntilOp,
)
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.dialects.sdg.symbols import property_symbols
from tempo_ir.index import Const, Domain, free_symbols, substitute
from tempo_ir.passes.utilities import is_slice

STAYING = (HostOp, OutputOp, RandomOp, UntilOp, GradOp, CotangentOp)
"""What differs from point to point by its meaning, or shows the dim to the caller."""


def drop_unit_dims(program: ProgramOp) -> bool:
    """Take dims of one point out of indices, conditions and domains, in place; whether there were any.

    Before: `%a = sdg.mul %w[i, e], %x[i] in (i, e)` and its reader `%a[i, e]`, for `dims(i: I, e: 1)`;
    after: `%a = sdg.mul %w[i, 0], %x[i] in (i)` and `%a[i]`, so that it is seen to be what somebody made of `%w[i, 0]`.

    A dim stays where a reader takes a range of it, where the shape or a property of the op mentions it, where the
    domain says more of it than that it is there, and in the domains of draws, calls and outputs (`STAYING`).
    """
    units = {name: Const(0) for name, bound in program.space.dims if bound == Const(1)}
    if not units:
        return False
    ops = [op for op in program_ops(program) if isinstance(op, AccessOp)]
    changed = [at_the_point(op, units) for op in ops]
    changed += [without_units(op, units) for op in ops]
    return any(changed)


def at_the_point(op: AccessOp, units: Mapping[str, Const]) -> bool:
    """Indices, and conditions of a merge, with 0 for each such dim of the op; whether that changed one."""
    own = {dim: point for dim, point in units.items() if dim in op.domain.dims}
    if not own:
        return False
    changed = False
    for number, access in enumerate(op.accesses):
        read = Access(access.value, substitute(access.index, own))
        if read.index != access.index and read.type == access.type:
            op.with_access(number, read.value, read.index)
            changed = True
    if isinstance(op, MergeOp):
        conds = [substitute(cond, own) for cond in op.conds]
        changed |= conds != list(op.conds)
        op.set_cases(list(zip(conds, op.accesses, strict=True)))
    return changed


def without_units(op: AccessOp, units: Mapping[str, Const]) -> bool:
    """The op over its other dims; whether it had such a dim that may go."""
    if isinstance(op, STAYING) or op.regions or len(op.results) != 1:
        return False
    domain = op.domain
    mentioned = property_symbols(op) | free_symbols(domain.where)
    for _, first, end in domain.ranges:
        mentioned |= free_symbols(first) | free_symbols(end)
    for access in op.accesses:
        mentioned |= free_symbols(access.index)
    ranged = {name for name, _, _ in domain.ranges}
    going = {dim for dim in domain.dims if dim in units and dim not in mentioned and dim not in ranged}
    going -= _read_as_ranges(op, domain)
    if not going:
        return False
    for use in list(op.results[0].uses):
        user = use.operation
        assert isinstance(user, AccessOp)
        entries = zip(domain.dims, user.accesses[use.index].index, strict=True)
        user.with_access(use.index, op.results[0], tuple(entry for dim, entry in entries if dim not in going))
    op.domain = Domain(tuple(dim for dim in domain.dims if dim not in going), domain.ranges, domain.where)
    return True


def _read_as_ranges(op: SdgOp, domain: Domain) -> set[str]:
    """The dims of which some reader takes a range; all, where one names the whole value."""
    found: set[str] = set()
    for use in op.results[0].uses:
        user = use.operation
        if not isinstance(user, AccessOp):
            return set(domain.dims)
        index = user.accesses[use.index].index
        found.update(dim for dim, entry in zip(domain.dims, index, strict=True) if is_slice(entry))
    return found
