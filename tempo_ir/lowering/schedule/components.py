"""Strongly connected components of a small graph, in the one topological order that stays closest to program order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence


def components(nodes: Iterable[int], successors: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """
    The strongly connected components, producers before consumers; of those that are ready, the one with the least node
    comes first.

    So statements keep the order of the program wherever dependences allow it, and equal parts of a program (layers) come
    out in equal order. Nodes of a component are sorted. Linear but for the heap; iterative, so that depth is no limit.
    Sharir, "A strong-connectivity algorithm and its applications in data flow analysis", 1981.
    """
    members = _strongly_connected(sorted(nodes), successors)
    component_of = {node: number for number, component in enumerate(members) for node in component}
    followers: list[set[int]] = [set() for _ in members]
    waiting = [0] * len(members)
    for number, component in enumerate(members):
        for node in component:
            for successor in successors.get(node, ()):
                other = component_of.get(successor, number)
                if other != number and other not in followers[number]:
                    followers[number].add(other)
                    waiting[other] += 1
    ready = [(component[0], number) for number, component in enumerate(members) if waiting[number] == 0]
    heapq.heapify(ready)
    order: list[list[int]] = []
    while ready:
        _, number = heapq.heappop(ready)
        order.append(members[number])
        for follower in followers[number]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, (members[follower][0], follower))
    return order


def _strongly_connected(nodes: Sequence[int], successors: Mapping[int, Sequence[int]]) -> list[list[int]]:
    predecessors: dict[int, list[int]] = {node: [] for node in nodes}
    for node in nodes:
        for successor in successors.get(node, ()):
            if successor in predecessors:
                predecessors[successor].append(node)
    found: list[list[int]] = []
    seen: set[int] = set()
    for root in reversed(_postorder(nodes, successors)):
        reached = _reach(root, predecessors, seen)
        if reached:
            found.append(sorted(reached))
    return found


def _postorder(nodes: Sequence[int], successors: Mapping[int, Sequence[int]]) -> list[int]:
    """The nodes in the order in which a depth-first walk leaves them; `~node` on the stack marks the leaving."""
    known, seen = set(nodes), set[int]()
    order: list[int] = []
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        if node < 0:
            order.append(~node)
        elif node not in seen:
            seen.add(node)
            stack.append(~node)
            stack.extend(successor for successor in successors.get(node, ()) if successor in known)
    return order


def _reach(root: int, successors: Mapping[int, Sequence[int]], seen: set[int]) -> list[int]:
    """The nodes reachable from the root that were not seen, which then are."""
    reached: list[int] = []
    stack = [root]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            reached.append(node)
            stack.extend(successors[node])
    return reached
