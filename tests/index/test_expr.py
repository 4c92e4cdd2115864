"""Expressions, slices and conditions: text, structure, substitution, evaluation, composition."""

from __future__ import annotations

import itertools

import pytest
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from tempo_ir.index import (
    FALSE,
    TRUE,
    Binary,
    Const,
    IndexExpressionError,
    Slice,
    Sym,
    as_expr,
    compare,
    compose,
    cond,
    conj,
    disj,
    entry,
    evaluate,
    expr,
    free_symbols,
    index,
    index_text,
    maximum,
    minimum,
    negate,
    parse_cond,
    parse_entry,
    parse_expr,
    parse_index,
    substitute,
)

t, T, i = Sym("t"), Sym("T"), Sym("i")

EXPRESSIONS = {
    "t - 1": "t - 1",
    "T-1-t": "T - t - 1",
    "1 - t": "1 - t",
    "-t": "-t",
    "-(t // 2)": "-(t floordiv 2)",
    "2*t + 3*t": "5 * t",
    "-2*(t + 1)": "-2 * t - 2",
    "t // 2": "t floordiv 2",
    "t % 8": "t mod 8",
    "(2*t + 3) // 2": "t + 1",
    "(t + 1) % 8 * 2": "2 * ((t + 1) mod 8)",
    "-t // 3": "(-t) floordiv 3",
    "t - 8*(t//8)": "t mod 8",
    "t % 8 + 8*(t//8)": "t",
    "min(t + n, T - 1)": "min(T - 1, n + t)",
    "1 + max(0, t - 63)": "max(1, t - 62)",
    "t + 1 - max(0, t - 63)": "min(t + 1, 64)",
    "min(t, t + 1, 3, 4)": "min(t, 3)",
    "max(t, max(t, i))": "max(i, t)",
    "T * (t + 1)": "T + T * t",
    "block.t + 1": "block.t + 1",
    "t // n": "t floordiv n",
}
ENTRIES = {"0:t+1": "0:t + 1", "max(0,t-3):t+1": "max(0, t - 3):t + 1", "0:T:3": "0:T:3", "t": "t"}
CONDITIONS = {
    "t == 0": "t = 0",
    "1 <= P <= T": "1 <= P <= T",
    "1 <= P and P <= T": "1 <= P <= T",
    "t < P and i > 0 or t != 3": "t < P and i > 0 or t ne 3",
    "(t < P or i > 0) and t >= 3": "(t < P or i > 0) and t >= 3",
    "not (t < 3 and i = 0)": "t >= 3 or i ne 0",
    "not (t < 3 or not i = 0)": "t >= 3 and i = 0",
    "t < t + 1": "true",
    "3 <= 2 or (t + 1) * 2 < 8": "2 * t + 2 < 8",
}


@pytest.mark.parametrize(("given", "canonical"), EXPRESSIONS.items())
def test_expression_text(given: str, canonical: str):
    assert str(expr(given)) == canonical
    assert expr(canonical) == expr(given)


@pytest.mark.parametrize(("given", "canonical"), ENTRIES.items())
def test_entry_text(given: str, canonical: str):
    assert str(entry(given)) == canonical
    assert entry(canonical) == entry(given)


@pytest.mark.parametrize(("given", "canonical"), CONDITIONS.items())
def test_condition_text(given: str, canonical: str):
    assert str(cond(given)) == canonical
    assert cond(canonical) == cond(given)


def test_xdsl_parsers_read_the_canonical_text():
    text = ", ".join((*EXPRESSIONS.values(), *ENTRIES.values(), *CONDITIONS.values()))
    parser = Parser(Context(), text)
    for canonical in EXPRESSIONS.values():
        assert parse_expr(parser) == expr(canonical)
        parser.parse_punctuation(",")
    for canonical in ENTRIES.values():
        assert parse_entry(parser) == entry(canonical)
        parser.parse_punctuation(",")
    for canonical in CONDITIONS.values():
        assert parse_cond(parser) == cond(canonical)
        parser.parse_optional_punctuation(",")


def test_a_condition_ends_before_a_closing_bracket():
    parser = Parser(Context(), "<t > 0> <t <= 0>")
    for text in ("t > 0", "t <= 0"):
        with parser.in_angle_brackets():
            assert parse_cond(parser) == cond(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t +", "expected a name, at the end"),
        ("t 1", "expected nothing more, at '1'"),
        ("min()", "min needs an argument"),
        ("t // 0", "the divisor is zero"),
        ("to + 1", "'to' is a word of index expressions"),
        ("(t < 1) + 2", "got the condition `t < 1`"),
        ("t < 1", "expected nothing more, at '<'"),
    ],
)
def test_broken_text_is_refused(text: str, message: str):
    with pytest.raises(IndexExpressionError, match="of `") as raised:
        expr(text)
    assert message in str(raised.value)


def test_broken_text_is_refused_with_its_place_by_xdsl():
    with pytest.raises(ParseError, match="no '/'"):
        parse_expr(Parser(Context(), "t / 2"))
    with pytest.raises(ParseError, match="expected the step"):
        parse_index(Parser(Context(), "[0:t:0]"))


def test_operators_simplify_and_constructors_do_not():
    assert t + 1 - 1 == t
    assert 2 * (t + 1) - t == t + 2
    assert (4 * t + 2) // 2 == 2 * t + 1
    assert Binary("+", t, Const(0)) != t
    assert 7 % (t - t + 4) == Const(3)
    assert as_expr("t + 1") == as_expr(t) + as_expr(1)
    with pytest.raises(IndexExpressionError, match="divides by zero"):
        _ = t // 0
    with pytest.raises(TypeError, match="not of str"):
        _ = t + "1"  # pyright: ignore[reportOperatorIssue]


@pytest.mark.parametrize(
    ("text", "extent"),
    [
        ("0:t + 1", "t + 1"),
        ("t:t + 1", "1"),
        ("t:t", "0"),
        ("0:T", "T"),
        ("t:T", "max(0, T - t)"),
        ("max(0, t - 63):t + 1", "min(t + 1, 64)"),
        ("0:T:3", "(T + 2) floordiv 3"),
        ("4 * m:4 * m + 4", "4"),
        ("max(4 * m, t - 3):max(4 * m + 4, t + 1)", "4"),
    ],
)
def test_extent_of_a_slice(text: str, extent: str):
    taken = entry(text)
    assert isinstance(taken, Slice)
    assert str(taken.extent) == extent
    for point in _points(("t", "T", "m"), range(0, 6)):
        assert evaluate(taken.extent, point) == len(evaluate(taken, point))


def test_a_step_is_positive():
    with pytest.raises(IndexExpressionError, match="the step of the slice `0:t:0` is 0"):
        Slice(Const(0), t, 0)


def test_evaluate_and_substitute_agree():
    values = [expr("min(t + 3, T - 1) - t mod 3"), expr("(T * t) floordiv 4"), cond("t < T and not (t = 2 or i >= T)")]
    bindings = {"t": expr("2 * s + 1"), "T": expr("s + N")}
    for value, point in itertools.product(values, _points(("s", "N", "i"), range(-2, 4))):
        inner = {name: evaluate(bound, point) for name, bound in bindings.items()}
        assert evaluate(substitute(value, bindings), point) == evaluate(value, {**point, **inner})
    assert evaluate(index("[t - 1, 0:t:2]"), {"t": 5}) == (4, range(0, 5, 2))


def test_substitution_is_simultaneous():
    assert substitute(expr("t - i"), {"t": i, "i": t}) == i - t


def test_evaluation_names_what_is_missing():
    with pytest.raises(IndexExpressionError, match="`T` has no value; known are t"):
        evaluate(expr("t + T"), {"t": 1})
    with pytest.raises(IndexExpressionError, match="divides by zero"):
        evaluate(expr("t floordiv n"), {"t": 1, "n": 0})


def test_free_symbols():
    assert free_symbols(index("[i, 0:min(t, T)]")) == {"i", "t", "T"}
    assert free_symbols(cond("t < P or true")) == frozenset()


def test_connectives():
    a, b = compare("<", t, T), compare("=", i, 0)
    assert conj() == TRUE
    assert disj() == FALSE
    assert conj(a, TRUE, conj(b, a)) == conj(a, b)
    assert disj(a, FALSE, a) == a
    assert conj(a, FALSE) == FALSE
    assert negate(negate(conj(a, disj(b, a)))) == conj(a, disj(b, a))
    assert minimum(3, t - t) == Const(0)
    assert maximum(t) == t


@pytest.mark.parametrize(
    ("producer", "dims", "use", "composed"),
    [
        ("[t - 1]", "t", "[2 * s]", "[2 * s - 1]"),
        ("[i, t - 1]", "i t", "[i, 0:T]", "[i, -1:T - 1]"),
        ("[t + i, i]", "i t", "[3, s]", "[s + 3, 3]"),
        ("[0:t + 1]", "t", "[s]", "[0:s + 1]"),
        ("[t + i]", "i t", "[j, a:b:2]", "[a + j:b + j:2]"),
        ("[t, 0:4]", "t", "[a:b]", "[a:b, 0:4]"),
        ("[]", "", "[]", ""),
        ("[0:4, t]", "t", "[a:b]", None),
        ("[T - t]", "t", "[a:b]", None),
        ("[2 * t]", "t", "[a:b]", None),
        ("[0:t]", "t", "[a:b]", None),
        ("[t, t]", "t", "[a:b]", None),
        ("[0]", "t", "[a:b]", None),
        ("[t, i]", "i t", "[a:b, c:d]", None),
        ("[t + i]", "i t", "[a:b, c:d]", None),
    ],
)
def test_compose(producer: str, dims: str, use: str, composed: str | None):
    result = compose(index(producer), tuple(dims.split()), index(use))
    assert (None if result is None else index_text(result)) == composed


def _points(names: tuple[str, ...], values: range):
    for chosen in itertools.product(values, repeat=len(names)):
        yield dict(zip(names, chosen, strict=True))
