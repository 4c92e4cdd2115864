"""Sets and maps of texts that are read as rows are those that isl reads."""

from __future__ import annotations

import random

import pytest

from tempo_ir.index import isl
from tempo_ir.index.isl_rows import rows_of

TEXTS = (
    "{ [] }",
    "[T] -> { [t] }",
    "{ [t] -> [t] }",
    "[T] -> { [T] }",
    "[T] -> { h[t] : 0 <= t < T and T >= 0 }",
    "[T] -> { h[t, s] -> x[t', s'] : 1 <= t < T and t' = t - 1 and 2*s' = s + T and (s >= 0) }",
    "[T, P] -> { [c0'] -> [3, 0, c0', T - 1] : ((c0' >= 0) and (c0' < T)) and true }",
    "[T] -> { [c0'] -> [z0', z1'] : exists (t : ((0 <= t) and (t < T)) and (c0' = t - 1) and (z0' = 4*t + 3)) }",
    "[T] -> { [a] : a >= 0 and a < 1099511627776 and exists (t : t = a - T and 0 <= 2*t and 3*t < T) }",
    "{ [a] : a > 0 and a < 0 }",
    "{ [t] -> [o0'] : o0' >= -2 + t and o0' = 7 }",
)
OTHERS = (
    "{ [t] : t < 0 or t > 4 }",
    "{ [t] : t != 0 }",
    "{ [t] : not (t < 3) }",
    "{ [t] : false }",
    "{ [t] : t mod 3 = 0 }",
    "{ [t] : t = floor((s)/2) }",
    "[T] -> { [t] : t < min(T, 4) }",
    "[T] -> { [t] : t - (T - 1) < 0 }",
    "[T] -> { [t] : t -  (T - 1) < 0 }",
    "[T] -> { [t] : 2*(T + t) < 0 }",
    "[T] -> { [t] : (T - t) > 0 }",
    "[T] -> { [t] : (T + t)*2 > 0 }",
    "{ [t] : exists (a : a = t) and exists (b : b = t) }",
    "[T] -> { [a] : exists (t : a = 4*t and t < T) }",
    "[T] -> { [a] : exists (t, s : a = t + s and t >= 0 and 0 <= s < T) }",
    "[T] -> { [a] : exists (t : a = t) and a < 4 }",
    "{ [t]; [s] : s > 0 }",
    "[T] -> { : T >= 0 }",
    "{ [t] : t <= 9223372036854775808 }",
    "{ [t] : 9223372036854775807 * t >= 3 }",
)
"""What is left to isl, because it says more or is written in another way."""
WRONG = (
    "{ [t] : s < 3 }",
    "{ [t] : (t < 3 }",
    "{ [t] : t < 3 and }",
    "{ [t] : t < }",
    "{ [t] : exists (s : s = t) and s < 3 }",
    "{ [t] : exists (s : s = t) and (s < 3) }",
    "{ [t] : t t < 3 }",
    "[T, T] -> { [t] }",
)


def parts(value: isl.Set | isl.Map) -> list[list[str]]:
    basic = value.get_basic_sets() if isinstance(value, isl.Set) else value.get_basic_maps()
    return [[str(constraint) for constraint in each.get_constraints()] for each in basic]


def check(text: str) -> None:
    kind, read = (isl.Map, isl.read_map) if " -> " in text[text.index("{") :] else (isl.Set, isl.read_set)
    found, expected = read(text), kind.read_from_str(isl.context(), text)
    assert found.is_equal(expected)
    assert found.get_space().is_equal(expected.get_space())
    if "!=" not in text:
        assert (str(found), parts(found)) == (str(expected), parts(expected))


@pytest.mark.parametrize("text", TEXTS)
def test_rows_are_what_isl_reads(text: str):
    assert rows_of(text) is not None
    check(text)


@pytest.mark.parametrize("text", OTHERS)
def test_what_else_there_is_is_left_to_isl(text: str):
    assert rows_of(text) is None


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_text_of_isls_is_refused(text: str):
    assert rows_of(text) is None
    with pytest.raises(isl.IslError):
        isl.read_set(text)


@pytest.mark.parametrize(
    "text",
    [
        "[T] -> { [t] : 0 <= t < T and (t != 0) }",
        "[T] -> { [t] -> [t'] : 0 <= t < T and t != T - 1 and t' = t - 1 }",
        "[T] -> { [c0'] -> [z0'] : exists (t : ((t < T) and (t != 3) and (0 <= t)) and (c0' = t - 1) and (z0' = 4)) }",
        "{ [t] : t = 0 and t != 0 }",
        "{ [t] : 0 < t != 3 }",
        "{ [t, s] : t != 0 and s != 0 }",
        "{ [t] : t != 0 or t < 4 }",
    ],
)
def test_what_is_not_equal_is_less_or_greater(text: str):
    check(text)


def test_random_texts():
    draw = random.Random(0)

    def linear(names: list[str]) -> str:
        terms = [f"{draw.randint(1, 5)}*{name}" if draw.random() < 0.3 else name for name in draw.sample(names, 2)]
        return draw.choice(["", "-"]) + draw.choice([" + ", " - "]).join([*terms, str(draw.randint(0, 9))])

    def conjunction(names: list[str]) -> str:
        signs = [draw.choice(["<", "<=", ">", ">=", "="]) for _ in range(draw.randint(1, 4))]
        compared = [f"{linear(names)} {sign} {linear(names)}" for sign in signs]
        return " and ".join(f"({each})" if draw.random() < 0.5 else each for each in compared)

    for _ in range(200):
        names = ["T", "P", "t", "s"]
        body = conjunction(names)
        if draw.random() < 0.3:
            body += f" and ({linear(names)} != {linear(names)})"
        if draw.random() < 0.5:
            body = f"({body}) and exists (e : {conjunction([*names, 'e'])} and (e = {linear(names)}))"
        check(f"[P, T] -> {{ {draw.choice(['[t, s]', 'x[t] -> y[s]', '[t, s] -> [t - 1, P]'])} : {body} }}")
