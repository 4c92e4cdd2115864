"""Which points an op reads, and what is wrong with a read: the set questions of verifier and domain analysis.

Every question is memoised on immutable values (spaces, domains, indices), so that the thousand identity reads of a deep
network cost one answer. isl is imported when the first question that structure cannot answer comes up.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import lru_cache

from tempo_ir.dialects.operation import ops_of
from tempo_ir.dialects.sdg.attributes import TokenType
from tempo_ir.dialects.sdg.base import SdgOp, check_results
from tempo_ir.dialects.sdg.inference import Extents
from tempo_ir.dialects.sdg.structure import MergeOp, ProgramOp, case_domain
from tempo_ir.dialects.types import is_static, shape_of
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import (
    FALSE,
    TRUE,
    Cond,
    Expr,
    Index,
    IndexExpressionError,
    Sym,
    compare,
    conj,
    evaluate,
    free_symbols,
    negate,
)
from tempo_ir.index.rules import at_least_zero


def program_ops(program: ProgramOp) -> list[SdgOp]:
    """The sdg ops of a program, in textual order, as a list that stays valid while the program changes."""
    return [op for op in ops_of(program.body.block) if isinstance(op, SdgOp)]


def read_domain(op: SdgOp, number: int) -> Domain:
    """The points at which operand `number` is read: for a merge, those where its case is the first that holds."""
    if isinstance(op, MergeOp):
        return op.case_domain(number)
    return op.domain


def is_inside(consumer: Domain, index: Index, producer: Domain) -> bool:
    """Whether structure alone shows that the read stays inside: current points, of a domain that is not narrower."""
    current = all(entry == Sym(dim) for dim, entry in zip(producer.dims, index, strict=True))
    if not current:
        return False
    if not producer.ranges and producer.where == TRUE:
        return set(producer.dims) <= set(consumer.dims)
    same_ranges = set(producer.ranges) <= set(consumer.ranges)
    return same_ranges and set(producer.dims) <= set(consumer.dims) and producer.where in (TRUE, consumer.where)


@lru_cache(maxsize=16384)
def read_problem(space: Space, consumer: Domain, index: Index, producer: Domain) -> str | None:
    """What is wrong with reading `index` at the points of `consumer`; None if every point read is of `producer`."""
    if is_inside(consumer, index, producer):
        return None
    from tempo_ir.index import isl

    try:
        relation = isl.access_map(space, consumer, index, producer)
        outside = relation.subtract(relation.intersect_range(isl.domain_set(space, producer)))
    except IndexExpressionError as error:
        return str(error)
    if outside.is_empty():
        return None
    point = isl.smallest_point(outside.domain()) or {}
    missing = _missing_point(space, index, producer, point)
    where = "" if missing is None else f" at {missing}"
    good = relation.domain().subtract(outside.domain())
    return (
        f"reads{where}, outside of the domain {producer} of what it reads, {_at(point, consumer)}"
        f"{_mend(isl.condition(good, isl.domain_set(space, consumer)), consumer)}"
    )


def _missing_point(space: Space, index: Index, producer: Domain, point: Mapping[str, int]) -> str | None:
    """The first point that the index reads and the producer lacks, as text; None if there is nothing to name."""
    held = producer.condition(space)
    entries = [evaluate(entry, point) for entry in index]
    ranges = [(entry,) if isinstance(entry, int) else entry for entry in entries]
    for values in itertools.product(*ranges):
        there = dict(zip(producer.dims, values, strict=True))
        if not evaluate(held, {**point, **there}):
            return ", ".join(f"{dim} = {value}" for dim, value in there.items()) or None
    return None


def _at(point: Mapping[str, int], domain: Domain) -> str:
    """`at t = 0 (T = 1)`."""
    dims = ", ".join(f"{name} = {point[name]}" for name in domain.dims)
    bounds = ", ".join(f"{name} = {value}" for name, value in point.items() if name not in domain.dims)
    if dims and bounds:
        return f"at {dims} ({bounds})"
    return f"at {dims or bounds}" if dims or bounds else "at its only point"


def _mend(good: Cond, domain: Domain) -> str:
    if good == FALSE:
        return "; no point reads inside: change the index"
    if free_symbols(good).isdisjoint(domain.dims):
        return f"; it needs {good}: declare it with `where {good}`"
    return f"; it reads inside where {good}: define the other points by another case, or clamp the index by min and max"


@lru_cache(maxsize=4096)
def gap_problem(space: Space, domain: Domain, conds: tuple[Cond, ...]) -> str | None:
    """Which points of `domain` no case covers; None if there are none."""
    if TRUE in conds:
        return None
    from tempo_ir.index import isl

    try:
        gap = isl.domain_set(space, case_domain(domain, conds, len(conds)))
    except IndexExpressionError as error:
        return str(error)
    if gap.is_empty():
        return None
    point = isl.smallest_point(gap) or {}
    missing = isl.condition(gap, isl.domain_set(space, domain))
    return f"no case holds {_at(point, domain)}: the cases leave out {missing}; add a case for it"


@lru_cache(maxsize=4096)
def unreached_problem(space: Space, dims: tuple[str, ...], conds: tuple[Cond, ...], number: int) -> str | None:
    """Why case `number` is reached at no point of `dims`, whatever the bounds; None if it is reached at some.

    Narrowing and preconditions are left out of account: they may retire a case, which is no mistake of the program.
    """
    from tempo_ir.index import isl

    everywhere, unconditional = Domain(dims), Space(space.dims)
    try:
        points = isl.domain_set(unconditional, case_domain(everywhere, conds, number))
        alone = isl.domain_set(unconditional, case_domain(everywhere, (conds[number],), 0))
    except IndexExpressionError as error:
        return str(error)
    if not points.is_empty():
        return None
    if alone.is_empty():
        return (
            f"case #{number} `{conds[number]}` holds at no point, whatever the bounds: mend its condition or remove it"
        )
    return (
        f"case #{number} `{conds[number]}` is never reached: the cases before it hold wherever it does; "
        "the first case that holds wins, so move it forward or remove it"
    )


@lru_cache(maxsize=8192)
def claim_problem(claim: Cond, space: Space, domain: Domain) -> str | None:
    """Where a claim fails, as text: `at t = 3 (T = 5)`; None if it is proved at every point of the domain."""
    if claim == TRUE:
        return None
    from tempo_ir.index import isl

    if isl.prove(claim, space, domain):
        return None
    failing = Domain(domain.dims, domain.ranges, conj(domain.where, negate(claim)))
    point = _some_point(failing, space)
    return "which cannot be proved" if point is None else _at(point, domain)


def negative_extents(op: SdgOp, space: Space, domain: Domain) -> Iterator[tuple[Expr, Cond, str]]:
    """The extents of results that are below 0 at some point of a domain: each with the claim that fails, and where.

    A product of bounds, of which isl cannot tell, is left to what makes it.
    """
    dynamic = [each for result in op.results if not is_static(each := result.type) and type(each) is not TokenType]
    if not dynamic:
        return
    shapes = map(shape_of, dynamic)
    for extent in dict.fromkeys(extent for shape in shapes for extent in shape if isinstance(extent, Expr)):
        if (found := _negative_extent(extent, space, domain)) is not None:
            yield extent, *found


@lru_cache(maxsize=8192)
def _negative_extent(extent: Expr, space: Space, domain: Domain) -> tuple[Cond, str] | None:
    """The claim that an extent is not below 0 and where it fails; None if it holds."""
    claim = compare(">=", extent, 0)
    if at_least_zero(extent, domain.facts(space)) or claim_problem(claim, space, domain) is None:
        return None
    failing = Domain(domain.dims, domain.ranges, conj(domain.where, negate(claim)))
    point = _some_point(failing, space)
    return None if point is None else (claim, _at(point, domain))


def _some_point(domain: Domain, space: Space) -> dict[str, int] | None:
    """A point of a domain; None if there is none, or isl cannot tell."""
    from tempo_ir.index import isl

    try:
        return isl.smallest_point(isl.domain_set(space, domain))
    except IndexExpressionError:
        return None


def holds(op: SdgOp, space: Space, domain: Domain) -> bool:
    """Whether what an op needs besides its reads would be so at every point of a domain, were it over that: what it
    claims, that extents are equal, that some case holds. Of its own domain the verifier knows it."""
    extents = Extents()
    if (types := op.inferred_types(extents)) is not None:
        check_results(op, types, extents)
    equal = [compare("=", first, second) for first, second, _ in extents.obligations]
    claims = [*(claim for claim, _ in op.claims()), *equal]
    if any(claim_problem(claim, space, domain) is not None for claim in claims):
        return False
    if any(negative_extents(op, space, domain)):
        return False
    return not isinstance(op, MergeOp) or gap_problem(space, domain, op.conds) is None
