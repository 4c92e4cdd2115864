"""
The scheduler: loops over named dims, found one strongly connected component at a time.

At each level every component of the statements takes a dim that all of them have, a direction, and a shift per
statement such that no dependence goes backwards (a system of difference constraints); loops of one dim are fused where
shifts allow it, statements sink to the loops that consume them where that keeps less, and what the loops do not carry
is ordered inside them in the same way. Components are visited in the stable order of `components`, so that equal
layers stay equal.

After Allen and Kennedy, "Automatic translation of FORTRAN programs to vector form" (1987); shifts as in Kelly and
Pugh, "A unifying framework for iteration reordering transformations" (1995). isl's own scheduler is exponential in the
residual connections of a transformer; this one is near linear, and finds no skewed loops, which are left to isl
(`fallback`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tempo_ir.lowering.schedule.components import components
from tempo_ir.lowering.schedule.distances import Distances
from tempo_ir.lowering.schedule.fusion import DIRECTIONS, Choices, Cluster, Edge, Level, is_present, least_shifts
from tempo_ir.lowering.schedule.graph import Dependence, Ending, Graph
from tempo_ir.lowering.schedule.order import Direction, Leaf, Loop, Node
from tempo_ir.lowering.schedule.sinking import sink


class UnorderedError(Exception):
    """
    No dim and direction orders the statements of a component; `statements` and `dependences` are what is left of
    it.
    """

    def __init__(self, statements: Sequence[int], dependences: Sequence[Dependence]):
        super().__init__(f"no loop over a named dim orders statements {list(statements)}")
        self.statements = statements
        self.dependences = dependences


LastResort: TypeAlias = Callable[[Graph, Sequence[int], Sequence[Edge]], "Sequence[Node] | None"]
"""Another way to order a component inside the loops round it, or None."""


def schedule(graph: Graph, distances: Distances, choices: Choices, last_resort: LastResort | None = None) -> list[Node]:
    """
    The order of all statements of the graph.

    Raises UnorderedError for a component that neither a named dim nor the last resort orders.
    """
    scheduler = _Scheduler(graph, distances, choices, last_resort)
    everything = [statement.number for statement in graph.statements]
    edges = [Edge(dependence) for dependence in graph.dependences]
    if graph.ending is not None:
        return scheduler.around(graph.ending, everything, edges)
    return scheduler.arrange(everything, edges, frozenset())


@dataclass(frozen=True, slots=True)
class _Scheduler:
    graph: Graph
    distances: Distances
    choices: Choices
    last_resort: LastResort | None

    def around(self, ending: Ending, statements: Sequence[int], edges: Sequence[Edge]) -> list[Node]:
        """The order of all statements round a loop that data ends: what it needs, the loop, and what is left.

        The marks keep isl from taking statements of its first or last iterations out of the loop.
        """
        inside = [number for number in statements if number in ending.shifts and number not in ending.marks]
        before = [number for number in statements if number in ending.before]
        after = [number for number in statements if number not in ending.shifts and number not in ending.before]

        def among(numbers: Sequence[int]) -> list[Edge]:
            members = set(numbers)
            return [edge for edge in edges if edge.consumer in members and edge.producer in members]

        left = [rest for edge in among(inside) if (rest := self.left_by(ending, edge)) is not None]
        begin, end = map(Leaf, ending.marks)
        body = [begin, *self.arrange(inside, left, frozenset({ending.dim})), end]
        loop = Loop(ending.dim, 1, ending.shifts, body, ending.still, ending.bound)
        nothing = frozenset[str]()
        return [*self.arrange(before, among(before), nothing), loop, *self.arrange(after, among(after), nothing)]

    def left_by(self, ending: Ending, edge: Edge) -> Edge | None:
        """The part of an edge that stays inside one iteration of the loop that data ends."""
        still = {edge.consumer, edge.producer} & ending.still
        if not still:
            return self.not_carried(edge, ending.dim, 1, ending.shifts)
        later = ending.shifts[edge.consumer] > ending.shifts[edge.producer]
        return None if len(still) == 2 and later else edge

    def arrange(self, statements: Sequence[int], edges: Sequence[Edge], used: frozenset[str]) -> list[Node]:
        """The order of some statements inside loops over the used dims, given what those loops do not carry."""
        successors: dict[int, list[int]] = {}
        reads: dict[int, list[Edge]] = {}
        for edge in edges:
            successors.setdefault(edge.producer, []).append(edge.consumer)
            reads.setdefault(edge.consumer, []).append(edge)
        clusters = [self.cluster(component, reads, used) for component in components(statements, successors)]
        if any(cluster.dim is not None for cluster in clusters):
            clusters = self.fused(clusters, reads)
        return [node for cluster in clusters for node in self.nodes(cluster, reads, used)]

    def fused(self, clusters: Sequence[Cluster], reads: Mapping[int, Sequence[Edge]]) -> list[Cluster]:
        """The loops of a level, fused, with statements in those that read them."""
        level = Level(self.graph, self.distances, self.choices, reads)
        for cluster in clusters:
            level.place(cluster)
        if self.choices.fuse:
            sink(level)
            level.gather()
        return [cluster for cluster in level.clusters if cluster.statements]

    def cluster(self, component: list[int], reads: Mapping[int, Sequence[Edge]], used: frozenset[str]) -> Cluster:
        """The loop of one component over the first dim that orders it."""
        inside = set(component)
        edges = [edge for number in component for edge in reads.get(number, ()) if edge.producer in inside]
        common = self.free_dims(component, used)
        if not common and not edges:
            return Cluster(None, component)
        for dim in common:
            forms: dict[Direction, dict[int, int]] = {}
            for direction in DIRECTIONS:
                if (shifts := least_shifts(self.distances, component, edges, dim, direction)) is not None:
                    forms[direction] = shifts
            if forms:
                stays = all(is_present(self.distances, edge, dim) for edge in edges)
                return Cluster(dim, component, forms, parallel=not edges, movable=stays)
        nodes = self.last_resort(self.graph, component, edges) if self.last_resort is not None else None
        if nodes is None:
            raise UnorderedError(component, [edge.dependence for edge in edges])
        return Cluster(None, component, nodes=nodes)

    def free_dims(self, component: Sequence[int], used: frozenset[str]) -> list[str]:
        """The dims that all statements have and no loop round them uses, outermost first."""
        common = set(self.graph.statements[component[0]].dims) - used
        for number in component[1:]:
            common &= set(self.graph.statements[number].dims)
        return [dim for dim in self.choices.dims or self.graph.space.names if dim in common]

    def nodes(self, cluster: Cluster, reads: Mapping[int, Sequence[Edge]], used: frozenset[str]) -> Sequence[Node]:
        """The loop of a cluster, upwards if it may, with its body ordered; or a leaf; or what the last resort found."""
        dim = cluster.dim
        if dim is None:
            return cluster.nodes or [Leaf(cluster.statements[0])]
        direction: Direction = 1 if 1 in cluster.forms else -1
        shifts = cluster.forms[direction]
        left: list[Edge] = []
        for number in cluster.statements:
            for edge in reads.get(number, ()):
                if edge.producer in shifts and (rest := self.not_carried(edge, dim, direction, shifts)) is not None:
                    left.append(rest)
        return [Loop(dim, direction, shifts, self.arrange(cluster.statements, left, used | {dim}))]

    def not_carried(self, edge: Edge, dim: str, direction: Direction, shifts: Mapping[int, int]) -> Edge | None:
        """The part of an edge that stays inside one iteration of a loop."""
        gap = shifts[edge.producer] - shifts[edge.consumer]
        distance = self.distances.of(edge.dependence.relation, dim, edge.fixed)
        if distance is None or distance.exceeds(gap, direction):
            return None
        if distance.lower == distance.upper:
            return edge
        return Edge(edge.dependence, (*edge.fixed, (dim, gap * direction)))
