"""Which ops recur along a dim: a value at one point depends on that at another, so they cannot run at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tempo_ir.dialects.sdg import HostOp, SdgOp
from tempo_ir.dialects.sdg.reads import read_domain
from tempo_ir.graphs import is_cyclic, strongly_connected
from tempo_ir.index import Compare, Const, Domain, Entry, Expr, Slice, Space, Sym
from tempo_ir.passes.vectorize.calls import Chain, chains

NO_CHAINS: Mapping[HostOp, Chain] = MappingProxyType({})


@dataclass(slots=True, unsafe_hash=True)  # never changed; `frozen` would make it four times as slow to make
class Edge:
    """A read: operand `number` of `reader`, made by `producer`, at the points of `domain`."""

    producer: SdgOp
    reader: SdgOp
    number: int
    domain: Domain

    def entry(self, dim: str) -> Entry | None:
        """Where the producer is read along a dim; None where producer or reader does not vary over it."""
        producer = self.producer.domain.dims
        if dim not in producer or dim not in self.reader.domain.dims:
            return None
        accesses = self.reader.accesses
        if not accesses:
            return None
        return accesses[self.number].index[producer.index(dim)]


def edges_of(ops: Sequence[SdgOp]) -> list[Edge]:
    """All reads among ops."""
    inside = set(ops)
    found: list[Edge] = []
    for op in ops:
        for number, operand in enumerate(op.operands):
            producer = operand.owner
            if isinstance(producer, SdgOp) and producer in inside:
                found.append(Edge(producer, op, number, read_domain(op, number)))
    return found


def cycles_along(ops: Sequence[SdgOp], dim: str, space: Space) -> Iterator[tuple[list[SdgOp], bool]]:
    """The groups of ops that depend on each other within one step of every outer recurrence, and whether along `dim`.

    A cycle that an outer dim carries (each turn goes to an earlier step of `i`, or each to a later one) is cut there:
    within a step of `i` it is no cycle. A group of which `False` is said reads itself at the current point of `dim`
    only: it may be vectorised as a whole, or not at all. Ops in no group depend on themselves in no way. That a host
    call waits for that of the point before is no recurrence where one call can make them all.
    """
    for component, edges in groups_along(ops, dim, space, chains(ops, dim, space)):
        yield component, any(edge.entry(dim) != Sym(dim) for edge in edges)


def groups_along(
    ops: Sequence[SdgOp], dim: str, space: Space, calls: Mapping[HostOp, Chain] = NO_CHAINS
) -> Iterator[tuple[list[SdgOp], list[Edge]]]:
    """The groups of `cycles_along`, each with the reads among its ops that no other dim carries; of `calls` none waits
    for the one before."""
    waits = {(chain.merge, chain.number) for chain in calls.values()}
    pending = [(list(ops), [edge for edge in edges_of(ops) if (edge.reader, edge.number) not in waits])]
    while pending:
        members, edges = pending.pop()
        for component in _cycles(members, edges):
            inside = set(component)
            own = [edge for edge in edges if edge.producer in inside and edge.reader in inside]
            left = _cut(component, own, dim, space)
            if left is None:
                yield component, own
            else:
                pending.append((component, left))


def _cycles(ops: Sequence[SdgOp], edges: Sequence[Edge]) -> list[list[SdgOp]]:
    """The groups of ops that depend on each other by some edges."""
    readers: dict[SdgOp, list[SdgOp]] = {op: [] for op in ops}
    for edge in edges:
        readers[edge.producer].append(edge.reader)
    components = strongly_connected(ops, readers.__getitem__)
    return [component for component in components if is_cyclic(component, readers.__getitem__)]


def _cut(component: Sequence[SdgOp], edges: Sequence[Edge], dim: str, space: Space) -> list[Edge] | None:
    """The edges of a component that no dim but `dim` carries; None where none carries any."""
    for name in space.names:
        if name == dim or any(name not in op.domain.dims for op in component):
            continue
        for forward in (True, False):
            signs = [distance_sign(edge, name, space, forward=forward) for edge in edges]
            if None not in signs and 1 in signs:
                return [edge for edge, sign in zip(edges, signs, strict=True) if sign == 0]
    return None


def distance_sign(edge: Edge, name: str, space: Space, *, forward: bool) -> int | None:
    """1 where a read is always of an earlier (or, if not `forward`, later) point of a dim, 0 where of the same or so.

    None where it may be of the other side.
    """
    entry = edge.entry(name)
    if entry is None:
        return None
    last = (entry.stop - 1 if forward else entry.start) if isinstance(entry, Slice) else entry
    if last == Sym(name):
        return 0
    if _always(last, name, edge.domain, space, forward=forward, strictly=True):
        return 1
    return 0 if _always(last, name, edge.domain, space, forward=forward, strictly=False) else None


def _always(value: Expr, name: str, domain: Domain, space: Space, *, forward: bool, strictly: bool) -> bool:
    """Whether an expression is before (or after) the current point of a dim, or at it, at every point of a domain."""
    distance = Sym(name) - value if forward else value - Sym(name)
    least = 1 if strictly else 0
    if isinstance(distance, Const):
        return distance.value >= least
    from tempo_ir.index import isl

    return isl.prove(Compare(">=", distance, Const(least)), space, domain)


def recurrent_ops(ops: Sequence[SdgOp], dim: str, space: Space) -> tuple[set[SdgOp], list[list[SdgOp]]]:
    """The ops that recur along a dim, and the groups that must be vectorised together or not at all."""
    recurrent: set[SdgOp] = set()
    together: list[list[SdgOp]] = []
    for component, along in cycles_along(ops, dim, space):
        if along:
            recurrent.update(component)
        else:
            together.append(component)
    return recurrent, together
