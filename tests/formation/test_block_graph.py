"""The groups of a block: what may become one, and the order that is kept, against a search of all chains."""

from __future__ import annotations

import random

import pytest
from xdsl.ir import Block

from tempo_ir.lowering.formation.block_graph import BlockGraph


def random_graph(chosen: random.Random, size: int) -> BlockGraph:
    """Items of which some, at random, must run after earlier ones."""
    graph = BlockGraph(Block())
    graph.group_of, graph.ranks = list(range(size)), list(range(size))
    graph.members = {number: [number] for number in range(size)}
    graph.successors = {number: set() for number in range(size)}
    graph.predecessors = {number: set() for number in range(size)}
    for second in range(1, size):
        for first in chosen.sample(range(second), min(second, chosen.randrange(3))):
            graph.depend(first, second)
    return graph


def leads(graph: BlockGraph, start: int, end: int, *, besides: int | None = None) -> bool:
    """Whether a chain of at least one dependence leads from a group to another, not by the edge to one at first."""
    waiting = list(graph.successors[start] - {besides})
    seen = set(waiting)
    while waiting:
        following = graph.successors[waiting.pop()] - seen
        seen |= following
        waiting += following
    return end in seen


@pytest.mark.parametrize("seed", range(40))
def test_groups_join_where_no_chain_passes_outside_and_stay_in_order(seed: int) -> None:
    chosen = random.Random(seed)
    graph = random_graph(chosen, 24)
    for _ in range(60):
        if len(graph.members) < 3:
            break
        first, second, third = chosen.sample(sorted(graph.members), 3)
        apart = leads(graph, first, second, besides=second) or leads(graph, second, first, besides=first)
        assert graph.joins(first, second) == (not apart)
        assert graph.reaches(first, {second, third}) == (leads(graph, first, second) or leads(graph, first, third))
        match chosen.randrange(4):
            case 0 if not leads(graph, second, first):
                graph.depend(first, second)
            case 1 if len(graph.members[first]) == 1:
                graph.drop(first)
            case _ if not apart:
                graph.join(first, second)
            case _:
                pass
        ranked = {group: graph.ranks[group] for group in graph.members}
        assert len(set(ranked.values())) == len(ranked)
        assert all(ranked[group] < ranked[after] for group in ranked for after in graph.successors[group])
    order = graph.order()
    assert sorted(order) == sorted(graph.members)
    assert all(order.index(group) < order.index(after) for group in order for after in graph.successors[group])
