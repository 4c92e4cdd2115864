"""Small graph algorithms over hashable nodes, iterative, so that a chain of ten thousand ops needs no deep stack."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def strongly_connected(nodes: Iterable[Node], successors: Callable[[Node], Iterable[Node]]) -> list[list[Node]]:
    """The strongly connected components, each after all components that it leads to (Tarjan 1972).

    Members stand in order of discovery. Successors that are not among `nodes` are ignored.
    """
    known = list(dict.fromkeys(nodes))
    inside = set(known)
    order: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    components: list[list[Node]] = []
    work: list[tuple[Node, Iterator[Node]]] = []

    def enter(node: Node) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        on_stack.add(node)
        work.append((node, iter([s for s in successors(node) if s in inside])))

    def leave(node: Node) -> None:
        work.pop()
        if work:
            parent = work[-1][0]
            low[parent] = min(low[parent], low[node])
        if low[node] != order[node]:
            return
        component = [stack.pop()]
        while component[-1] != node:
            component.append(stack.pop())
        on_stack.difference_update(component)
        components.append(component[::-1])

    for root in known:
        if root in order:
            continue
        enter(root)
        while work:
            node, pending = work[-1]
            following = next(pending, None)
            if following is None:
                leave(node)
            elif following not in order:
                enter(following)
            elif following in on_stack:
                low[node] = min(low[node], order[following])
    return components


def is_cyclic(component: list[Node], successors: Callable[[Node], Iterable[Node]]) -> bool:
    """Whether a strongly connected component has an edge inside."""
    return len(component) > 1 or component[0] in set(successors(component[0]))


def reachable(starts: Iterable[Node], successors: Callable[[Node], Iterable[Node]]) -> dict[Node, None]:
    """Everything that the starts lead to, themselves included, in order of discovery."""
    found: dict[Node, None] = dict.fromkeys(starts)
    work = list(found)
    while work:
        for following in successors(work.pop()):
            if following not in found:
                found[following] = None
                work.append(following)
    return found


def shortest_path(
    start: Node, goals: Callable[[Node], bool], successors: Callable[[Node], Iterable[Node]]
) -> list[Node] | None:
    """The nodes of a shortest path of at least one edge from `start` to a goal; None where there is none."""
    previous: dict[Node, Node] = {}
    frontier = [start]
    while frontier:
        following: list[Node] = []
        for node in frontier:
            for successor in successors(node):
                if goals(successor):
                    return _path(start, node, successor, previous)
                if successor not in previous and successor != start:
                    previous[successor] = node
                    following.append(successor)
        frontier = following
    return None


def _path(start: Node, last: Node, goal: Node, previous: Mapping[Node, Node]) -> list[Node]:
    path = [goal, last]
    while path[-1] != start:
        path.append(previous[path[-1]])
    return path[::-1]


def minimum_cut(capacities: Mapping[tuple[Node, Node], float], source: Node, sink: Node) -> set[Node]:
    """The least set of nodes round the source such that the edges that leave it have the least total capacity.

    By augmenting shortest paths (Edmonds and Karp, 1972).
    Edges may have infinite capacity, but no path from source to sink of such edges alone.
    """
    residual: dict[Node, dict[Node, float]] = {source: {}, sink: {}}
    for (start, end), capacity in capacities.items():
        residual.setdefault(start, {})[end] = residual.setdefault(start, {}).get(end, 0.0) + capacity
        residual.setdefault(end, {}).setdefault(start, 0.0)
    while True:
        before = _augmenting(residual, source, sink)
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


def _augmenting(residual: Mapping[Node, Mapping[Node, float]], source: Node, sink: Node) -> dict[Node, Node]:
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
