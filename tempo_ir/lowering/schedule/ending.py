"""Which statements run before the loop that data ends, and which in it, at which iteration.

A statement is in the loop if each of its points comes with a step of the dim (`dialects.sdg.until`): that step is its
iteration, so that each iteration does what is there however many follow, and no more. What neither comes with a step
nor needs one stands before the loop. All that names the bound, or reads ahead, waits until the loop has given it.
"""

from __future__ import annotations

from collections.abc import Collection

from tempo_ir.dialects.sdg.until import BEFORE, Arrival, arrival, comes_later
from tempo_ir.index.domain import Domain
from tempo_ir.index.expr import conj
from tempo_ir.lowering.schedule.graph import Dependence, Ending, Graph


def ending_of(graph: Graph, dim: str, bound: str, late: Collection[int], marks: tuple[int, int]) -> Ending:
    """The loop over a dim that data ends, with all statements that can be in it; `late` name the bound."""
    found: dict[int, Arrival] = {}
    for statement in graph.statements:
        comes = arrival(graph.space, statement.domain, dim)
        if comes is not None and statement.number not in late:
            found[statement.number] = comes
    while waiting := [d.consumer for d in graph.dependences if d.consumer in found and must_wait(graph, d, found, dim)]:
        for number in waiting:
            found.pop(number, None)
    inside = {number: comes for number, comes in found.items() if comes != BEFORE}
    return Ending(
        dim,
        bound,
        frozenset(number for number, comes in found.items() if comes == BEFORE),
        {number: comes.shift for number, comes in inside.items()},
        frozenset(number for number, comes in inside.items() if not comes.moves),
        marks,
    )


def must_wait(graph: Graph, dependence: Dependence, found: dict[int, Arrival], dim: str) -> bool:
    """Whether a statement reads what comes with a later step, or after the loop."""
    mine, theirs = found[dependence.consumer], found.get(dependence.producer)
    if theirs is None:
        return True
    read = dependence.relation
    reader = Domain(read.consumer.dims, read.consumer.ranges, conj(read.consumer.where, read.guard))
    return comes_later(graph.space, reader, mine, read.index, read.producer, theirs, dim)
