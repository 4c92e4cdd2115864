"""Gradients through calls of host functions that say how: the method that a call names as its `gradient`.

Before, with `%y, %e1 = sdg.host @sim::@step(%x[t]) after %e[t] gradient @back in (t)` and the gradient `%gy` of `%y`:

    %b = sdg.merge {t < T - 1 : %b1[t + 1], true : %e1[T - 1]} in (t)
    %gx, %b1 = sdg.host @sim::@back(%x[t], %gy[t]) after %b[t] in (t)

The calls that carry gradients back run once per point, after the calls of the object, in their reverse order. Where a
parameter is trained over a dim, each of its steps has calls of its own, before the calls of the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from xdsl.ir import SSAValue

from tempo_ir.dialects.sdg import Access, AccessOp, HostOp, HostStateOp, MergeOp, TokenType, domain_of
from tempo_ir.dialects.types import element, is_float
from tempo_ir.graphs import reachable
from tempo_ir.index import TRUE, Cond, Const, Domain, Expr, Index, Space, Sym, compare, free_symbols, substitute
from tempo_ir.passes.building import GraphBuilder, normal_form
from tempo_ir.passes.utilities import identity, refuse


@dataclass(frozen=True)
class TokenRead:
    """The read of a token by an op."""

    op: AccessOp
    number: int

    @property
    def access(self) -> Access:
        """What it reads."""
        return self.op.accesses[self.number]


@dataclass(frozen=True)
class HostGradient:
    """The calls that carry gradients back through the calls of `op`; `steps` are the dims of training."""

    op: HostOp
    build: GraphBuilder
    space: Space
    steps: frozenset[str]

    def call(self, cotangents: Sequence[Access]) -> dict[int, Access]:
        """Insert the calls; the gradients of the float arguments by number, at the current point.

        Raises PassFailedException where the calls have no reverse order that isl can say, or where one call makes those
        at several points.
        """
        op, domain = self.op, self._box()
        if op.over.dims:
            self._refuse(
                f"one call makes those at all points of {op.over.dims[0]}, of which the method takes one: run "
                "sdg-autodiff before sdg-vectorize"
            )
        outer = [dim for dim in domain.dims if dim in self.steps]
        if outer != list(domain.dims[: len(outer)]):
            self._refuse(f"a parameter is trained over {outer[0]}, inside of {domain.dims[0]}")
        numbers = [n for n, value in enumerate(op.arguments) if is_float(element(value.type))]
        arguments = op.accesses[:-1]
        assert op.gradient is not None
        last, readers = self._before(outer)
        merge = MergeOp(domain=domain, result_type=TokenType())
        back = HostOp(
            op.object,
            op.gradient,
            *arguments,
            *cotangents,
            after=Access(merge.result, identity(op)),
            returns=[arguments[number].tensor for number in numbers],
            domain=domain,
        )
        for one in (merge, back):
            self.build.at(domain, op.location).insert(one)
        merge.set_cases([*self._following(back, domain, len(outer)), (TRUE, last)])
        for reader in readers:
            index = (*reader.access.index[: len(outer)], *self._first(domain, len(outer)))
            reader.op.with_access(reader.number, back.next_token, index)
        return {n: Access(result, identity(op)) for n, result in zip(numbers, back.outputs, strict=True)}

    def _box(self) -> Domain:
        """The points of the calls, as ranges."""
        domain = normal_form(self.op.domain, self.space)
        inner = [dim for dim in domain.dims if dim not in self.steps]
        if domain.where != TRUE or any(
            (free_symbols(lo) | free_symbols(hi)) & set(inner) for _, lo, hi in domain.ranges
        ):
            self._refuse(f"it is called in {domain}, whose points are no product of ranges")
        return domain

    def _range(self, domain: Domain, dim: str) -> tuple[Expr, Expr]:
        """First point and end of a dim."""
        ranges = {name: (first, end) for name, first, end in domain.ranges}
        return ranges.get(dim, (Const(0), self.space.bound(dim)))

    def _first(self, domain: Domain, outer: int) -> list[Expr]:
        return [self._range(domain, dim)[0] for dim in domain.dims[outer:]]

    def _following(self, back: HostOp, domain: Domain, outer: int) -> list[tuple[Cond, Access]]:
        """Which call back comes before: that of the next point, inner dims first."""
        cases: list[tuple[Cond, Access]] = []
        dims, first = domain.dims, self._first(domain, outer)
        for position in reversed(range(outer, len(dims))):
            here = Sym(dims[position])
            _, end = self._range(domain, dims[position])
            index = (*map(Sym, dims[:position]), here + 1, *first[position + 1 - outer :])
            cases.append((compare("<", here, end - 1), Access(back.next_token, index)))
        return cases

    def _before(self, outer: Sequence[str]) -> tuple[Access, list[TokenRead]]:
        """The token of the last call before the first call back, and who read it so far: the next step of training."""
        reads = self._token_reads()
        if not outer:
            return self._end(reads), []
        crossing = [read for read in reads if _crosses(read.access, outer)]
        ends = {(read.access.value, read.access.index[len(outer) :]) for read in crossing}
        if len(ends) != 1:
            self._refuse(f"the calls of @{self.op.object} in a step over {', '.join(outer)} have no one last call")
        ((value, inner),) = ends
        return Access(value, (*map(Sym, outer), *inner)), crossing

    def _token_reads(self) -> list[TokenRead]:
        """Every read of a token of the object."""
        block = self.op.parent
        assert block is not None
        found: list[TokenRead] = []
        for op in block.ops:
            if isinstance(op, AccessOp):
                numbers = [n for n, value in enumerate(op.operands) if isinstance(value.type, TokenType)]
                found += [TokenRead(op, n) for n in numbers if _object_of(op.operands[n]) == self.op.object]
        return found

    def _end(self, reads: Sequence[TokenRead]) -> Access:
        """The token that nothing waits for: that of the last call of the object."""
        from tempo_ir.dialects.sdg.reads import read_domain
        from tempo_ir.index import isl

        found: list[Access] = []
        calls = dict.fromkeys(read.op for read in reads if isinstance(read.op, HostOp))
        for call in calls:
            left = isl.domain_set(self.space, call.domain)
            for read in reads:
                if read.access.value is call.next_token:
                    consumer = read_domain(read.op, read.number)
                    left = left.subtract(isl.access_map(self.space, consumer, read.access.index, call.domain).range())
            if not left.is_empty():
                found.append(Access(call.next_token, self._last(call.domain)))
        if len(found) != 1:
            self._refuse(f"the calls of @{self.op.object} have no one last call")
        return found[0]

    def _last(self, domain: Domain) -> Index:
        """The last point of a domain."""
        found: dict[str, Expr] = {}
        for dim in domain.dims:
            found[dim] = substitute(self._range(domain, dim)[1] - 1, found)
        return tuple(found.values())

    def _refuse(self, reason: str) -> NoReturn:
        refuse(
            self.op,
            f"the calls of @{self.op.object}::@{self.op.gradient}, which carry gradients back, have no order: {reason}"
            "; call it in a loop over whole dims, on an object of its own, or put stop_gradient round its arguments",
        )


def _crosses(access: Access, outer: Sequence[str]) -> bool:
    """Whether a token is read at another step of the outer dims than the current one."""
    dims = domain_of(access.value).dims
    return list(dims[: len(outer)]) == list(outer) and access.index[: len(outer)] != tuple(map(Sym, outer))


def _object_of(token: SSAValue) -> str | None:
    """The object that a token belongs to."""
    makers = reachable([token], lambda value: value.owner.operands if isinstance(value.owner, MergeOp) else ())
    owners = (value.owner for value in makers)
    return next((owner.object for owner in owners if isinstance(owner, HostOp | HostStateOp)), None)
