"""What Python and numpy ask of what has no value yet: an error at the user's line, with the way out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from frontend_support import error_of, record

import tempo_ir as tp

ASKED: list[tuple[str, Callable[[Any, Any, Any], object], str]] = [
    ("len(x)", lambda x, t, T: len(x), "x.shape[0] is its first extent"),
    ("bool(x)", lambda x, t, T: bool(x), "choose with tp.where"),
    ("float(x)", lambda x, t, T: float(x), "x.cast(tp.f32) converts it"),
    ("int(x)", lambda x, t, T: int(x), "x.cast(tp.i64) converts it"),
    ("range(x)", lambda x, t, T: range(x), "sizes are integers or dims"),
    ("iter(x)", lambda x, t, T: list(x), "use tp.unstack(x), or index it"),
    ("x in x", lambda x, t, T: 3 in x, "use tp.any(x == item)"),
    ("round(x, 2)", lambda x, t, T: round(x, 2), "scale it to keep digits"),
    ("math.sin(x)", lambda x, t, T: math.sin(x), "tp.sin(x), not math.sin(x)"),
    ("np.sin(x)", lambda x, t, T: np.sin(x), "np.sin cannot compute with a tensor, which has no value while the "),
    ("np.sin(x): hint", lambda x, t, T: np.sin(x), ": use tp.sin"),
    ("np.log(x)", lambda x, t, T: np.log(x), ": use tp.ln"),
    ("np.sum(x)", lambda x, t, T: np.sum(x), ": use tp.sum"),
    ("np.concatenate", lambda x, t, T: np.concatenate([x, x]), ": use tp.concat"),
    ("np.cbrt(x)", lambda x, t, T: np.cbrt(x), ": use the functions and operators of tp"),
    ("np.add.reduce(x)", lambda x, t, T: np.add.reduce(x), "np.add.reduce cannot compute with a tensor"),
    ("array += x", lambda x, t, T: np.add(np.ones(4), x, out=np.ones(4)), "`y = a + x`, not `a += x`"),
    ("np.asarray(x)", lambda x, t, T: np.asarray(x), "numpy cannot make an array of it: use the functions of tp"),
    ("np.array([x])", lambda x, t, T: np.array([x, x]), "numpy cannot make an array of it"),
    ("range(T)", lambda x, t, T: range(T), "'T' has no value while the program is recorded, so Python cannot count"),
    ("int(t)", lambda x, t, T: int(t - 1), "'t - 1' has no value while the program is recorded"),
    ("float(T)", lambda x, t, T: float(T), "(`def program(steps=4)`)"),
    ("list[t]", lambda x, t, T: [1, 2][t], 'a tensor over a dim (tp.dim("t")) has its points'),
    ("iter(T)", lambda x, t, T: list(T), "'T' cannot be iterated over"),
    ("bool(T)", lambda x, t, T: bool(T), "'T' has no value while the program is recorded: compare it"),
    ("bool(t < T)", lambda x, t, T: bool(t < 3), "'t < 3' is not known while the program is recorded"),
]


@pytest.mark.parametrize(("ask", "advice"), [pytest.param(ask, advice, id=name) for name, ask, advice in ASKED])
def test_a_value_that_is_not_there(ask, advice):
    def program():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f32[4], over=t)
        ask(x, t, T)

    assert advice in error_of(program)
    with pytest.raises(TypeError):  # Python's protocols, and numpy's, expect this class
        record(program)


def test_the_line_is_that_of_the_question():
    def program():
        t, _ = tp.dim("t")
        x = tp.input("x", tp.f32[4], over=t)
        tp.output("y", np.sin(x))

    with pytest.raises(tp.ProgramError) as raised:
        record(program)
    place = raised.value.place
    assert place is not None
    assert (place.file, place.line) == (__file__, program.__code__.co_firstlineno + 3)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "@": lambda a, b: a @ b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "&": lambda a, b: (a > 2) & (b > 2),
    "|": lambda a, b: (a > 2) | (b > 2),
    "^": lambda a, b: (a > 2) ^ (b > 2),
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_array_on_the_left_of_an_operator(operator):
    compute = OPERATORS[operator]
    array, x = np.array([1.0, 2.0, 3.0, 4.0], np.float32), np.array([4.0, 2.0, 3.0, 1.5], np.float32)

    def program():
        given = tp.input("x", tp.f32[4])
        tp.output("left", compute(array, given))
        tp.output("right", compute(given, array))
        tp.output("scalar", (3 if operator == "@" else compute(array[2], given)) * tp.ones(1))

    result = record(program).run(x=x)
    np.testing.assert_allclose(result["left"], compute(array, x), rtol=1e-6)
    np.testing.assert_allclose(result["right"], compute(x, array), rtol=1e-6)
    np.testing.assert_allclose(result["scalar"], 3 if operator == "@" else compute(array[2], x), rtol=1e-6)


def test_sizes_that_are_numbers_count():
    def program(steps=3):
        _t, T = tp.dim("t", steps)
        tp.output("y", tp.ones(len(range(T))) * float(T))

    assert record(program).run()["y"].tolist() == [3.0, 3.0, 3.0]


def test_one_dim_is_a_shape():
    def program():
        t, _ = tp.dim("t")
        tp.output("y", tp.sum(tp.ones((1, t + 1)).reshape(t + 1)))

    assert record(program).run(T=3)["y"].tolist() == [1.0, 2.0, 3.0]
