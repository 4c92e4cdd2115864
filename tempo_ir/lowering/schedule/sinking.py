"""
Which loop computes what: statements that could be in several loops go where the least has to be kept between loops.

Before, every statement is in the first loop that it could be in. A forward loop then computes what only the backward
loop needs: `u = 1 - h * h` is kept for every step beside `h`. The loops of one dim are in a row; between each two of
them a minimum cut says which statements come before it: those that have to are held on their side, and a value that
is made before and read after costs the bytes of the rows that are read. Of equal cuts the latest is taken. The cuts of
one row are nested, so that together they say where each statement goes. A recurrence along other dims, inside of one
point of this one, moves as a whole: what is computed anew, block by block, for a backward loop over blocks runs there.

The graph of a cut is that of Jain et al., "Checkmate" (2020), for what to keep for a backward pass, without
recomputation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Literal, TypeAlias

from tempo_ir.graphs import minimum_cut
from tempo_ir.index.expr import Slice, free_symbols
from tempo_ir.lowering.schedule.fusion import DIRECTIONS, Cluster, Edge, Level, is_present, least_shifts

CutNode: TypeAlias = tuple[Literal["source", "sink", "made", "kept"], int, int]
"""What, of which statement, and of what is kept how many rows."""
SOURCE: CutNode = ("source", 0, 0)
SINK: CutNode = ("sink", 0, 0)


def sink(level: Level) -> None:
    """Move statements between the loops of each dim of a level, in place."""
    consumers: dict[int, list[Edge]] = {}
    for edges in level.reads.values():
        for edge in edges:
            if edge.producer in level.home and edge.consumer in level.home:
                consumers.setdefault(edge.producer, []).append(edge)
    for dim in dict.fromkeys(cluster.dim for cluster in level.clusters if cluster.dim is not None):
        row = [position for position, cluster in enumerate(level.clusters) if cluster.dim == dim]
        if level.choices.apart:
            row = [position for position in row if level.clusters[position].parallel]
        if len(row) > 1:
            _Row(level, consumers, dim, row).sink()


@dataclass(frozen=True, slots=True)
class _Row:
    """The loops over one dim, by their positions among the clusters of a level."""

    level: Level
    consumers: Mapping[int, Sequence[Edge]]
    dim: str
    positions: Sequence[int]

    def sink(self) -> None:
        """Move what may move; what would leave a loop without an order stays."""
        free = self._free()
        while free:
            home = {**self.level.home, **self._places(free)}
            changed = {
                place
                for number in free
                for place in (home[number], self.level.home[number])
                if home[number] != self.level.home[number]
            }
            rebuilt = {position: self._rebuilt(position, home) for position in changed}
            failed = {position for position, cluster in rebuilt.items() if cluster is None}
            if not failed:
                for position, cluster in rebuilt.items():
                    assert cluster is not None
                    self.level.clusters[position] = cluster
                self.level.home.update(home)
                return
            free = {
                n for n in free if home[n] == self.level.home[n] or failed.isdisjoint((home[n], self.level.home[n]))
            }

    def _free(self) -> set[int]:
        """The statements that recur not along the dim, have a reader, and may be anywhere between what they read and
        it."""
        statements = self.level.graph.statements
        inside = {n for n, position in self.level.home.items() if position in self.positions}
        free = {n for n in inside & self.level.alone if self.consumers.get(n) and not statements[n].pinned}
        return {n for n in free if not any(self._is_strict(e) and e.producer in free for e in self._reads(n))}

    def _reads(self, number: int) -> Sequence[Edge]:
        return [edge for edge in self.level.reads.get(number, ()) if edge.producer in self.level.home]

    def _is_strict(self, edge: Edge) -> bool:
        """Whether an edge keeps its ends in two loops."""
        if self.dim not in edge.dependence.relation.producer.dims:
            return False
        if self.dim not in edge.dependence.relation.consumer.dims:
            return True
        distance = self.level.distances.of(edge.dependence.relation, self.dim, edge.fixed)
        return distance is not None and all(distance.least(direction) is None for direction in DIRECTIONS)

    def _places(self, free: set[int]) -> dict[int, int]:
        """The position of the loop for each free statement."""
        places = dict.fromkeys(free, self.positions[-1])
        for before, after in reversed(list(zip(self.positions[:-1], self.positions[1:], strict=True))):
            made = minimum_cut(self._capacities(free, before, after), SOURCE, SINK)
            places.update({number: before for number in free if ("made", number, 0) in made})
        while self._stay(places):
            pass
        return places

    def _stay(self, places: dict[int, int]) -> bool:
        """Put back statements that would move to a loop without a reader, or past one; whether there were any."""
        home = self.level.home
        moved = [number for number, place in places.items() if place != home[number]]
        for number in moved:
            readers = [places.get(edge.consumer, home[edge.consumer]) for edge in self.consumers[number]]
            if places[number] not in readers or min(readers) < places[number]:
                places[number] = home[number]
        return any(places[number] == home[number] for number in moved)

    def _capacities(self, free: set[int], before: int, after: int) -> dict[tuple[CutNode, CutNode], float]:
        """The graph of the cut between two loops: sides that are held, reads that hold, bytes that are kept."""
        home = self.level.home
        capacities: dict[tuple[CutNode, CutNode], float] = {}
        for number in free:
            made: CutNode = ("made", number, 0)
            for edge in self._reads(number):
                strict = self._is_strict(edge)
                if edge.producer in free:
                    capacities[made, ("made", edge.producer, 0)] = inf
                elif home[edge.producer] > before or (strict and home[edge.producer] == before):
                    capacities[made, SINK] = inf
            for edge in self.consumers.get(number, ()):
                held = home[edge.consumer] < after or (self._is_strict(edge) and home[edge.consumer] == after)
                if edge.consumer not in free and held:
                    capacities[SOURCE, made] = inf
        values = free | {edge.producer for number in free for edge in self._reads(number)}
        for number in values:
            self._add_kept(number, free, before, after, capacities)
        return capacities

    def _add_kept(
        self, number: int, free: set[int], before: int, after: int, capacities: dict[tuple[CutNode, CutNode], float]
    ) -> None:
        """What it costs that a value is made before the cut and read after it."""
        statement = self.level.graph.statements[number]
        home = self.level.home
        if self.dim not in statement.dims or (number not in free and home[number] > before):
            return
        for rows, readers in self._readers_by_rows(number).items():
            is_kept = any(reader not in free and home[reader] >= after for reader in readers)
            if number not in free and is_kept:
                continue
            kept: CutNode = ("kept", number, rows)
            capacities[("made", number, 0) if number in free else SOURCE, kept] = float(statement.weight * rows)
            if is_kept:
                capacities[kept, SINK] = inf
            for reader in readers:
                if reader in free:
                    capacities[kept, ("made", reader, 0)] = inf

    def _readers_by_rows(self, number: int) -> dict[int, list[int]]:
        """The readers of a value, by how many of its rows at one point of the dim they read: all that its other dims
        have, or, of dims that are read at one point, one."""
        sizes = self.level.graph.nominal_sizes
        found: dict[int, list[int]] = {}
        for edge in self.consumers.get(number, ()):
            relation = edge.dependence.relation
            entries = zip(relation.producer.dims, relation.index, strict=True)
            varying = [dim for dim, entry in entries if isinstance(entry, Slice) or free_symbols(entry) & sizes.keys()]
            rows = prod(sizes[dim] for dim in varying if dim != self.dim)
            found.setdefault(rows, []).append(edge.consumer)
        return found

    def _rebuilt(self, position: int, home: Mapping[int, int]) -> Cluster | None:
        """The loop at a position with the statements that are there now; None if they have no order in one loop."""
        old = self.level.clusters[position]
        members = sorted(number for number, place in home.items() if place == position)
        inside = set(members)
        edges = [edge for number in members for edge in self._reads(number) if edge.producer in inside]
        if (
            old.parallel
            and self.level.choices.apart
            and not all(is_present(self.level.distances, e, self.dim) for e in edges)
        ):
            return None
        rebuilt = Cluster(self.dim, members, parallel=old.parallel)
        for direction in DIRECTIONS:
            shifts = least_shifts(self.level.distances, members, edges, self.dim, direction)
            if shifts is not None:
                rebuilt.forms[direction] = shifts
        return rebuilt if rebuilt.forms or not members else None
