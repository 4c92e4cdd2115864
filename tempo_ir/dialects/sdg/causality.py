"""Causality: no value needs itself at the same point.

Cycles of ops are what makes recurrences; a cycle of *points* can never run. A component of the graph is cleared by
ordering: if along some dim every read is of the present or of one side of it, the reads of that side alone cannot close
a cycle, and what is left is looked at again. What cannot be cleared so is run on small sizes, where the shortest cycle
of points is found and shown; in a small component the transitive closure of the reads (isl) decides for all sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from tempo_ir.dialects.sdg.base import OpError, SdgOp
from tempo_ir.dialects.sdg.locations import location_text, value_text
from tempo_ir.dialects.sdg.reads import program_ops, read_domain
from tempo_ir.dialects.sdg.structure import ProgramOp
from tempo_ir.graphs import is_cyclic, shortest_path, strongly_connected
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import Compare, Cond, Entry, Index, Slice, Sym, compare, conj, evaluate, free_symbols

if TYPE_CHECKING:
    from tempo_ir.index import isl

SMALL_SIZES = (1, 2, 3, 4, 5)
"""Sizes of the bounds at which points are run; odd and even ones, since a cycle may need either."""
LARGER_SIZES = (6, 7, 8, 10, 13, 16)
"""Sizes of the bounds for a thorough search, where those are too small for a cycle."""
LONGEST_CYCLE = 12
"""How many reads of a cycle a thorough search follows for all sizes."""
LONGEST_TEXT = 30_000
"""Of what is read through several reads; more takes isl too long."""
LARGEST_DIVISOR = 8
"""By which a bound is divided where a dim still gets the sizes."""
MOST_POINTS = 20_000
"""How many points of a component are looked at, for one choice of sizes."""
MOST_OPS_OF_A_CLOSURE = 6
"""Transitive closures of larger components take isl too long."""

Point: TypeAlias = tuple[SdgOp, tuple[int, ...]]


@dataclass(slots=True, unsafe_hash=True)  # never changed; `frozen` would make it four times as slow to make
class Edge:
    """`consumer` reads `producer` through `index` at the points of `domain`."""

    consumer: SdgOp
    producer: SdgOp
    index: Index
    domain: Domain


def check_causality(program: ProgramOp, *, thorough: bool = False) -> None:
    """Raises OpError for a value that needs itself, with the cycle by name, line and point.

    A `thorough` search is for programs that have no order: it may take seconds.
    """
    space, ops = program.space, program_ops(program)
    edges = [edge for op in ops for edge in edges_of(op)]
    for component, inside in cyclic_components(ops, edges):
        if not is_ordered(component, inside, space):
            report_cycle(component, inside, space, thorough=thorough)


def edges_of(op: SdgOp) -> Iterator[Edge]:
    """The reads of an op; a gradient's are known only once it is expanded."""
    for number, access in enumerate(op.accesses):
        producer = access.value.owner
        if isinstance(producer, SdgOp):
            yield Edge(op, producer, access.index, read_domain(op, number))


def cyclic_components(ops: Sequence[SdgOp], edges: Iterable[Edge]) -> list[tuple[list[SdgOp], list[Edge]]]:
    """The components of the graph that have a cycle, each with the edges inside."""
    outgoing: dict[SdgOp, list[Edge]] = {op: [] for op in ops}
    for edge in edges:
        outgoing[edge.consumer].append(edge)

    def producers(op: SdgOp) -> list[SdgOp]:
        return [edge.producer for edge in outgoing[op]]

    found: list[tuple[list[SdgOp], list[Edge]]] = []
    for component in strongly_connected(ops, producers):
        if is_cyclic(component, producers):
            members = set(component)
            inside = [edge for op in component for edge in outgoing[op] if edge.producer in members]
            found.append((component, inside))
    return found


def is_ordered(component: Sequence[SdgOp], edges: Sequence[Edge], space: Space) -> bool:
    """Whether an order of dims and directions clears the component of cycles of points."""
    for dim in space.names:
        if not all(dim in op.domain.dims for op in component):
            continue
        for forward in (True, False):
            if not all(is_on_side(edge, dim, forward, space, strictly=False) for edge in edges):
                continue
            left = [edge for edge in edges if not is_on_side(edge, dim, forward, space, strictly=True)]
            if len(left) < len(edges):
                return all(is_ordered(*inner, space) for inner in cyclic_components(component, left))
    return False


def is_on_side(edge: Edge, dim: str, forward: bool, space: Space, strictly: bool) -> bool:
    """Whether the edge only reads the past of `dim` (`forward`) or its future, or else the present, if not strictly."""
    entry = edge.index[edge.producer.domain.dims.index(dim)]
    if type(entry) is Sym and entry.name == dim:
        return not strictly
    return is_side(entry, dim, forward, space, edge.domain, strictly)


@lru_cache(maxsize=4096)
def is_side(entry: Entry, dim: str, forward: bool, space: Space, domain: Domain, strictly: bool) -> bool:
    from tempo_ir.index import isl

    present = Sym(dim)
    first, last = (entry.start, entry.stop - 1) if isinstance(entry, Slice) else (entry, entry)
    relation = "<" if strictly else "<="
    claim = compare(relation, last, present) if forward else compare(relation, present, first)
    if isinstance(entry, Slice):
        domain = Domain(domain.dims, domain.ranges, conj(domain.where, Compare("<", entry.start, entry.stop)))
    return isl.prove(claim, space, domain)


def report_cycle(component: Sequence[SdgOp], edges: Sequence[Edge], space: Space, *, thorough: bool = False) -> None:
    """Raises OpError if the component has a cycle of points at a small size, or by its closure at any."""
    outgoing: dict[SdgOp, list[Edge]] = {}
    for edge in edges:
        outgoing.setdefault(edge.consumer, []).append(edge)
    for bounds in small_bounds(space, (*SMALL_SIZES, *LARGER_SIZES) if thorough else SMALL_SIZES):
        if (cycle := cycle_of_points(component, outgoing, space, bounds)) is not None:
            raise OpError(cycle_text(cycle, bounds), cycle[0][0])
    if thorough and (bounds := bounds_of_a_cycle(component, edges, space)) is not None:
        if (cycle := cycle_of_points(component, outgoing, space, bounds)) is not None:
            raise OpError(cycle_text(cycle, bounds), cycle[0][0])
    if len(component) <= MOST_OPS_OF_A_CLOSURE:
        check_closure(component, edges, space)


def small_bounds(space: Space, sizes: Sequence[int]) -> Iterator[dict[str, int]]:
    """Admissible bounds: all alike first, of each of the sizes, then each alone larger or smaller than the others."""
    params = space.params
    alike = [{name: bound_for(space, name, size) for name in params} for size in sizes]
    uneven = [
        {each: bound_for(space, each, b if each == name else a) for each in params}
        for name in params
        for a, b in itertools.permutations((1, 2, 4), 2)
    ]
    seen: set[tuple[tuple[str, int], ...]] = set()
    for bounds in [*alike, *uneven]:
        key = tuple(sorted(bounds.items()))
        if key not in seen and evaluate(space.where, bounds):
            seen.add(key)
            yield bounds


def bound_for(space: Space, name: str, size: int) -> int:
    """The bound at which each dim made of it alone has so many points: `T = 8` for 4 of `T floordiv 2`."""
    extents = [bound for _, bound in space.dims if free_symbols(bound) == frozenset([name])]
    bounds = range(size, LARGEST_DIVISOR * size + 1)
    return next((b for b in bounds if all(evaluate(extent, {name: b}) >= size for extent in extents)), size)


def cycle_of_points(
    component: Sequence[SdgOp], outgoing: Mapping[SdgOp, Sequence[Edge]], space: Space, bounds: Mapping[str, int]
) -> list[Point] | None:
    """A shortest cycle of points for the given bounds, its first point repeated at the end; None if there is none."""
    held = {op: op.domain.condition(space) for op in component}
    known: dict[Point, list[Point]] = {}

    def needs(point: Point) -> list[Point]:
        if point not in known:
            known[point] = list(points_read(point, outgoing, held, bounds))
        return known[point]

    starts = itertools.chain.from_iterable(points_of(op, space, bounds) for op in component)
    points = list(itertools.islice(starts, MOST_POINTS))
    cyclic = [found for found in strongly_connected(points, needs) if is_cyclic(found, needs)]
    if not cyclic:
        return None
    smallest = min(cyclic, key=len)
    inside = set(smallest)
    cycles = [
        shortest_path(start, lambda point, start=start: point == start, lambda point: inside.intersection(needs(point)))
        for start in smallest[:64]
    ]
    return min((cycle for cycle in cycles if cycle is not None), key=len)


def points_of(op: SdgOp, space: Space, bounds: Mapping[str, int]) -> Iterator[Point]:
    """The points of an op in lexicographic order."""
    for point in op.domain.points(space, bounds):
        yield op, tuple(point.values())


def points_read(
    point: Point, outgoing: Mapping[SdgOp, Sequence[Edge]], held: Mapping[SdgOp, Cond], bounds: Mapping[str, int]
) -> Iterator[Point]:
    """The points of the component that a point reads."""
    op, values = point
    env = {**bounds, **dict(zip(op.domain.dims, values, strict=True))}
    for edge in outgoing.get(op, ()):
        if not evaluate(edge.domain.where, env):
            continue
        entries = [evaluate(entry, env) for entry in edge.index]
        ranges = [(entry,) if isinstance(entry, int) else entry for entry in entries]
        for there in itertools.product(*ranges):
            if evaluate(held[edge.producer], {**bounds, **dict(zip(edge.producer.domain.dims, there, strict=True))}):
                yield edge.producer, there


def cycle_text(cycle: Sequence[Point], bounds: Mapping[str, int]) -> str:
    """`%y needs itself: %y (model.py:3) at t = 0 needs %x (model.py:2) at t = 0 needs %y (...) at t = 0 (T = 1)`."""
    steps = " needs ".join(point_text(point) for point in cycle)
    sizes = ", ".join(f"{name} = {size}" for name, size in bounds.items())
    name = value_text(cycle[0][0].results[0])
    where = f" ({sizes})" if sizes else ""
    return f"{name} needs itself: {steps}{where}; read another point of one of them, or give it a first case"


def point_text(point: Point) -> str:
    """`%h (model.py:3) at t = 0`."""
    op, values = point
    where = location_text(op.location)
    at = ", ".join(f"{dim} = {value}" for dim, value in zip(op.domain.dims, values, strict=True))
    return value_text(op.results[0]) + (f" ({where})" if where else "") + (f" at {at}" if at else "")


def check_closure(component: Sequence[SdgOp], edges: Sequence[Edge], space: Space) -> None:
    """Raises OpError if the exact transitive closure of the reads leads a point back to itself."""
    from tempo_ir.index import isl

    closure, exact = all_reads(component, edges, space).transitive_closure()
    if not exact:
        return
    for op, itself in points_that_need_themselves(component, closure, space):
        point = isl.counterexample(itself)
        raise OpError(f"{value_text(op.results[0])} needs itself at {point}; give it another case there", op)


def bounds_of_a_cycle(component: Sequence[SdgOp], edges: Sequence[Edge], space: Space) -> dict[str, int] | None:
    """Bounds at which a point needs itself through not too many reads; None if none are found."""
    from tempo_ir.index import isl

    reads = all_reads(component, edges, space)
    through = reads
    for _ in range(LONGEST_CYCLE):
        for _, itself in points_that_need_themselves(component, through, space):
            point = isl.smallest_point(itself) or {}
            return {name: point[name] for name in space.params}
        through = isl.coalesced(through.apply_range(reads))
        if len(str(through)) > LONGEST_TEXT:
            break
    return None


def all_reads(component: Sequence[SdgOp], edges: Sequence[Edge], space: Space) -> isl.UnionMap:
    """From the points of each op (named by its number) to those that they read."""
    from tempo_ir.index import isl

    names = {op: f"op{number}" for number, op in enumerate(component)}
    reads = isl.UnionMap.read_from_str(isl.context(), "{ }")
    for edge in edges:
        target = isl.domain_set(space, edge.producer.domain, names[edge.producer])
        relation = isl.access_map(
            space, edge.domain, edge.index, edge.producer.domain, names[edge.consumer], names[edge.producer]
        ).intersect_range(target)
        reads = reads.union(relation.to_union_map())
    return reads.intersect_params(isl.params_set(space))


def points_that_need_themselves(
    component: Sequence[SdgOp], reads: isl.UnionMap, space: Space
) -> Iterator[tuple[SdgOp, isl.Set]]:
    """The points of each op that the reads lead back to themselves."""
    from tempo_ir.index import isl

    for number, op in enumerate(component):
        whole = isl.domain_set(space, op.domain, f"op{number}")
        itself = reads.intersect(whole.identity().to_union_map()).domain().intersect(whole.to_union_set())
        if not itself.is_empty():
            yield op, isl.Set.from_union_set(itself)
