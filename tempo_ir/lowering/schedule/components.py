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
    come out in equal order. Nodes of a component are sorted. Linear but for the heap; where there is no cycle, as in
    the innermost loops, components are not looked for.
    """
    alone = [[node] for node in sorted(nodes)]
    order = _in_order(alone, successors)
    if len(order) < len(alone):
        found = strongly_connected([node for (node,) in alone], lambda node: successors.get(node, ()))
        order = _in_order([sorted(component) for component in found], successors)
    return order


def _in_order(members: Sequence[list[int]], successors: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """The components in order; without those on a cycle of them, and behind it."""
    component_of = {node: number for number, component in enumerate(members) for node in component}
    followers: list[set[int]] = []
    waiting = [0] * len(members)
    for number, component in enumerate(members):
        after = {component_of.get(successor, number) for node in component for successor in successors.get(node, ())}
        after.discard(number)
        followers.append(after)
        for other in after:
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
