"""How a range of rows differs between neighbouring points of a dim: by one row at one end, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from tempo_ir.dialects.sdg import SdgOp
from tempo_ir.dialects.sdg.reads import read_problem
from tempo_ir.index import (
    TRUE,
    Cond,
    Const,
    Domain,
    Expr,
    Index,
    Slice,
    Space,
    Sym,
    compare,
    conj,
    free_symbols,
    substitute,
)
from tempo_ir.passes.building import normal_form


@dataclass(frozen=True)
class Walk:
    """The points of a domain in order of a dim, upwards from the first or downwards from the last.

    `previous` is the point visited before: `t - 1` (`offset` -1) or `t + 1` (`offset` 1).
    """

    dim: str
    offset: int
    domain: Domain
    space: Space
    first: Expr
    end: Expr

    def before(self, value: Expr) -> Expr:
        """An expression at the previous point."""
        return substitute(value, {self.dim: Sym(self.dim) + self.offset})

    def before_index(self, index: Index) -> Index:
        """An index at the previous point."""
        return substitute(index, {self.dim: Sym(self.dim) + self.offset})

    @property
    def start(self) -> Expr:
        """Where the walk begins."""
        return self.first if self.offset < 0 else self.end - 1

    @property
    def starting(self) -> Domain:
        """The points without a previous one."""
        return self._part(self.start, self.start + 1)

    @property
    def continuing(self) -> Domain:
        """The points with a previous one."""
        return self._part(self.first + 1, self.end) if self.offset < 0 else self._part(self.first, self.end - 1)

    @property
    def starts(self) -> Cond:
        """Holds at the points without a previous one."""
        return compare("=", Sym(self.dim), self.start)

    @property
    def continues(self) -> Cond:
        """Holds at the points with a previous one."""
        return compare(">" if self.offset < 0 else "<", Sym(self.dim), self.start)

    def _part(self, first: Expr, end: Expr) -> Domain:
        return part(self.domain, self.dim, first, end, self.space)

    def fixed(self, value: Expr) -> bool:
        """Whether an expression is the same at each point as at the previous one."""
        from tempo_ir.index import isl

        return self.dim not in free_symbols(value) or isl.equal(value, self.before(value), self.space, self.continuing)


@lru_cache(maxsize=1024)
def part(domain: Domain, dim: str, first: Expr, end: Expr, space: Space) -> Domain:
    """The points of a domain within other bounds of one dim."""
    ranges = {name: (low, high) for name, low, high in domain.ranges}
    ranges[dim] = (first, end)
    ordered = tuple((name, *ranges[name]) for name in domain.dims if name in ranges)
    return normal_form(Domain(domain.dims, ordered, domain.where), space)


def walks(op: SdgOp, dims: Iterable[str]) -> Iterator[Walk]:
    """The ways to go through the points of an op, one at a time: along each of some dims, up and down.

    Along a dim whose points are one range, of more than one point, which the other dims do not depend on.
    """
    domain, space = op.domain, op.space
    for dim in reversed([name for name in domain.dims if name in set(dims)]):
        yield from walks_along(domain, dim, space)


@lru_cache(maxsize=1024)
def walks_along(domain: Domain, dim: str, space: Space) -> tuple[Walk, ...]:
    """`walks` along one dim."""
    from tempo_ir.index import isl

    others = [bound for name, *rest in domain.ranges if name != dim for bound in rest]
    if dim in free_symbols(domain.where) or any(dim in free_symbols(bound) for bound in others):
        return ()
    first, end = domain.lower(dim, space), domain.upper(dim, space)
    inside = conj(compare(">=", first, 0), compare("<=", end, space.bound(dim)))
    if not isl.prove(inside, space, domain) or isl.prove(compare("<=", end - first, 1), space, domain):
        return ()
    found = (Walk(dim, offset, domain, space, first, end) for offset in (-1, 1))
    return tuple(walk for walk in found if _has_previous(walk))


def _has_previous(walk: Walk) -> bool:
    here = tuple(map(Sym, walk.domain.dims))
    return read_problem(walk.space, walk.continuing, walk.before_index(here), walk.domain) is None


@dataclass(frozen=True)
class Growth:
    """An axis that has, at each point of a walk, the rows of the previous point and at most one more.

    `at_end`: the new row is the last one; else it is the first.
    """

    walk: Walk
    extent: Expr
    at_end: bool

    def keeps(self, rows: Slice) -> bool:
        """Whether a range of that extent keeps its rows from point to point, so that only one joins."""
        return rows.step == 1 and self.walk.fixed(rows.start if self.at_end else rows.stop)

    def joining(self, rows: Slice) -> Expr:
        """The row of a range that joins."""
        return rows.stop - 1 if self.at_end else rows.start

    @property
    def joins(self) -> Cond:
        """Where a row joins, of the points that have a previous one; `TRUE` where it does at each of them."""
        from tempo_ir.index import isl

        walk = self.walk
        cond = compare(">", self.extent, walk.before(self.extent))
        if isl.prove(cond, walk.space, walk.continuing):
            return TRUE
        points = isl.domain_set(walk.space, walk.continuing)
        return isl.condition(points.intersect(isl.condition_set(walk.space, walk.domain.dims, cond)), points)

    def rows_at_start(self) -> int | None:
        """How many rows there are where the walk begins: 0 or 1, None where it may be another number."""
        from tempo_ir.index import isl

        for count in (0, 1):
            if isl.equal(self.extent, Const(count), self.walk.space, self.walk.starting):
                return count
        return None


@lru_cache(maxsize=1024)
def growths(walk: Walk, extent: Expr) -> tuple[Growth, ...]:
    """How an axis of an extent may grow along a walk."""
    from tempo_ir.index import isl

    if walk.dim not in free_symbols(extent):
        return ()
    change = extent - walk.before(extent)
    one_row = conj(compare(">=", change, 0), compare("<=", change, 1))
    if not isl.prove(one_row, walk.space, walk.continuing) or walk.fixed(extent):
        return ()
    return Growth(walk, extent, at_end=True), Growth(walk, extent, at_end=False)
