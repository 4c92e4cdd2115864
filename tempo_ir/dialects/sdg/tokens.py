"""Tokens of host objects: the calls on one object follow each other in one order, at every point.

A token is the state of an object between two calls. It is made by one op and consumed once: two calls after the same
token would have no order, and a call after the token of another object would say nothing about its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.ir import SSAValue

from tempo_ir.dialects.sdg.attributes import TokenType
from tempo_ir.dialects.sdg.base import OpError, SdgOp
from tempo_ir.dialects.sdg.locations import op_text, value_text
from tempo_ir.dialects.sdg.reads import read_domain
from tempo_ir.dialects.sdg.structure import HostOp, HostStateOp, MergeOp
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import Index


def check_tokens(ops: Sequence[SdgOp], space: Space) -> None:
    """Each token is consumed once, by a call on its own object; raises OpError otherwise."""
    for op in ops:
        if isinstance(op, HostOp):
            check_object(op)
        for result in op.results:
            if isinstance(result.type, TokenType):
                check_single_use(result, op.domain, space)


def check_object(call: HostOp) -> None:
    """The token that a call waits for is of the object that it calls; raises OpError otherwise."""
    objects: set[str] = set()
    seen: set[SSAValue] = set()
    waiting = [call.token]
    while waiting:
        token = waiting.pop()
        owner = token.owner
        if token in seen:
            continue
        seen.add(token)
        if isinstance(owner, MergeOp):
            waiting.extend(owner.operands)
        elif isinstance(owner, HostOp | HostStateOp):
            objects.add(owner.object)
    if others := sorted(objects - {call.object}):
        raise OpError(f"a call of @{call.object} waits for the token {value_text(call.token)} of @{others[0]}", call)


def check_single_use(token: SSAValue, domain: Domain, space: Space) -> None:
    """No point of a token is read twice; raises OpError for the second reader."""
    reads = [(use.operation, use.index) for use in token.uses]
    readers = [(op, number, op.accesses[number].index) for op, number in reads if isinstance(op, SdgOp)]
    for position, (op, number, index) in enumerate(readers):
        consumer = read_domain(op, number)
        if (point := read_twice(space, domain, consumer, index)) is not None:
            raise OpError(f"{value_text(token)}{point}: the calls that follow it would have no order", op)
        for other, other_number, other_index in readers[:position]:
            earlier = read_domain(other, other_number)
            if (point := read_by_both(space, domain, (consumer, index), (earlier, other_index))) is not None:
                raise OpError(
                    f"{value_text(token)} is also consumed by {op_text(other)}{point}: the calls would have no order; "
                    "let one of them wait for the token that the other makes",
                    op,
                )


@lru_cache(maxsize=1024)
def read_twice(space: Space, producer: Domain, consumer: Domain, index: Index) -> str | None:
    """That one read reads some point from two points, as text; None if it does not."""
    from tempo_ir.index import isl

    if isl.access_map(space, consumer, index, producer).is_injective():
        return None
    return " is consumed at several points by one op"


@lru_cache(maxsize=1024)
def read_by_both(
    space: Space, producer: Domain, first: tuple[Domain, Index], second: tuple[Domain, Index]
) -> str | None:
    """A point that two reads both read, as text; None if there is none."""
    from tempo_ir.index import isl

    images = [isl.access_map(space, consumer, index, producer).range() for consumer, index in (first, second)]
    both = images[0].intersect(images[1]).intersect(isl.domain_set(space, producer))
    return None if both.is_empty() else f" at {isl.counterexample(both)}"
