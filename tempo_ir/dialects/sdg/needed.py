"""Narrowing: every op gets the domain of its needed points, and what nobody needs is erased."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from tempo_ir.dialects.sdg.base import SdgOp
from tempo_ir.dialects.sdg.failing import may_fail
from tempo_ir.dialects.sdg.points import Analysis, producers
from tempo_ir.dialects.sdg.reads import claim_problem, negative_extents, program_ops, read_problem, unreached_problem
from tempo_ir.dialects.sdg.requests import RequestOp, requests_about
from tempo_ir.dialects.sdg.sources import SourceOp
from tempo_ir.dialects.sdg.structure import HostOp, MergeOp, OutputOp, ProgramOp, UntilOp, case_domain
from tempo_ir.dialects.sdg.until import arrival, needed_for, until_of
from tempo_ir.graphs import reachable
from tempo_ir.index import isl
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import IndexExpressionError


def narrow(program: ProgramOp, *, calls_stay: bool = False) -> None:
    """Give every op the domain of its needed points, in place, and erase what nobody needs.

    ```mlir
    %y = sdg.neg %x[t] in (t)          ->   %y = sdg.neg %x[t] in (t: 0 to T - 1)
    sdg.output "y" %y[t] in (t: 0 to T - 1)
    ```

    Inputs, parameters and outputs keep their domains: the caller sees them. An op that cannot fail keeps more points
    where that makes its domain simpler and every read stays inside, any pure op where its needed points come with no
    step of a dim that ends by data, while its own do (`until.arrival`). Cases of a merge that are left without points
    go away. With `calls_stay` host calls keep their domains too: a pass may not change how often they run.

    Raises OpError for a host call whose points have no exact domain, since it must run at these and no others.
    """
    analysis = Analysis(program, calls_stay=calls_stay)
    narrowable = [op for op in analysis.ops if not isinstance(op, SourceOp | OutputOp | UntilOp)]
    domains = {op: domain for op in narrowable if (domain := analysis.domain(op)) is not None}
    relax(analysis, domains, may_run_early(program))
    keep_arrivals(program, domains, narrowable)
    for op, domain in domains.items():
        if domain is not op.domain and domain != op.domain:
            op.domain = domain
    for op in domains:
        if isinstance(op, MergeOp):
            drop_cases(op, program.space)
    erase([op for op in narrowable if op not in domains])


def may_run_early(program: ProgramOp) -> set[SdgOp]:
    """The ops that may run at more points than those that something needs: all that cannot fail, and what the end of a
    dim is computed from, which has to run before anybody knows how many points there are."""
    ops = program_ops(program)
    until = until_of(ops)
    early = set[SdgOp]() if until is None else set(needed_for(until))
    return {op for op in ops if op in early or not may_fail(op)}


def relax(analysis: Analysis, domains: dict[SdgOp, Domain], relaxable: Container[SdgOp]) -> None:
    """Replace domains by simpler ones with more points, in place, where no read then leaves what it reads.

    Ops with equal points are relaxed together, so that equal layers stay equal.
    """
    exact = dict(domains)
    simpler = {op: domain for op in domains if op in relaxable and (domain := analysis.relaxed(op)) is not None}
    refused: set[Domain] = set()
    while True:
        domains.update({op: exact[op] if exact[op] in refused else domain for op, domain in simpler.items()})
        relaxed = [op for op in simpler if exact[op] not in refused]
        space = analysis.space
        worse = {exact[op] for op in relaxed if leaves(op, domains, space) and not leaves(op, exact, space)}
        if not worse:
            return
        refused |= worse


def keep_arrivals(program: ProgramOp, domains: dict[SdgOp, Domain], narrowable: Sequence[SdgOp]) -> None:
    """Give the ops that the end of a dim is computed from back their domains, in place, where their points no longer
    come with a step of it, and with them what they read.

    Nothing else changes: all points that are needed there exist, and what the end needs comes no later than before. A
    call has to run at its needed points alone, so what it is read by stays as it is.
    """
    until = until_of(program_ops(program))
    if until is None:
        return
    space, dim = program.space, until.dim
    lost = [op for op in needed_for(until) if loses_arrival(op, domains.get(op, op.domain), space, dim)]
    kept = reachable(lost, producers)
    if any(isinstance(op, HostOp) and domains.get(op) != op.domain for op in kept):
        return
    domains.update({op: op.domain for op in narrowable if op in kept})


def loses_arrival(op: SdgOp, domain: Domain, space: Space, dim: str) -> bool:
    """Whether points of an op that come with steps of a dim that ends by data would come with none in a domain."""
    return domain != op.domain and arrival(space, domain, dim) is None and arrival(space, op.domain, dim) is not None


def leaves(op: SdgOp, domains: Mapping[SdgOp, Domain], space: Space) -> bool:
    """Whether a read of `op` would leave its producer's domain, or a claim fail, if the ops had the given domains."""
    domain = domains.get(op, op.domain)
    for number, access in enumerate(op.accesses):
        producer = access.value.owner
        if not isinstance(producer, SdgOp):
            continue
        consumer = case_domain(domain, op.conds, number) if isinstance(op, MergeOp) else domain
        if read_problem(space, consumer, access.index, domains.get(producer, producer.domain)) is not None:
            return True
    failing = any(claim_problem(claim, space, domain) is not None for claim, _ in op.claims())
    return failing or any(negative_extents(op, space, domain))


def drop_cases(merge: MergeOp, space: Space) -> None:
    """Remove the cases that have no point left in the narrowed domain, in place.

    A case without a point in any domain is a mistake that the verifier shows, and stays.
    """
    conds, accesses = merge.conds, merge.accesses
    kept = [number for number in range(len(conds)) if not is_retired(merge, space, number)]
    if kept and len(kept) < len(conds):
        merge.set_cases([(conds[number], accesses[number]) for number in kept])


def is_retired(merge: MergeOp, space: Space, number: int) -> bool:
    """Whether a case that applies at some point of the dims applies at none of the domain."""
    try:
        left = isl.domain_set(space, merge.case_domain(number))
    except IndexExpressionError:
        return False
    return left.is_empty() and unreached_problem(space, merge.domain.dims, merge.conds, number) is None


def erase(ops: Iterable[SdgOp]) -> None:
    """Erase ops that nothing needs, except those that a needed op still names, with the requests about their memory."""
    candidates = dict.fromkeys(ops)
    waiting = list(candidates)
    while waiting:
        op = waiting.pop()
        users = [use.operation for result in op.results for use in result.uses]
        if op not in candidates or all(user in candidates or isinstance(user, RequestOp) for user in users):
            continue
        del candidates[op]
        waiting += [producer for producer in producers(op) if producer in candidates]
    doomed = [*(request for op in candidates for request in requests_about(op)), *candidates]
    for op in doomed:
        op.detach()
        op.drop_all_references()
    for op in doomed:
        op.erase(drop_references=False)
