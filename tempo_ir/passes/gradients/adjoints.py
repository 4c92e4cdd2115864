"""Adjoints: the gradient of the loss by a value, at the points where there is one, as the sum of its contributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from tempo_ir.dialects.sdg import Access, MergeOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.index import TRUE, Cond, Domain, Space, conj, disj, negate
from tempo_ir.passes.building import GraphBuilder, normal_form
from tempo_ir.passes.gradients.inverse_reads import Contribution
from tempo_ir.passes.gradients.zeros import guarded, zeros_like


@dataclass(frozen=True)
class Adjoint:
    """The gradient of the loss by a value: `access`, over the dims of the value, at the points of `domain`.

    At the value's other points the gradient is zero. The shape broadcasts to that of the value. Where `mask` is given
    and false, the gradient is zero whatever lies downstream. `selected` says that an unselected side may
    lie there of which no mask is known.
    """

    access: Access
    domain: Domain
    mask: Access | None = None
    selected: bool = False


def combined(
    build: GraphBuilder, space: Space, domain: Domain, terms: Sequence[Contribution], *, everywhere: bool = False
) -> Adjoint:
    """The sum of one term or more of the adjoint of a value over `domain`.

    Where each term has conditions, the adjoint exists at the points of their union only, unless it is wanted
    `everywhere`. Before: terms `%a[t + 1]` where `t < T - 1`, and `%b[t]` always; after:
    `%b[t] + merge {t < T - 1 : %a[t + 1], t >= T - 1 : 0}`.
    """
    points = domain if everywhere else _support(space, domain, [term.where for term in terms])
    build = build.at(points)
    total: Access | None = None
    for term in terms:
        access = _by_cases(build, space, term)
        total = access if total is None else build.add(total, access)
    masks = {term.mask for term in terms}
    assert total is not None
    selected = len(masks) > 1 or any(term.selected for term in terms)
    return Adjoint(total, points, masks.pop() if len(masks) == 1 else None, selected)


def _support(space: Space, domain: Domain, wheres: Sequence[Cond]) -> Domain:
    """The points where some condition holds."""
    if TRUE in wheres:
        return domain
    return normal_form(Domain(domain.dims, domain.ranges, conj(domain.where, disj(*wheres))), space)


def _by_cases(build: GraphBuilder, space: Space, term: Contribution) -> Access:
    """A term at every point of the domain of `build`: one case alone where it always holds, else a merge with zeros."""
    from tempo_ir.index import isl

    cases = list(term.cases)
    if len(cases) == 1 and isl.prove(cases[0][0], space, build.domain):
        return cases[0][1]
    rest = negate(cases[0][0]) if len(cases) == 1 else TRUE
    if not isl.prove(term.where, space, build.domain):
        cases.append((rest, zeros_like(build, cases[0][1])))
    return build.insert(MergeOp(*cases, domain=build.domain))


def completed(build: GraphBuilder, space: Space, adjoint: Adjoint, result_type: Attribute, domain: Domain) -> Access:
    """The adjoint at every point of `domain` and in the full shape of `result_type`."""
    from tempo_ir.index import isl

    shape = shape_of(result_type)
    access = build.at(adjoint.domain).broadcast(adjoint.access, shape)
    inside = adjoint.domain.condition(space)
    if isl.prove(inside, space, domain):
        return access
    where = isl.condition(isl.domain_set(space, adjoint.domain), isl.domain_set(space, domain))
    return guarded(build.at(domain), where, access)
