"""The isl bridge against enumeration: sets, maps, proofs, bounds, inverse accesses."""

from __future__ import annotations

import itertools
import threading

import pytest

from tempo_ir.index import Cond, Domain, Index, cond, domain, evaluate, expr, index, index_text, isl, space
from tempo_ir.index.inverse import inverse

SPACE = space("dims(i: I, t: T, s: T) where 1 <= P <= T")
BOUNDS = [
    {"I": 0, "T": 1, "P": 1},
    {"I": 2, "T": 2, "P": 1},
    {"I": 3, "T": 5, "P": 3},
    {"I": 4, "T": 9, "P": 9},
    {"I": 2, "T": 4, "P": 4},
]


def test_domain_set_and_back():
    for text in (
        "(i, t)",
        "(t: 1 to T)",
        "(t: P - 1 to T - 1)",
        "(i: 1 to I, t: 0 to min(T, i))",
        "(t where t mod 3 = 1)",
    ):
        points = isl.domain_set(SPACE, domain(text))
        assert str(isl.set_to_domain(points, domain(text).dims, SPACE)) == text


def test_a_set_of_scattered_points_is_a_condition():
    points = isl.read_set("[T] -> { [t] : 0 <= t < T and (t = 0 or t = T - 1) }")
    assert str(isl.set_to_domain(points, ("t",), SPACE)) == "(t where t = 0 or t = T - 1)"


def test_access_map_and_counterexample():
    read = isl.access_map(SPACE, domain("(t)"), index("[t - 1]"), domain("(t)"))
    outside = read.range().subtract(isl.domain_set(SPACE, domain("(t)")))
    assert isl.counterexample(outside) == "t = -1 (I = 0, P = 1, T = 1)"
    assert isl.counterexample(outside.intersect(isl.domain_set(SPACE, domain("(t)")))) is None
    with pytest.raises(isl.IndexExpressionError, match=r"the index \[t\] has 1 entries"):
        isl.access_map(SPACE, domain("(t)"), index("[t]"), domain("(i, t)"))


@pytest.mark.parametrize(
    ("condition", "proved"),
    [
        ("t < T", True),
        ("t < T - 1", False),
        ("min(t + 3, T - 1) < T", True),
        ("t mod 8 < 8 and t floordiv 2 <= t", True),
        ("I * T >= 0", True),
        ("I * T + T = T * (I + 1)", True),
        ("t * T >= 0", False),
        ("P ne 0", True),
        ("t ne P", False),
    ],
)
def test_prove(condition: str, proved: bool):
    assert isl.prove(cond(condition), SPACE, domain("(t)")) is proved


def test_equal():
    assert isl.equal(expr("max(0, T - t)"), expr("T - t"), SPACE, domain("(t)"))
    assert not isl.equal(expr("max(1, T - t - 1)"), expr("T - t - 1"), SPACE, domain("(t)"))
    assert isl.equal(expr("min(t + 1, 64)"), expr("t + 1 - max(0, t - 63)"), SPACE)


def test_an_expression_that_is_not_affine_is_named():
    with pytest.raises(isl.NotAffine, match=r"`T \* t` multiplies or divides the dim `t`"):
        isl.access_map(SPACE, domain("(t)"), index("[t * T]"), domain("(s)"))


@pytest.mark.parametrize(
    "text",
    [
        "min(9223372036854775807 * t, T - 1)",
        "t floordiv 1099511627777",
        "t mod 9999999999999999999",
        "t + 9999999999999",
    ],
)
def test_numbers_that_would_not_stay_within_64_bits_are_named(text: str):
    with pytest.raises(isl.NotAffine, match=r"has the number \d+: those of an index are at most 2\*\*40"):
        isl.access_map(SPACE, domain("(t)"), index(f"[{text}]"), domain("(s)"))


@pytest.mark.parametrize(
    ("value", "points", "least", "greatest"),
    [
        ("min(t + 3, T - 1)", "(t)", "min(T - 1, 3)", "T - 1"),
        ("min(t + 1, 64)", "(t)", "1", "min(T, 64)"),
        ("T - 1 - t", "(t: 2 to T)", "0", "T - 3"),
        ("t + 2 * i", "(i, t)", "0", "2 * I + T - 3"),
    ],
)
def test_bounds_of_an_expression(value: str, points: str, least: str, greatest: str):
    assert str(isl.lower_bound(expr(value), SPACE, domain(points))) == least
    assert str(isl.upper_bound(expr(value), SPACE, domain(points))) == greatest


@pytest.mark.parametrize(
    "value", ["T - t", "min(t + 3, T, I)", "max(t - 3, P, 4)", "min(T, max(t + i, P))", "max(P, min(t + i, T))"]
)
def test_a_function_of_pieces_and_back(value: str):
    function = isl.pw_aff(SPACE, ("i", "t"), expr(value))
    assert isl.same_function(isl.expression(function), function, function.domain())


@pytest.mark.parametrize("last", ["T", "T - 1"])
@pytest.mark.parametrize("first", [-1, 0, 1])
def test_a_ceiling_does_not_grow_where_it_need_not(first: int, last: str):
    """The steps of a block, but for some at both ends: of a number of pieces, none is more than a block."""
    declared = space("dims(b: (T + 99) floordiv 100)")
    rows = expr(f"max(0, min({first} - 100 * b, 0) + min(100 * b + 99, {last}))")
    found = isl.ceiling(rows, declared, domain("(b)"))
    for size in range(1, 400):
        rows_of = [evaluate(rows, {"b": b, "T": size}) for b in range(-(-size // 100))]
        assert max(rows_of) <= evaluate(found, {"T": size}) <= 101


def test_a_ceiling_of_what_names_a_bound_of_no_dim():
    rows = expr("max(0, min(T - 3 * (min(T - 1, i) floordiv 3), i - 3 * (min(T - 1, i) floordiv 3) + 1))")
    found = isl.ceiling(rows, space("dims(i: I)"), domain("(i)"))
    for size, steps in itertools.product(range(1, 9), repeat=2):
        greatest = max(evaluate(rows, {"i": i, "T": steps}) for i in range(size))
        assert greatest <= evaluate(found, {"I": size, "T": steps}) <= 3


def test_a_bound_that_is_not_there():
    with pytest.raises(isl.Inexact, match="has no maximum"):
        isl.upper_bound(expr("t"), SPACE, domain("(t where T < 0)"))


def test_products_of_bounds_stand_for_themselves():
    declared = space("dims(m: T * E // 8, t: T)")
    points = isl.domain_set(declared, domain("(m: 1 to T * E // 8)"))
    assert str(isl.set_to_domain(points, ("m",), declared)) == "(m: 1 to (E * T) floordiv 8)"
    assert isl.prove(cond("m < (T * E) floordiv 8"), declared, domain("(m)"))


def test_names_that_isl_cannot_read():
    declared = space("dims(t.x: T, floor: T, a_x2e: T)")
    points = domain("(t.x: 1 to T, floor, a_x2e where t.x < floor)")
    for name in points.dims:
        assert str(isl.decode(isl.encode(name))) == name
    assert isl.prove(cond("t.x < floor and floor < T and a_x2e >= 0"), declared, points)


READS = [
    "0:t + 1",
    "max(0, t - 2):t + 1",
    "t:T",
    "t:min(t + 3, T)",
    "t + 1:T",
    "min(t + 3, T - 1)",
    "max(t - 1, 0)",
    "max(t - 2, 0)",
    "min(t, 2)",
    "t - 1",
    "t + 1",
    "0:t + 1:4",
    "t floordiv 4",
    "t mod 3",
    "(t + 1) mod 3",
    "T - 1 - t",
    "0",
    "T - 1",
    "2 * t",
    "0:T",
    "t - t mod 4:t + 1",
    "min(t, T - 1 - t):max(t, T - 1 - t) + 1",
]


@pytest.mark.parametrize("read", READS)
def test_inverse_access(read: str):
    consumer, producer = domain("(t)"), domain("(s)")
    access = isl.access_map(SPACE, consumer, index(f"[{read}]"), producer)
    pieces = inverse(access, isl.domain_set(SPACE, producer))
    for bounds in BOUNDS:
        for point in producer.points(SPACE, bounds):
            expected = [
                (reader["t"],)
                for reader in consumer.points(SPACE, bounds)
                if point["s"] in _values(index(f"[{read}]"), {**bounds, **reader})[0]
            ]
            found = [it for guard, box in pieces for it in _readers(guard, box, {**bounds, **point})]
            assert sorted(found) == expected, (bounds, point, pieces)


def test_inverse_access_over_two_dims():
    access = isl.access_map(SPACE, domain("(i, t: 1 to T)"), index("[i, t - 1]"), domain("(i, t)"))
    ((guard, box),) = inverse(access, isl.domain_set(SPACE, domain("(i, t)")))
    assert (str(guard), index_text(box)) == ("t < T - 1", "[i, t + 1]")
    access = isl.access_map(SPACE, domain("(i, t)"), index("[i]"), domain("(i)"))
    ((guard, box),) = inverse(access, isl.domain_set(SPACE, domain("(i)")))
    assert (str(guard), index_text(box)) == ("true", "[i, 0:T]")


def test_readers_that_are_no_ranges_are_refused():
    access = isl.access_map(SPACE, domain("(i, t where t < i)"), (), Domain())
    with pytest.raises(isl.Inexact, match="are no ranges"):
        inverse(access, isl.domain_set(SPACE, Domain()))


def test_every_thread_has_its_own_context():
    found: list[object] = []

    def ask():
        found.append(isl.context())
        assert isl.prove(cond("t < T"), SPACE, domain("(t)"))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found != [isl.context()]
    assert isl.context() is isl.context()


def _values(taken: Index, point: dict[str, int]) -> list[range]:
    return [it if isinstance(it, range) else range(it, it + 1) for it in evaluate(taken, point)]


def _readers(guard: Cond, box: Index, point: dict[str, int]) -> list[tuple[int]]:
    if not evaluate(guard, point):
        return []
    (readers,) = _values(box, point)
    return [(reader,) for reader in readers]
