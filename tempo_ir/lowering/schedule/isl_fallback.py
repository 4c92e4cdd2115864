# pyright: basic
"""
isl's own scheduler for one component that no loop over a named dim orders: it finds skewed loops (wavefronts).

It runs in a process of its own with a time limit, since it is exponential in the worst case and cannot be interrupted.
Run as a program, this file reads the constraints from standard input and prints the schedule.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache

from tempo_ir.index.expr import Expr
from tempo_ir.index.isl import (
    DIM,
    Id,
    Inexact,
    Map,
    PwAff,
    Schedule,
    ScheduleConstraints,
    ScheduleNode,
    UnionMap,
    UnionSet,
    context,
    domain_set,
    encode,
    expression,
    islpy,
    params_set,
    read_map,
    read_set,
    schedule_node_type,
)
from tempo_ir.lowering.schedule.distances import relation_map
from tempo_ir.lowering.schedule.fusion import Edge
from tempo_ir.lowering.schedule.graph import Graph
from tempo_ir.lowering.schedule.order import Leaf, Node, Wave

SECONDS = 10
"""Of processor time, so that the answer does not hang on what else the machine does."""
NO_SCHEDULE = 3
"""The exit status that says that isl found none."""


def order_by_isl(graph: Graph, component: Sequence[int], edges: Sequence[Edge]) -> Sequence[Node] | None:
    """The order of a component inside the loops round it; None where isl finds none in time."""
    domains = {number: domain_set(graph.space, graph.statements[number].domain, f"S{number}") for number in component}
    question = {
        "context": str(params_set(graph.space)),
        "domain": [str(points) for points in domains.values()],
        "validity": [str(_validity(graph, edge)) for edge in edges],
    }
    answer = _answer(json.dumps(question))
    if answer is None:
        return None
    root = Schedule.read_from_str(context(), answer).get_root()
    try:
        return _nodes(root.child(0), list(component), graph)
    except Inexact:  # the time of a statement in several pieces, which no index expression says
        return None


@lru_cache(maxsize=64)
def _answer(question: str) -> str | None:
    """The schedule for some constraints, both as text; None where isl finds none in time."""
    answer = subprocess.run(
        [sys.executable, "-m", __name__], input=question, capture_output=True, text=True, check=False
    )
    if answer.returncode in (NO_SCHEDULE, -signal.SIGXCPU):
        return None
    if answer.returncode:
        raise RuntimeError(f"isl's scheduler failed: {answer.stderr}")
    return answer.stdout


def _validity(graph: Graph, edge: Edge) -> Map:
    """From each producer's point to the consumer's points that must follow it in one iteration of the loops outside."""
    relation = edge.dependence.relation
    consumer, producer = relation.consumer, relation.producer
    names = f"S{edge.consumer}", f"S{edge.producer}"
    reads = relation_map(graph.space, relation, *names)
    if edge.fixed:
        before, after = ([encode(dim) for dim in dims] for dims in (consumer.dims, producer.dims))
        held = " and ".join(f"{encode(dim)} - {encode(dim)}' = {distance}" for dim, distance in edge.fixed)
        primed = ", ".join(f"{dim}'" for dim in after)
        reads = reads.intersect(read_map(f"{{ {names[0]}[{', '.join(before)}] -> {names[1]}[{primed}] : {held} }}"))
    return reads.reverse()


def _nodes(place: ScheduleNode, numbers: Sequence[int], graph: Graph) -> Sequence[Node]:
    """The order below a node of isl's tree for the statements that reach it."""
    kind = place.get_type()
    if kind in (schedule_node_type.sequence, schedule_node_type.set):
        found: list[Node] = []
        for position in range(place.n_children()):
            part = place.child(position)
            inside = _statements(part.filter_get_filter())
            found += _nodes(part.child(0), [number for number in numbers if number in inside], graph)
        return found
    if kind == schedule_node_type.band:
        schedule = place.band_get_partial_schedule()
        nodes = _nodes(place.child(0), numbers, graph)
        for member in reversed(range(place.band_n_member())):
            nodes = [Wave(_iterations(schedule.get_union_pw_aff(member), graph), nodes)]
        return nodes
    if kind == schedule_node_type.leaf:
        return [Leaf(number) for number in numbers]
    return _nodes(place.child(0), numbers, graph)


def _statements(points: UnionSet) -> set[int]:
    found: set[int] = set()
    points.foreach_set(lambda part: found.add(int(part.get_tuple_name()[1:])))
    return found


def _iterations(functions: islpy.UnionPwAff, graph: Graph) -> Mapping[int, Expr]:
    parts: list[PwAff] = []
    functions.foreach_pw_aff(parts.append)
    found: dict[int, Expr] = {}
    for part in parts:
        number = int(part.domain().get_tuple_name()[1:])
        domain = domain_set(graph.space, graph.statements[number].domain)
        for position, dim in enumerate(graph.statements[number].dims):
            part = part.set_dim_id(DIM.in_, position, Id.read_from_str(context(), encode(dim)))
        found[number] = expression(part.reset_tuple_id(DIM.in_).intersect_domain(domain))
    return found


def main() -> int:
    """Read the constraints, print the schedule."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    question = json.load(sys.stdin)
    domain = UnionSet.read_from_str(context(), "{ }")
    for text in question["domain"]:
        domain = domain.union(UnionSet.read_from_str(context(), text))
    validity = UnionMap.read_from_str(context(), "{ }")
    for text in question["validity"]:
        validity = validity.union(UnionMap.read_from_str(context(), text))
    constraints = ScheduleConstraints.on_domain(domain).set_context(read_set(question["context"]))
    constraints = constraints.set_validity(validity).set_proximity(validity)
    try:
        print(constraints.compute_schedule())
    except islpy.Error:
        return NO_SCHEDULE
    return 0


if __name__ == "__main__":
    sys.exit(main())
