"""How far ahead of the points of a dim what an op reads lies: whether it may run in the loop that makes what it reads.

`ret[t]`, a sum over `r[t:min(t + 8, T)]`, can be had 7 steps after `r[t]`, and so can all that is made of it at t: one
loop makes both, and 8 rows are kept. A sum over `r[t:T]`, or `ret[t] = r[t] + ret[t + 1]`, has to wait for the last
step, which may be any number of steps ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import inf

from tempo_ir.dialects.sdg import GradOp, MergeOp, SdgOp, domain_of
from tempo_ir.dialects.sdg.reads import read_domain
from tempo_ir.graphs import reachable
from tempo_ir.index import Const, Domain, Expr, Slice, Space, Sym, free_symbols
from tempo_ir.passes.recurrences.accumulations import accumulation_of, outside_readers
from tempo_ir.passes.utilities import is_slice
from tempo_ir.passes.vectorize.recurrence import Edge, cycles_along, distance_sign, edges_of


class Lookahead:
    """How many steps of a dim after its own each op can be had, `inf` where that is no fixed number.

    Only what is read within one step of the outer dims counts: what comes from an earlier one is there.
    """

    def __init__(self, ops: Sequence[SdgOp], dim: str, space: Space):
        self.dim, self.space = dim, space
        self.steps: dict[SdgOp, float] = dict.fromkeys(ops, 0)
        self.sources: dict[SdgOp, list[tuple[SdgOp, float]]] = {op: [] for op in ops}
        self.readers: dict[SdgOp, list[SdgOp]] = {op: [] for op in ops}
        for edge in edges_of(ops):
            if not self._is_earlier(edge):
                self.sources[edge.reader].append((edge.producer, self._distance(edge)))
                self.readers[edge.producer].append(edge.reader)
        self._relax()

    def _is_earlier(self, edge: Edge) -> bool:
        names = self.space.names
        outer = names[: names.index(self.dim)]
        return any(distance_sign(edge, name, self.space, forward=True) == 1 for name in outer)

    def _distance(self, edge: Edge) -> float:
        """How many steps after the reader's point the last point that it reads lies."""
        producer = edge.producer.domain.dims
        if isinstance(edge.reader, GradOp):
            return inf
        if self.dim not in producer or not edge.reader.accesses:
            return 0
        entry = edge.reader.accesses[edge.number].index[producer.index(self.dim)]
        last = entry.stop - 1 if isinstance(entry, Slice) else entry
        if self.dim in edge.reader.domain.dims:
            last = last - Sym(self.dim)
        return greatest(last, self.space, edge.domain)

    def _relax(self) -> None:
        """Longest paths (Bellman-Ford); what is still later after as many rounds as there are ops waits for the end."""
        waiting = list(self.steps)
        rounds = 0
        while waiting:
            rounds += 1
            later = [op for op in waiting if self._is_later(op)]
            if rounds > len(self.steps):
                self.steps.update(dict.fromkeys(later, inf))
            waiting = list(dict.fromkeys(reader for op in later for reader in self.readers[op]))

    def _is_later(self, op: SdgOp) -> bool:
        found = max((self.steps[source] + distance for source, distance in self.sources[op]), default=0)
        found = max(found, 0)
        if found <= self.steps[op]:
            return False
        self.steps[op] = found
        return True

    def within(self, ops: Iterable[SdgOp]) -> dict[SdgOp, None]:
        """The ops and all that they are made of, within a step of the outer dims."""
        return reachable(ops, lambda op: [source for source, _ in self.sources[op]])


def looped(ops: Sequence[SdgOp], dim: str, space: Space) -> dict[SdgOp, None]:
    """The ops that recur along a dim, other than those that accumulate alone: for them there is a loop anyway."""
    return {op: None for group in _recurrences(ops, dim, space) for op in group}


def falling(ops: Sequence[SdgOp], dim: str, space: Space) -> dict[SdgOp, None]:
    """Those of the `looped` ops that recur from later points of a dim to earlier ones, as gradients do."""
    found: dict[SdgOp, None] = {}
    outer = space.names[: space.names.index(dim)]
    for group in _recurrences(ops, dim, space):
        members = set(group)
        edges = [edge for edge in edges_of(group) if edge.producer in members]
        inside = [e for e in edges if all(distance_sign(e, name, space, forward=True) != 1 for name in outer)]
        signs = {distance_sign(edge, dim, space, forward=False) for edge in inside}
        if signs <= {0, 1} and 1 in signs:
            found.update(dict.fromkeys(group))
    return found


def _recurrences(ops: Sequence[SdgOp], dim: str, space: Space) -> Iterator[list[SdgOp]]:
    """The groups of ops that recur along a dim, and do more than accumulate."""
    alone: set[SdgOp] = set()
    for merge in ops:
        found = accumulation_of(merge) if isinstance(merge, MergeOp) else None
        if found is not None:
            alone |= {found.merge, found.step}
    return (group for group, along in cycles_along(ops, dim, space) if along and not alone.issuperset(group))


class Falling:
    """What is made of recurrences from later to earlier points of a dim, and may run in the loop that makes them."""

    def __init__(self, ops: Sequence[SdgOp], ahead: Lookahead):
        self.ahead = ahead
        self.loop = falling(ops, ahead.dim, ahead.space)
        self.after = reachable(self.loop, ahead.readers.__getitem__)

    def rows(self, ops: Iterable[SdgOp]) -> dict[SdgOp, None]:
        """What of it some ops are made of."""
        return {op: None for op in self.ahead.within(ops) if op in self.after}

    def serves(self, op: SdgOp) -> bool:
        """Whether an op at a point reads nothing of earlier points of what the loop makes, nor does what it is made
        of: then it can be had as the loop goes down."""
        return all(self._is_there(reader) for reader in self.rows([op]) if reader is not op)

    def _is_there(self, reader: SdgOp) -> bool:
        dim = self.ahead.dim
        for number, access in enumerate(reader.accesses):
            producer = access.value.owner
            if not isinstance(producer, SdgOp) or producer not in self.after or dim not in producer.domain.dims:
                continue
            entry = access.index[producer.domain.dims.index(dim)]
            first = entry.start if isinstance(entry, Slice) else entry
            if dim not in reader.domain.dims:
                return False
            if greatest(Sym(dim) - first, self.ahead.space, read_domain(reader, number)) > 0:
                return False
        return True


def row_by_row(ops: Sequence[SdgOp], dim: str, space: Space) -> dict[SdgOp, None]:
    """What is made, at the points of a dim, for sums over it that run in the loop that makes what they are sums of: a
    recurrence, or where there is none that of the sums themselves."""
    found = [accumulation_of(op) for op in ops if isinstance(op, MergeOp)]
    sums = [each for each in found if each is not None and each.walk.dim == dim]
    sums = [each for each in sums if is_read_last(each.merge, each.step, dim)]
    if not sums:
        return {}
    ahead = Lookahead(ops, dim, space)
    after = reachable(looped(ops, dim, space), ahead.readers.__getitem__)
    upwards = [each.merge for each in sums if each.walk.offset < 0 and ahead.steps[each.merge] < inf]
    rows = [op for op in ahead.within([op for op in upwards if op in after]) if op in after]
    rows += ahead.within([op for op in upwards if op not in after])
    if downwards := [each.merge for each in sums if each.walk.offset > 0]:
        rows += Falling(ops, ahead).rows(downwards)
    return {op: None for op in rows if dim in op.domain.dims}


def is_read_last(merge: MergeOp, step: SdgOp, dim: str) -> bool:
    """Whether whoever reads an accumulation, but itself, reads it at one point of a dim."""
    found = accumulation_of(merge)
    assert found is not None
    for user, number in [reader for group in outside_readers(found) for reader in group]:
        access = user.accesses[number]
        entry = access.index[domain_of(access.value).dims.index(dim)]
        if is_slice(entry) or dim in free_symbols(entry):
            return False
    return True


@lru_cache(maxsize=4096)
def greatest(value: Expr, space: Space, domain: Domain) -> float:
    """The greatest value of an expression at the points of a domain and for all bounds; `inf` where there is none, or
    none is known."""
    if isinstance(value, Const):
        return value.value
    from tempo_ir.index import isl

    try:
        values = isl.pw_aff(space, domain.dims, value).intersect_domain(isl.domain_set(space, domain))
    except isl.NotAffine:
        return inf
    found = values.max_val()
    return found.to_python() if found.is_int() else inf
