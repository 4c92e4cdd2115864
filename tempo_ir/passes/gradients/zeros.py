"""Zeros where a gradient has no value."""

from __future__ import annotations

from tempo_ir.dialects.sdg import Access, MergeOp
from tempo_ir.dialects.types import Shape, element, shape_of
from tempo_ir.index import TRUE, Cond, negate
from tempo_ir.passes.building import GraphBuilder, symbols_of


def guarded(build: GraphBuilder, where: Cond, access: Access) -> Access:
    """`access` where the condition holds, zeros elsewhere, if anywhere, in the domain of `build`."""
    cases = [(where, access)]
    if where != TRUE:
        cases.append((negate(where), zeros_like(build, access)))
    return build.insert(MergeOp(*cases, domain=build.domain))


def zeros_like(build: GraphBuilder, access: Access) -> Access:
    """Zeros of the type that is read."""
    return zeros(build, shape_of(access.tensor), access)


def zeros(build: GraphBuilder, shape: Shape, like: Access) -> Access:
    """Zeros of a shape, with the element type of `like`."""
    dims = symbols_of(shape) & set(build.domain.dims)
    if dims:
        return build.broadcast(build.number_like(0.0, like), shape)
    return build.constant(0.0, element(like.type), shape)
