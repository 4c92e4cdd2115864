"""The parts of the scheduler: components, distances, shifts, fusion."""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import replace

import pytest

from tempo_ir.graphs import minimum_cut
from tempo_ir.index import cond, domain, evaluate, index, space
from tempo_ir.lowering.schedule.components import components
from tempo_ir.lowering.schedule.conditions import solved
from tempo_ir.lowering.schedule.distances import Distance, Distances
from tempo_ir.lowering.schedule.fusion import Choices, longest_paths
from tempo_ir.lowering.schedule.graph import Dependence, Graph, Relation, Statement
from tempo_ir.lowering.schedule.named_dims import UnorderedError, schedule
from tempo_ir.lowering.schedule.order import order_text


def test_components_keep_program_order_where_they_may() -> None:
    assert components(range(5), {}) == [[0], [1], [2], [3], [4]]
    assert components(range(4), {3: [0], 0: [1]}) == [[2], [3], [0], [1]]
    assert components(range(5), {1: [3], 3: [1], 4: [0]}) == [[1, 3], [2], [4], [0]]


READS = [
    ("[t - 1]", "t > 0"),
    ("[t + 2]", "t < T - 2"),
    ("[max(0, t - 3)]", "true"),
    ("[min(t + 2, T - 1)]", "true"),
    ("[t floordiv 2]", "true"),
    ("[T - 1 - t]", "true"),
    ("[0:t + 1]", "true"),
    ("[max(0, t - 2):t + 1]", "true"),
    ("[t:T]", "true"),
    ("[0]", "true"),
]


@pytest.mark.parametrize(("read", "guard"), READS)
def test_distances_are_what_enumeration_finds(read: str, guard: str) -> None:
    over, declared = domain("(t)"), space("dims(t: T) where T >= 1")
    found = Distances(declared).of(Relation(over, over, index(read), cond(guard)), "t")
    (entry,) = index(read)
    seen: dict[int, set[int]] = {}
    for size in range(1, 13):
        for t in range(size):
            bindings = {"t": t, "T": size}
            if evaluate(cond(guard), bindings):
                rows = evaluate(entry, bindings)
                seen.setdefault(size, set()).update(t - row for row in ([rows] if isinstance(rows, int) else rows))
    assert found is not None
    least, most = [min(found) for found in seen.values()], [max(found) for found in seen.values()]
    # what grows with the size has no bound
    assert found.lower == (None if least[-1] < least[-2] else min(least))
    assert found.upper == (None if most[-1] > most[-2] else max(most))


def test_distances_of_reads_that_never_happen() -> None:
    over, declared = domain("(t)"), space("dims(t: T)")
    relation = Relation(over, over, index("[max(0, t - 1)]"), cond("t < 0"))
    assert Distances(declared).of(relation, "t") is None


def test_a_distance_may_depend_on_another() -> None:
    over, declared = domain("(i, t)"), space("dims(i: I, t: T)")
    relation = Relation(over, over, index("[i - 1, min(t + 1, T - 1)]"), cond("i > 0"))
    distances = Distances(declared)
    assert distances.of(relation, "i") == Distance(1, 1)
    assert distances.of(relation, "t") == Distance(-1, 0)


@pytest.mark.parametrize("seed", range(20))
def test_longest_paths_against_brute_force(seed: int) -> None:
    generator = random.Random(seed)
    constraints = [
        (generator.randrange(3), generator.randrange(3), generator.randint(-2, 2))
        for _ in range(generator.randint(1, 5))
    ]
    found = longest_paths(range(3), constraints)
    solutions = [
        values
        for values in itertools.product(range(9), repeat=3)
        if all(values[after] >= values[before] + gap for before, after, gap in constraints)
    ]
    if found is None:
        assert not solutions
    else:
        assert tuple(found.values()) == tuple(min(column) for column in zip(*solutions, strict=True))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("t - 3 >= 0", "t >= 3"),
        ("0 <= T - 1 - t", "t < T"),
        ("T - 2 >= t", "t < T - 1"),
        ("t >= P + 1", "t > P"),
        ("t >= P - 1", "t >= P - 1"),
        ("2 * t >= T", "2 * t >= T"),
        ("i = 0 or t + 1 < T", "i = 0 or t < T - 1"),
    ],
)
def test_conditions_are_solved_for_the_innermost_iterator(given: str, expected: str) -> None:
    assert str(solved(cond(given), ("i", "t"))) == expected


def graph(declared: str, *lines: str) -> tuple[Graph, list[str]]:
    """`("x (t)", "y (t): x[t], y[t - 1] if t > 0")`: statements with domains and what they read."""
    names = [line.split()[0] for line in lines]
    domains = [domain(line.partition(":")[0].split(maxsplit=1)[1]) for line in lines]
    statements = [Statement(n, name, over) for n, (name, over) in enumerate(zip(names, domains, strict=True))]
    dependences = []
    for number, line in enumerate(lines):
        for read in filter(None, line.partition(":")[2].split(";")):
            access, _, guard = read.strip().partition(" if ")
            producer, _, entries = access.partition("[")
            numbered = names.index(producer)
            relation = Relation(domains[number], domains[numbered], index(f"[{entries}" if entries else "[]"))
            if guard:
                relation = Relation(relation.consumer, relation.producer, relation.index, cond(guard))
            dependences.append(Dependence(number, numbered, relation))
    return Graph(space(declared), statements, dependences), names


def order(declared: str, *lines: str, choices: Choices | None = None) -> str:
    made, names = graph(declared, *lines)
    return order_text(schedule(made, Distances(made.space), choices or Choices()), names)


def test_a_free_loop_takes_the_direction_of_the_loop_that_reads_it() -> None:
    found = order("dims(t: T)", "a (t)", "b (t): a[t]", "c (t): b[t]; c[t + 1] if t < T - 1")
    assert found == "for t down\n  a\n  b\n  c"


def test_a_reader_of_later_values_is_delayed() -> None:
    found = order("dims(t: T)", "a (t): a[t - 1] if t > 0", "b (t): a[min(t + 2, T - 1)]")
    assert found == "for t up a: t, b: t + 2\n  a\n  b"


def test_a_suffix_is_read_downwards() -> None:
    assert order("dims(t: T)", "a (t)", "b (t): a[t:T]") == "for t down\n  a\n  b"


def test_loops_that_need_all_values_come_after() -> None:
    found = order("dims(t: T)", "a (t)", "b (t): a[0:T]", "c (): b[0:T]")
    assert found == "for t up\n  a\nfor t up\n  b\nc"


def test_statements_sink_to_their_only_reader() -> None:
    found = order(
        "dims(t: T)",
        "h (t): h[t - 1] if t > 0",
        "u (t): h[t]",
        "g (t): g[t + 1] if t < T - 1; u[t]; h[t]",
    )
    assert found == "for t up\n  h\nfor t down\n  u\n  g"


def test_whole_chains_sink() -> None:
    found = order(
        "dims(t: T)",
        "h (t): h[t - 1] if t > 0",
        "a (t): h[t]",
        "b (t): a[t]",
        "g (t): g[t + 1] if t < T - 1; b[t]; h[t]",
        "s (t): b[t]; g[t]",
        "m (): s[0:T]",
    )
    assert found == "for t up\n  h\nfor t down\n  a\n  b\n  g\n  s\nm"


def test_a_recurrence_inside_of_one_point_sinks_as_a_whole() -> None:
    """Values computed anew from the last row of the block before (h): kept are these rows, and not all (again)."""
    found = order(
        "dims(b: B, j: 10)",
        "h (b, j): h[b, j - 1] if j > 0; h[b - 1, 9] if b > 0 and j = 0",
        "again (b, j): again[b, j - 1] if j > 0; h[b - 1, 9] if b > 0 and j = 0",
        "g (b, j): g[b, j + 1] if j < 9; g[b + 1, 0] if b < B - 1 and j = 9; again[b, j]",
    )
    assert found == "for b up\n  for j up\n    h\nfor b down\n  for j up\n    again\n  for j down\n    g"


def test_what_makes_less_of_what_it_reads_does_not_sink() -> None:
    made, names = graph("dims(t: T)", "h (t)", "n (t): h[t]", "m (): n[0:T]", "y (t): n[t]; m")
    small = [replace(statement, weight=1 if statement.name == "n" else 100) for statement in made.statements]
    found = schedule(Graph(made.space, small, made.dependences), Distances(made.space), Choices())
    assert order_text(found, names) == "for t up\n  h\n  n\nm\nfor t up\n  y"


@pytest.mark.parametrize("seed", range(20))
def test_minimum_cuts_against_brute_force(seed: int) -> None:
    generator = random.Random(seed)
    capacities = {
        (start, end): float(generator.randint(1, 9))
        for start in range(5)
        for end in range(5)
        if start != end and generator.random() < 0.5
    }

    def cost(side: set[int]) -> float:
        return sum(capacity for (start, end), capacity in capacities.items() if start in side and end not in side)

    sides = [{0, *inside} for size in range(4) for inside in itertools.combinations((1, 2, 3), size)]
    least = min(map(cost, sides))
    assert minimum_cut(capacities, 0, 4) == min((side for side in sides if cost(side) == least), key=len)


def test_inner_loops_see_only_what_the_outer_ones_leave() -> None:
    found = order("dims(i: I, t: T)", "a (i, t): a[i - 1, T - 1 - t] if i > 0; b[i, t]", "b (i, t)")
    assert found == "for i up\n  for t up\n    b\n    a"


def test_what_nothing_orders_is_reported() -> None:
    with pytest.raises(UnorderedError) as error:
        order("dims(t: T)", "a (t): b[t]", "b (t): a[t]", "c (t)")
    assert error.value.statements == [0, 1]


def test_time_grows_with_the_number_of_layers_only() -> None:
    def layers(count: int) -> list[str]:
        lines = [f"x0 (t): x{count}[t - 1] if t > 0"]
        for n in range(count):
            lines += [f"k{n} (t): x{n}[t]", f"a{n} (t): k{n}[0:t + 1]; x{n}[t]", f"x{n + 1} (t): a{n}[t]; x{n}[t]"]
        return lines

    made, names = graph("dims(t: T)", *layers(100))
    start = time.perf_counter()
    found = schedule(made, Distances(made.space), Choices())
    assert time.perf_counter() - start < 2  # about 20 ms when nothing else runs
    assert order_text(found, names).split() == ["for", "t", "up", *names]
