"""
Fusion of the loops of one level: which of them become one loop, and where statements go that could be in several.

Loops come in the order of dependences. Each is fused into the last loop that it reads, if some delay keeps every
value made before it is read; both directions of a loop stay open until something decides between them. Afterwards
single statements sink to the loop that reads them where no more has to be kept between loops for it: what a backward
loop needs of the forward one is computed there. At last recurrences are gathered into the loop that reads them: the two
moments of Adam do not read each other, and are kept for all iterations as long as they have loops of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tempo_ir.lowering.schedule.distances import Distances, Fixed
from tempo_ir.lowering.schedule.graph import Dependence, Graph
from tempo_ir.lowering.schedule.order import Direction, Node

DIRECTIONS: tuple[Direction, ...] = (1, -1)


@dataclass(frozen=True, slots=True)
class Choices:
    """
    What the dependences leave open.

    `fuse`: whether loops are fused at all. `apart`: whether loops whose iterations are independent keep away from
    those that carry values; their work can then be done for many iterations at once. `dims`: which dims come first
    (outermost).
    """

    fuse: bool = True
    apart: bool = False
    dims: tuple[str, ...] = ()


@dataclass(slots=True, unsafe_hash=True)  # never changed; `frozen` would make it four times as slow to make
class Edge:
    """The part of a dependence that the loops round it do not carry: where `fixed` holds for the distances."""

    dependence: Dependence
    fixed: Fixed = ()

    @property
    def consumer(self) -> int:
        """The statement that reads."""
        return self.dependence.consumer

    @property
    def producer(self) -> int:
        """The statement that is read."""
        return self.dependence.producer


@dataclass(slots=True)
class Cluster:
    """
    Statements of one loop, with shifts for each direction that is still possible.

    `parallel`: no iteration needs another, and nothing recurs inside of one; `movable`: no iteration needs another.
    Without a dim it is a leaf, or, with `nodes`, a component that was ordered in another way.
    """

    dim: str | None
    statements: list[int]
    forms: dict[Direction, dict[int, int]] = field(default_factory=dict[Direction, dict[int, int]])
    nodes: Sequence[Node] = ()
    parallel: bool = False
    movable: bool = False


def least_shifts(
    distances: Distances, statements: Sequence[int], edges: Sequence[Edge], dim: str, direction: Direction
) -> dict[int, int] | None:
    """The least shifts of statements of one loop for which no edge between them goes backwards; None if there are
    none."""
    constraints: list[tuple[int, int, int]] = []
    for edge in edges:
        distance = distances.of(edge.dependence.relation, dim, edge.fixed)
        if distance is None:
            continue
        least = distance.least(direction)
        if least is None:
            return None
        constraints.append((edge.producer, edge.consumer, -least))
    return longest_paths(statements, constraints)


def is_present(distances: Distances, edge: Edge, dim: str) -> bool:
    """Whether an edge reads only the same point of a dim."""
    distance = distances.of(edge.dependence.relation, dim, edge.fixed)
    return distance is None or (distance.lower == 0 and distance.upper == 0)


def longest_paths(nodes: Sequence[int], constraints: Sequence[tuple[int, int, int]]) -> dict[int, int] | None:
    """
    The least values from 0 up with `value[b] >= value[a] + gap` for each `(a, b, gap)`; None if there are none.

    Bellman and Ford; a cycle of the constraints that raised values last is one without a solution (Cherkassky and
    Goldberg, "Negative-cycle detection algorithms", 1999), so that the hopeless cases end early.
    """
    values = dict.fromkeys(nodes, 0)
    raised_by: dict[int, int] = {}
    while True:
        changed = False
        for before, after, gap in constraints:
            if values[before] + gap > values[after]:
                values[after] = values[before] + gap
                raised_by[after] = before
                changed = True
        if not changed:
            return values
        if _has_cycle(raised_by):
            return None


def _has_cycle(following: Mapping[int, int]) -> bool:
    """Whether a function that is defined on some numbers leads one of them back to itself."""
    seen: dict[int, int] = {}
    for start in following:
        node: int | None = start
        while node is not None and node not in seen:
            seen[node] = start
            node = following.get(node)
        if node is not None and seen[node] == start:
            return True
    return False


@dataclass(slots=True)
class Level:
    """
    The loops of one level while they are fused: every edge leads from a cluster to the same or a later one.

    `home` is the position of each statement's cluster; `alone` holds the statements that are in no recurrence along the
    dim of theirs.
    """

    graph: Graph
    distances: Distances
    choices: Choices
    reads: Mapping[int, Sequence[Edge]]
    clusters: list[Cluster] = field(default_factory=list[Cluster])
    home: dict[int, int] = field(default_factory=dict[int, int])
    alone: set[int] = field(default_factory=set[int])

    def place(self, item: Cluster) -> None:
        """Fuse a loop into the last one that it reads, else into a later one like it, or put it at the end."""
        inside = set(item.statements)
        if item.movable:
            self.alone |= inside
        edges = [e for s in item.statements for e in self.reads.get(s, ()) if e.producer not in inside]
        last = max((self.home[edge.producer] for edge in edges), default=-1)
        for position in self.targets(item, last):
            target = self.clusters[position]
            fused = self.fused(target, item, [edge for edge in edges if self.home[edge.producer] == position])
            if fused:
                target.forms = fused
                target.statements.extend(item.statements)
                self.home.update(dict.fromkeys(item.statements, position))
                return
        self.home.update(dict.fromkeys(item.statements, len(self.clusters)))
        self.clusters.append(item)

    def targets(self, item: Cluster, last: int) -> Iterator[int]:
        """The loops that an item may join, the best first: the last that it reads, later ones over the same points."""
        if not self.choices.fuse:
            return
        if last >= 0:
            yield last
        domain = self.graph.statements[item.statements[0]].domain
        for position in reversed(range(last + 1, len(self.clusters))):
            other = self.clusters[position]
            same = self.graph.statements[other.statements[0]].domain == domain
            if item.parallel and other.parallel and same:
                yield position

    def fused(self, target: Cluster, item: Cluster, edges: Sequence[Edge]) -> dict[Direction, dict[int, int]]:
        """The directions, with shifts, in which an item can join a loop whose values it reads."""
        if target.dim is None or target.dim != item.dim or not self.may_meet(target, item, edges):
            return {}
        forms: dict[Direction, dict[int, int]] = {}
        for direction in DIRECTIONS:
            if direction not in target.forms or direction not in item.forms:
                continue
            before, after = target.forms[direction], item.forms[direction]
            delay = self.delay(edges, target.dim, direction, before, after)
            if delay is not None:
                forms[direction] = before | {number: shift + delay for number, shift in after.items()}
        return forms

    def gather(self) -> None:
        """Fuse loops that carry values into the first one that reads them, the last loops first."""
        if not self.choices.fuse:
            return
        readers: dict[int, list[int]] = {}
        for reader, edges in self.reads.items():
            for edge in edges if reader in self.home else ():
                readers.setdefault(edge.producer, []).append(reader)
        for position, cluster in reversed(list(enumerate(self.clusters))):
            if cluster.dim is None or set(cluster.statements) <= self.alone:
                continue
            later = {self.home[reader] for number in cluster.statements for reader in readers.get(number, ())}
            first = min(later - {position}, default=position)
            target = self.clusters[first]
            edges = [e for s in target.statements for e in self.reads.get(s, ()) if self.home[e.producer] == position]
            if first != position and (fused := self.fused(cluster, target, edges)):
                target.forms = fused
                target.statements = [*cluster.statements, *target.statements]
                self.home.update(dict.fromkeys(cluster.statements, first))
                cluster.statements = []

    def may_meet(self, first: Cluster, second: Cluster, edges: Sequence[Edge]) -> bool:
        """Whether fusing keeps independent iterations independent, where that is asked for."""
        if not self.choices.apart:
            return True
        if first.parallel != second.parallel or first.dim is None:
            return False
        return not first.parallel or all(is_present(self.distances, edge, first.dim) for edge in edges)

    def delay(
        self,
        edges: Sequence[Edge],
        dim: str,
        direction: Direction,
        before: Mapping[int, int],
        after: Mapping[int, int],
    ) -> int | None:
        """By how many iterations a loop must follow another that it is fused with; None if no number will do."""
        delay = 0
        for edge in edges:
            distance = self.distances.of(edge.dependence.relation, dim, edge.fixed)
            if distance is None:
                continue
            least = distance.least(direction)
            if least is None:
                return None
            delay = max(delay, before[edge.producer] - least - after[edge.consumer])
        return delay
