"""Declarations and domains: text, points, errors."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from tempo_ir.index import (
    Const,
    Domain,
    IndexExpressionError,
    Space,
    cond,
    domain,
    evaluate,
    expr,
    parse_domain,
    parse_space,
    space,
)

SPACES = [
    "dims()",
    "dims(i: I, t: T, e: 4) where 1 <= P <= T",
    "dims(m: (T + 3) floordiv 8)",
    "dims(t: T) where T >= 1",
]
DOMAINS = [
    "()",
    "(i, t)",
    "(t: 1 to T)",
    "(i, t where t < i)",
    "(i, t: P - 1 to min(T - 1, i) where t ne 3 or i >= 2)",
    "(where T >= 2)",
]


@pytest.mark.parametrize("text", SPACES)
def test_space_text(text: str):
    assert str(space(text)) == text
    assert str(parse_space(Parser(Context(), text + " {"))) == text


@pytest.mark.parametrize("text", DOMAINS)
def test_domain_text(text: str):
    assert str(domain(text)) == text
    assert str(parse_domain(Parser(Context(), text + " :"))) == text


def test_a_program_may_declare_nothing():
    assert parse_space(Parser(Context(), "{")) == Space()


def test_parameters_and_bounds():
    declared = space("dims(i: I, t: T, m: T * K // 8, e: 4) where 1 <= P <= T")
    assert declared.names == ("i", "t", "m", "e")
    assert declared.params == ("I", "T", "K", "P")
    assert declared.bound("m") == expr("(K * T) floordiv 8")
    assert declared.order({"t", "i", "x"}) == ("i", "t")
    with pytest.raises(IndexExpressionError, match="`x` is no dim of this program; it declares i, t, m, e"):
        declared.bound("x")


def test_ranges():
    declared = space("dims(i: I, t: T)")
    points = domain("(i, t: 1 to i)")
    assert (points.lower("i", declared), points.upper("i", declared)) == (Const(0), expr("I"))
    assert (points.lower("t", declared), points.upper("t", declared)) == (Const(1), expr("i"))


@pytest.mark.parametrize("text", DOMAINS)
def test_points_are_those_of_the_condition(text: str):
    declared = space("dims(i: I, t: T) where P <= T")
    points = domain(text)
    for bounds in ({"I": 3, "T": 4, "P": 2}, {"I": 0, "T": 4, "P": 1}, {"I": 2, "T": 1, "P": 1}):
        everything = Domain(points.dims).points(declared, bounds)
        expected = [point for point in everything if evaluate(points.condition(declared), {**bounds, **point})]
        assert list(points.points(declared, bounds)) == expected


def test_a_narrower_range_never_leaves_the_declared_one():
    assert list(domain("(t: -2 to T + 5)").points(space("dims(t: T)"), {"T": 2})) == [{"t": 0}, {"t": 1}]
    declared, points = space("dims(i: I, t: T)"), domain("(i: -1 to I + 1, t: -1 to T + 1)")
    held = points.condition(declared)
    for i in range(-1, 3):
        for t in range(-1, 4):
            inside = 0 <= i < 2 and 0 <= t < 3
            assert evaluate(held, {"I": 2, "T": 3, "i": i, "t": t}) == inside


def test_rename():
    assert domain("(i, t: 1 to i where t < i)").rename({"i": "j", "t": "s"}) == domain("(j, s: 1 to j where s < j)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dims(t: T, t: T)", "the dim `t` is declared twice"),
        ("dims(t: -3)", "the dim `t` has the bound -3: a bound is 0 or more"),
        ("dims(i: I, t: i)", "the bound `i` of the dim `t` mentions the dim `i`"),
        ("dims(t: T) where t < 3", "mentions the dim `t`: it is about bounds only"),
    ],
)
def test_broken_declarations(text: str, message: str):
    with pytest.raises(IndexExpressionError, match=message):
        space(text)
    with pytest.raises(ParseError, match=message):
        parse_space(Parser(Context(), text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(t, t)", "a dim is named twice"),
        ("(t: 1)", "expected 'to' and the end"),
        ("(t", "expected"),
    ],
)
def test_broken_domains(text: str, message: str):
    with pytest.raises(IndexExpressionError, match=message):
        domain(text)


def test_a_range_is_of_a_dim():
    with pytest.raises(IndexExpressionError, match="the range of `t` is not of a dim"):
        Domain(("i",), (("t", Const(0), Const(1)),))


def test_simplify_within_a_domain():
    declared = space("dims(t: T) where P <= T")
    assert domain("(t: 1 to T)").simplify(cond("t >= 1 and t < P"), declared) == cond("t < P")
