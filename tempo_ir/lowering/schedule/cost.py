"""An estimate of the time and memory of an order, for choosing among orders: how often values leave the cache, and
what is kept.

A read is near where all loops of the value read are round its reader too and the value is at a constant distance, or
where both are in one iteration of an outer loop, each in loops of its own. It then costs nothing if what is touched in
between fits the cache; every other read costs its bytes. Reuse distance, not footprint, decides: each weight of a
network fits a cache, all of them do not (research on kernel formation found this to order candidates rightly, to a
factor of about 1.5 of the measured time).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tempo_ir.index.expr import Slice
from tempo_ir.lowering.schedule.distances import Distances
from tempo_ir.lowering.schedule.graph import NOMINAL_BOUND, Dependence, Graph
from tempo_ir.lowering.schedule.order import Leaf, Loop, Node, Wave


@dataclass(frozen=True, slots=True)
class Machine:
    """What the estimate needs of a target: bytes per second of memory, bytes of cache, seconds to start a kernel."""

    bandwidth: float
    cache: float
    start: float


MACHINES: Mapping[str, Machine] = {
    "cpu": Machine(bandwidth=1e10, cache=1e6, start=5e-8),
    "sm_80": Machine(bandwidth=1.5e12, cache=4e7, start=5e-6),
    "sm_90": Machine(bandwidth=3e12, cache=5e7, start=5e-6),
    "gfx942": Machine(bandwidth=4e12, cache=2.5e8, start=6e-6),
}


@dataclass(frozen=True, slots=True, order=True)
class Estimate:
    """Seconds of one call and bytes kept at most, at nominal bounds; the faster order is the less."""

    seconds: float
    peak_bytes: float


@dataclass
class Estimator:
    """Estimates orders of one graph."""

    graph: Graph
    distances: Distances
    machine: Machine
    sizes: Mapping[str, int] = field(init=False)
    points: Sequence[float] = field(init=False)
    """How many points each statement has."""

    def __post_init__(self) -> None:
        self.sizes = self.graph.nominal_sizes
        dims = [statement.dims for statement in self.graph.statements]
        of_dims = {each: float(prod(self.sizes[dim] for dim in each)) for each in dict.fromkeys(dims)}
        self.points = [of_dims[each] for each in dims]

    def estimate(self, order: Sequence[Node]) -> Estimate:
        """The estimate of an order."""
        paths: dict[int, tuple[Loop | Wave, ...]] = {}
        _collect(order, (), paths)
        touched: dict[int, float] = {}
        starts = self._starts(order, self._sequential(paths), 1.0)
        for number, path in paths.items():
            for depth, loop in enumerate(path):
                inner = prod(self._trips(outer) for outer in path[depth + 1 :])
                touched[id(loop)] = touched.get(id(loop), 0.0) + inner * self.graph.statements[number].weight
        moved, kept = dict[object, float](), dict[int, float]()
        for dependence in self.graph.dependences:
            window = self._window(dependence, paths, touched)
            if window is None:
                # the leaves of one loop body share what they read
                body = paths[dependence.consumer][-1:]
                key = (dependence.producer, dependence.relation.index, tuple(map(id, body)))
                moved[key] = max(moved.get(key, 0.0), self._bytes_read(dependence))
            producer = self.graph.statements[dependence.producer]
            whole = self.points[producer.number] * producer.weight
            rows = whole if window is None else window
            kept[producer.number] = max(kept.get(producer.number, 0.0), rows)
        seconds = sum(moved.values()) / self.machine.bandwidth + starts * self.machine.start
        return Estimate(seconds, sum(kept.values()))

    def _starts(self, nodes: Sequence[Node], sequential: set[int], times: float) -> float:
        """How often work starts: once for each run of leaves, all iterations of an independent loop together."""
        total = 0.0
        for position, node in enumerate(nodes):
            if not isinstance(node, Leaf):
                trips = self._trips(node) if id(node) in sequential else 1
                total += self._starts(node.body, sequential, times * trips)
            elif position == 0 or not isinstance(nodes[position - 1], Leaf):
                total += times
        return total

    def _sequential(self, paths: Mapping[int, tuple[Loop | Wave, ...]]) -> set[int]:
        """The loops of which some iteration needs another: of the others all iterations can start at once."""
        found: set[int] = set()
        for dependence in self.graph.dependences:
            for loop in _common(paths[dependence.consumer], paths[dependence.producer]):
                if id(loop) not in found and not self._is_present(dependence, loop):
                    found.add(id(loop))
        return found

    def _is_present(self, dependence: Dependence, loop: Loop | Wave) -> bool:
        """Whether a dependence stays inside each iteration of a loop."""
        relation = dependence.relation
        if not isinstance(loop, Loop) or loop.dim not in set(relation.producer.dims) & set(relation.consumer.dims):
            return False
        distance = self.distances.of(relation, loop.dim)
        delay = loop.shifts[dependence.consumer] - loop.shifts[dependence.producer]
        return distance is None or (delay == 0 and distance.lower == 0 and distance.upper == 0)

    def _trips(self, loop: Loop | Wave) -> int:
        return self.sizes[loop.dim] if isinstance(loop, Loop) else NOMINAL_BOUND

    def _bytes_read(self, dependence: Dependence) -> float:
        """All bytes that the consumer reads through one access; a slice is half of what it could be."""
        consumer, producer = self.graph.statements[dependence.consumer], self.graph.statements[dependence.producer]
        rows = 1.0
        for dim, entry in zip(producer.dims, dependence.relation.index, strict=True):
            rows *= max(1.0, self.sizes[dim] / 2) if isinstance(entry, Slice) else 1.0
        return self.points[consumer.number] * rows * producer.weight

    def _window(
        self, dependence: Dependence, paths: Mapping[int, tuple[Loop | Wave, ...]], touched: Mapping[int, float]
    ) -> float | None:
        """The bytes of a value that are kept for a near read; None if the read is far."""
        producer = self.graph.statements[dependence.producer]
        common = _common(paths[dependence.consumer], paths[dependence.producer])
        looped = {loop.dim for loop in common if isinstance(loop, Loop)}
        apart = [dim for dim in producer.dims if dim not in looped]
        if apart and (not common or touched[id(common[-1])] > self.machine.cache):
            return None
        rows = whole = float(prod(self.sizes[dim] for dim in apart))
        for position, loop in enumerate(common):
            if (
                not isinstance(loop, Loop)
                or loop.dim not in producer.dims
                or loop.dim not in dependence.relation.consumer.dims
            ):
                continue
            distance = self.distances.of(dependence.relation, loop.dim)
            if distance is None:
                continue
            if distance.lower is None or distance.upper is None:
                return None
            delay = loop.shifts[dependence.consumer] - loop.shifts[dependence.producer]
            reach = max(abs(distance.lower * loop.direction + delay), abs(distance.upper * loop.direction + delay))
            if reach and touched[id(loop)] * reach > self.machine.cache:
                return None
            if reach:
                inner = prod(self._trips(inside) for inside in common[position + 1 :])
                rows = max(rows, (reach + 1) * inner * whole)
        return rows * producer.weight


def _collect(nodes: Sequence[Node], path: tuple[Loop | Wave, ...], paths: dict[int, tuple[Loop | Wave, ...]]) -> None:
    for node in nodes:
        if isinstance(node, Leaf):
            paths[node.statement] = path
        else:
            _collect(node.body, (*path, node), paths)


def _common(left: Sequence[Loop | Wave], right: Sequence[Loop | Wave]) -> list[Loop | Wave]:
    """The loops round both."""
    found: list[Loop | Wave] = []
    for mine, other in zip(left, right, strict=False):
        if mine is not other:
            break
        found.append(mine)
    return found
