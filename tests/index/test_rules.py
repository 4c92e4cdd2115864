"""Every simplification rule, proved by brute force over small expressions and values."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from tempo_ir.index import Binary, Compare, Const, Domain, Expr, Facts, MinMax, Sym, cond, domain, evaluate, expr, space
from tempo_ir.index.expr import Extreme
from tempo_ir.index.rules import (
    DIVISION_RULES,
    EXTREME_RULES,
    NO_FACTS,
    PROGRAM_FACTS,
    DivisionRule,
    ExtremeRule,
    at_least_zero,
    extreme,
    from_terms,
    rises,
    simplify,
    terms,
)

NAMES = ("s", "t")
POINTS: list[dict[str, int]] = [
    dict(zip(NAMES, values, strict=True)) for values in itertools.product(range(-7, 8), repeat=2)
]
DIVISORS = (-3, -2, -1, 1, 2, 3, 4, 6)


def small_expressions() -> Iterator[Expr]:
    """Sums of up to two multiples and a constant, and quotients and remainders of them."""
    for a, b, c in itertools.product((-3, -1, 0, 1, 2, 6), (-2, 0, 4), (-5, 0, 3)):
        yield a * Sym("s") + b * Sym("t") + c
    for inner, divisor in itertools.product((Sym("s"), Sym("s") + 1, 2 * Sym("t") - Sym("s")), (2, 3, 6)):
        yield Binary("//", inner, Const(divisor))
        yield Binary("%", inner, Const(divisor))
        yield 3 * Binary("%", inner, Const(divisor)) + Sym("t")


EXPRESSIONS = tuple(dict.fromkeys(small_expressions()))


def same(left: Expr, right: Expr) -> bool:
    return all(evaluate(left, point) == evaluate(right, point) for point in POINTS)


@pytest.mark.parametrize("rule", DIVISION_RULES, ids=lambda rule: f"{rule.op} {rule.law}")
def test_division_rule(rule: DivisionRule):
    applied = 0
    for dividend, divisor in itertools.product(EXPRESSIONS, DIVISORS):
        result = rule.apply(dividend, divisor)
        if result is not None:
            applied += 1
            assert same(result, Binary(rule.op, dividend, Const(divisor))), (dividend, divisor, result)
    assert applied


@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("rule", EXTREME_RULES, ids=lambda rule: rule.law)
def test_extreme_rule(rule: ExtremeRule, op: Extreme):
    pool = [
        *EXPRESSIONS[::9],
        Const(2),
        Const(5),
        MinMax("min", (Sym("s"), Sym("t"))),
        MinMax("max", (Sym("s"), Const(2))),
    ]
    applied = 0
    for args in itertools.product(pool, repeat=2):
        result = rule.apply(op, (*args, Sym("s")), NO_FACTS)
        applied += result != (*args, Sym("s"))
        assert same(MinMax(op, result), MinMax(op, (*args, Sym("s")))), (op, args, result)
    assert applied


def test_normal_form_of_sums_and_products():
    chosen = random.Random(0).sample(EXPRESSIONS, 12)
    for left, right in itertools.product(chosen, repeat=2):
        for raw in (Binary("+", left, right), Binary("-", left, right), Binary("*", left, right)):
            assert same(from_terms(terms(raw)), raw)
            assert simplify(simplify(raw)) == simplify(raw)


def random_expression(source: random.Random, depth: int) -> Expr:
    if depth == 0:
        return source.choice([Sym("s"), Sym("t"), Const(source.randint(-4, 9))])
    left = random_expression(source, depth - 1)
    right = random_expression(source, depth - 1)
    divisor = Const(source.choice([-3, 1, 2, 4, 5]))
    operations = (
        Binary("+", left, right),
        Binary("-", left, right),
        Binary("*", left, right),
        Binary("//", left, divisor),
        Binary("%", left, divisor),
        MinMax("min", (left, right)),
        MinMax("max", (left, right)),
    )
    return source.choice(operations)


def test_random_expressions_keep_their_value_and_their_text():
    source = random.Random(1)
    for _ in range(300):
        raw = random_expression(source, 3)
        simplified = simplify(raw)
        assert same(raw, simplified), (raw, simplified)
        assert expr(str(simplified)) == simplified
        assert expr(str(raw)) == simplified


@pytest.mark.parametrize(
    ("value", "under_facts"),
    [
        ("max(0, t + 1)", "t + 1"),
        ("max(0, T - t)", "T - t"),
        ("min(t, T)", "t"),
        ("min(t + 3, T + 3)", "t + 3"),
        ("max(0, min(T - t, 3))", "min(T - t, 3)"),
        ("t floordiv T", "t floordiv T"),
        ("m mod 4", "m"),
        ("(m + 4) floordiv 4", "1"),
        ("max(u, i)", "i"),
        ("max(t, i)", "max(i, t)"),
    ],
)
def test_facts_of_a_domain(value: str, under_facts: str):
    declared = space("dims(i: I, u: I, t: T, m: 4) where P <= T")
    points = domain("(i, u: 0 to i, t, m)")
    assert str(points.simplify(expr(value), declared)) == under_facts
    _check_at_points(expr(value), points.simplify(expr(value), declared), points)


def _check_at_points(before: Expr, after: Expr, points: Domain):
    declared = space("dims(i: I, u: I, t: T, m: 4) where P <= T")
    for bound in range(4):
        bounds = {"I": 3, "T": bound, "P": 0}
        for point in points.points(declared, bounds):
            assert evaluate(before, {**bounds, **point}) == evaluate(after, {**bounds, **point})


@pytest.mark.parametrize(
    ("condition", "decided"),
    [
        ("t >= 0", "true"), ("t < 0", "false"), ("t = T", "false"), ("t ne T", "true"), ("t > 0", "t > 0"),
        ("t = 0", "t = 0"), ("t ne 0", "t ne 0"), ("t = T - 1", "t = T - 1"), ("t ne T - 1", "t ne T - 1"),
        ("t <= T - 1", "true"), ("t >= T - 1", "t >= T - 1"), ("t > T", "false"), ("t >= T", "false"),
        ("t < T", "true"), ("min(0, t) < 1", "true"), ("max(0, t) = t + 1", "false"),
    ],
)  # fmt: skip
def test_facts_decide_conditions(condition: str, decided: str):
    facts = Facts((("t", Const(0), Sym("T") - 1),), nonnegative=True)
    assert str(simplify(cond(condition), facts)) == decided
    raw = cond(condition)
    assert isinstance(raw, Compare)


@pytest.mark.parametrize(
    ("text", "grows"),
    [
        ("T", True), ("T - 1", True), ("2 * T + P", True), ("T floordiv 3", True), ("min(T - 2, P)", True),
        ("max(0, T - P)", True), ("T * P", True), ("T * (T floordiv 2)", True), ("P - 4", True), ("7", True),
        ("P - T", False), ("T mod 4", False), ("max(0, P - T)", False), ("P floordiv T", False), ("T * P - T", False),
        ("-2 * T", False), ("min(T, P - T)", False),
    ],
)  # fmt: skip
def test_what_grows_with_a_symbol(text: str, grows: bool):
    value = expr(text)
    assert rises(value, "T") == grows
    rows = [[evaluate(value, {"T": T, "P": P}) for T in range(1, 12)] for P in range(8)]
    assert not grows or all(row == sorted(row) for row in rows)


@pytest.mark.parametrize(
    ("value", "under_facts"),
    [("t floordiv 5", "0"), ("t mod 5", "t"), ("t floordiv 4", "t floordiv 4"), ("t mod 4", "t mod 4")],
)
def test_facts_decide_divisions(value: str, under_facts: str):
    facts = Facts((("t", Const(0), Const(4)),), nonnegative=True)
    assert str(simplify(expr(value), facts)) == under_facts


@pytest.mark.parametrize("value", ["max(t, min(t, s))", "min(t, max(t, s))", "max(t, min(s, t, 4))"])
def test_an_extreme_of_its_own_argument_is_that(value: str):
    assert expr(value) == Sym("t")


def test_facts_are_not_guessed():
    assert at_least_zero(expr("t"), PROGRAM_FACTS)
    assert not at_least_zero(expr("t"), NO_FACTS)
    assert not at_least_zero(expr("T - t"), PROGRAM_FACTS)
    assert at_least_zero(expr("3 - t mod 4"), NO_FACTS)
    assert at_least_zero(expr("T * t + t floordiv 2"), PROGRAM_FACTS)
    assert extreme("max", (Const(0), expr("T - t")), PROGRAM_FACTS) == expr("max(0, T - t)")
