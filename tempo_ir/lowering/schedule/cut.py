"""Minimum cuts of small graphs, by augmenting shortest paths (Edmonds and Karp, 1972)."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def minimum_cut(capacities: Mapping[tuple[Node, Node], float], source: Node, sink: Node) -> set[Node]:
    """
    The least set of nodes round the source such that the edges that leave it have the least total capacity.

    Edges may have infinite capacity, but no path from source to sink of such edges alone.
    """
    residual: dict[Node, dict[Node, float]] = {source: {}, sink: {}}
    for (start, end), capacity in capacities.items():
        residual.setdefault(start, {})[end] = residual.setdefault(start, {}).get(end, 0.0) + capacity
        residual.setdefault(end, {}).setdefault(start, 0.0)
    while True:
        before = _search(residual, source, sink)
        if sink not in before:
            return set(before)
        path = [sink]
        while path[-1] != source:
            path.append(before[path[-1]])
        steps = list(zip(path[1:], path[:-1], strict=True))
        flow = min(residual[start][end] for start, end in steps)
        for start, end in steps:
            residual[start][end] -= flow
            residual[end][start] += flow


def _search(residual: Mapping[Node, Mapping[Node, float]], source: Node, sink: Node) -> dict[Node, Node]:
    """The nodes that the source reaches, each with the one before it; stops at the sink."""
    before = {source: source}
    waiting = deque([source])
    while waiting:
        node = waiting.popleft()
        for following, capacity in residual[node].items():
            if capacity > 0 and following not in before:
                before[following] = node
                if following == sink:
                    return before
                waiting.append(following)
    return before
