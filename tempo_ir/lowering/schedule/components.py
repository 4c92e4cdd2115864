"""Strongly connected components of a small graph, in the one topological order that stays closest to program order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from tempo_ir.graphs import strongly_connected


def components(nodes: Iterable[int], successors: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """
    The strongly connected components, producers before consumers; of those that are ready, the one with the least node
    comes first.

    So statements keep the order of the program wherever dependences allow it, and equal parts of a program (layers)
    come out in equal order. Nodes of a component are sorted. Linear but for the heap.
    """
    found = strongly_connected(sorted(nodes), lambda node: successors.get(node, ()))
    members = [sorted(component) for component in found]
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
