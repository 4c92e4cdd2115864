"""Rules for merges, and for the indices of every op."""

from __future__ import annotations

from types import MappingProxyType

from tempo_ir.dialects.sdg import Access, AccessOp, MergeOp, SdgOp, TokenType
from tempo_ir.index import Cond, Domain, Entry, Slice, Sym, conj, negate
from tempo_ir.passes.simplify.rule import Rewriting, Rules, reads_itself


def never_and_always(op: MergeOp, rewriting: Rewriting) -> bool:
    """A case that never applies, and those after one that always does, go."""
    from tempo_ir.index import isl

    domain, space = op.domain, op.space
    kept: list[tuple[Cond, Access]] = []
    earlier: list[Cond] = []
    for cond, access in zip(op.conds, op.accesses, strict=True):
        left = Domain(domain.dims, domain.ranges, conj(domain.where, *earlier))
        if isl.prove(negate(cond), space, left) and not _is_empty(left, op):
            continue
        kept.append((cond, access))
        if isl.prove(cond, space, left):
            break
        earlier.append(negate(cond))
    if len(kept) == len(op.conds) or not kept:
        return False
    op.set_cases(kept)
    rewriting.rewriter.notify_op_modified(op)
    return True


def _is_empty(domain: Domain, op: MergeOp) -> bool:
    """Whether a domain has no point for any bounds; then nothing is known about the case."""
    from tempo_ir.index import isl

    return isl.domain_set(op.space, domain).is_empty()


def one_case(op: MergeOp, rewriting: Rewriting) -> bool:
    """A merge of one case, which therefore always applies -> what it reads."""
    return len(op.operands) == 1 and not reads_itself(op) and rewriting.read_proved(op, op.accesses[0])


def equal_cases(op: MergeOp, rewriting: Rewriting) -> bool:
    """Cases that read the same -> what they read: `{t = 0 : %x[0], t > 0 : %x[t]}` -> `%x[t]`."""
    if reads_itself(op) or len({access.value for access in op.accesses}) != 1:
        return False
    candidate = op.accesses[-1]
    if isinstance(op.result.type, TokenType):
        return False
    earlier: list[Cond] = []
    for cond, access in zip(op.conds, op.accesses, strict=True):
        if not _same_read(op, access, candidate, conj(cond, *earlier)):
            return False
        earlier.append(negate(cond))
    return rewriting.read_proved(op, candidate)


def _same_read(op: MergeOp, access: Access, candidate: Access, where: Cond) -> bool:
    from tempo_ir.index import isl

    domain = op.domain
    points = Domain(domain.dims, domain.ranges, conj(domain.where, where))
    for own, other in zip(access.index, candidate.index, strict=True):
        if own == other:
            continue
        if isinstance(own, Slice) or isinstance(other, Slice) or not isl.equal(own, other, op.space, points):
            return False
    return True


def simpler_indices(op: SdgOp, rewriting: Rewriting) -> bool:
    """Indices simplified for the points of the domain: `max(0, T - t)` -> `T - t`."""
    if not isinstance(op, AccessOp) or isinstance(op, MergeOp):
        return False
    changed = False
    for number, (value, given) in enumerate(zip(op.operands, op.indices.data, strict=True)):
        index = tuple([_simpler(entry, op) for entry in given.data])
        if index == given.data or Access(value, index).type != Access(value, given.data).type:
            continue
        op.with_access(number, value, index)
        changed = True
    if changed:
        rewriting.rewriter.notify_op_modified(op)
    return changed


def _simpler(entry: Entry, op: SdgOp) -> Entry:
    return entry if isinstance(entry, Sym) else op.domain.simplify(entry, op.space)


RULES: Rules = MappingProxyType({MergeOp: (never_and_always, one_case, equal_cases)})

ALL = (simpler_indices,)
"""Rules for every op that reads."""
