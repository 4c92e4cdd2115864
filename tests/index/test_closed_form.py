"""Closed forms against enumeration."""

from __future__ import annotations

import pytest
import sympy

from tempo_ir.index import Const, IndexExpressionError, cond, domain, evaluate, expr, isl, space
from tempo_ir.index.closed_form import condition_to_sympy, count, from_sympy, symbol, to_sympy, total, value

SPACE = space("dims(i: I, t: T, u: T) where P <= T")
BOUNDS = [{"I": i, "T": t, "P": p} for i in (0, 1, 3) for t in (0, 1, 2, 5, 8) for p in (0, 1, 3) if p <= t]


@pytest.mark.parametrize(
    "text", ["t - 1", "min(t + 3, T - 1) - i", "2 * (t floordiv 3) + t mod 4", "I * T * (t + 1)", "max(0, t - 63)"]
)
def test_sympy_and_back(text: str):
    there = to_sympy(expr(text))
    back = from_sympy(there)
    for bounds in BOUNDS:
        point = {**bounds, "i": 2, "t": 5}
        assert (
            evaluate(back, point)
            == evaluate(expr(text), point)
            == int(there.subs({symbol(k): v for k, v in point.items()}))
        )


def test_fractions_need_a_floor():
    t = symbol("t")
    assert from_sympy(sympy.floor(t / 2 + sympy.Rational(1, 3))) == expr("(3 * t + 2) floordiv 6")
    assert from_sympy(sympy.ceiling(t / 4)) == -(-expr("t") // 4)
    assert from_sympy(t**2) == expr("t * t")
    with pytest.raises(IndexExpressionError, match="is no index expression"):
        from_sympy(sympy.sin(t))


def test_conditions():
    assert condition_to_sympy(cond("t < T and t ne 3")) == (symbol("t") < symbol("T")) & sympy.Ne(symbol("t"), 3)


SUMS = [
    ("1", "(t)"),
    ("1", "(i, t: 1 to T)"),
    ("1", "(t, u where u <= t)"),
    ("t", "(t)"),
    ("min(t + 1, 3)", "(t)"),
    ("T - t", "(i, t)"),
    ("max(i - t, 0) + 2 * u", "(i, t, u where u < t)"),
    ("1", "(t: P - 1 to T - 1)"),
    ("t", "(t where t < P or t > P + 1)"),
    ("1", "(i: 0 to T floordiv 2, u: 0 to min(3, T - 2 * i))"),
    ("i * 2 + u", "(i, u: max(0, 1 - 3 * i) to min(3, T - 3 * i) where 3 * i <= T - 1)"),
    ("t", "(t where 2 * t >= P and 3 * t <= T + 4)"),
]


@pytest.mark.parametrize(("summand", "points"), SUMS)
def test_sums(summand: str, points: str):
    closed = total(expr(summand), SPACE, domain(points))
    for bounds in BOUNDS:
        expected = sum(evaluate(expr(summand), {**bounds, **point}) for point in domain(points).points(SPACE, bounds))
        assert value(closed, bounds) == expected, (closed, bounds)


def test_a_count_is_a_formula():
    T = symbol("T")
    assert sympy.simplify(count(SPACE, domain("(t, u where u <= t)")) - T * (T + 1) / 2) == 0
    assert total(Const(2), SPACE, domain("(t)")) == 2 * T
    assert count(SPACE, domain("(t where T < 0)")) == 0


def test_powers_are_products():
    T = symbol("T")
    for power in range(1, 9):
        assert evaluate(from_sympy(T**power), {"T": 3}) == 3**power
    with pytest.raises(IndexExpressionError, match="no index expression"):
        from_sympy(T**9)


def test_strides_have_no_closed_form():
    with pytest.raises(isl.Inexact, match="no closed form"):
        total(expr("t floordiv 2"), SPACE, domain("(t)"))
    with pytest.raises(IndexExpressionError, match="needs T"):
        value(count(SPACE, domain("(t)")), {})
