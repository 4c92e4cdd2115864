"""Definition by cases: recurrences in both directions, first match, inverse of the index, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from frontend_support import error_of, record, run

import tempo_ir as tp


def test_the_first_case_that_holds_wins() -> None:
    def program():
        t, T = tp.dim("t")
        x = tp.tensor("x", tp.i64[()], over=t)
        x[t < 3] = 1
        x[t < 5] = 2
        x[...] = x[t - 1] + 1
        tp.output("x", x)

    assert run(program, T=8)["x"].tolist() == [1, 1, 1, 2, 2, 3, 4, 5]
    assert run(program, T=0)["x"].tolist() == []


def test_recurrences() -> None:
    def program():
        t, T = tp.dim("t")
        x, fibonacci = tp.tensor("x", tp.i64[()], over=t), tp.tensor("fibonacci", tp.i64[()], over=t)
        x[0], x[t + 1] = 0, 2 * x + 1
        fibonacci[0], fibonacci[1] = 0, 1
        fibonacci[t] = fibonacci[t - 1] + fibonacci[t - 2]
        tp.output("x", x)
        tp.output("fibonacci", fibonacci)

    out = run(program, T=10)
    assert out["x"].tolist() == [2**t - 1 for t in range(10)]
    assert out["fibonacci"].tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]


def test_a_recurrence_over_two_dims() -> None:
    def program():
        (i, I), (j, J) = tp.dims("i", "j")
        x = tp.tensor("x", tp.i64[()], over=(i, j))
        x[0, 0] = 1
        x[i, j + 1] = x + 1
        x[i + 1, 0] = x[i, J - 1] + 1
        tp.output("x", x)

    np.testing.assert_array_equal(run(program, I=3, J=3)["x"], np.arange(1, 10).reshape(3, 3))


def test_backwards() -> None:
    def program():
        t, T = tp.dim("t")
        r = tp.input("r", tp.f32[()], over=t)
        g = tp.tensor("g", tp.f32[()], over=t)
        g[T - 1] = r
        g[t] = r + 0.5 * g[t + 1]
        h = tp.tensor("h", tp.f32[()], over=t)
        h[-1] = r
        h[t - 1] = r[t - 1] + 0.5 * h
        tp.output("g", g)
        tp.output("h", h)

    out = run(program, r=np.array([1, 2, 3, 4], np.float32))
    assert out["g"].tolist() == [3.25, 4.5, 5, 4]
    assert out["h"].tolist() == [3.25, 4.5, 5, 4]


def test_the_index_of_a_case_is_inverted() -> None:
    def program():
        (i, I), (j, J) = tp.dims("i", "j")
        a = tp.input("a", tp.i64[()], over=(i, j))
        reversed_, swapped, skewed = (tp.tensor(name, tp.i64[()], over=(i, j)) for name in ("r", "s", "k"))
        reversed_[i, J - 1 - j] = a
        swapped[j, i] = a
        swapped[...] = -1
        skewed[i, j + i] = a
        skewed[...] = -1
        for name, value in (("reversed", reversed_), ("swapped", swapped), ("skewed", skewed)):
            tp.output(name, value)

    a = np.arange(6).reshape(2, 3)
    out = run(program, a=a)
    np.testing.assert_array_equal(out["reversed"], a[:, ::-1])
    np.testing.assert_array_equal(out["swapped"], [[0, 3, -1], [1, 4, -1]])
    np.testing.assert_array_equal(out["skewed"], [[0, 1, 2], [-1, 3, 4]])


def test_cases_print_as_conditions_and_reads() -> None:
    def program():
        (i, _), (t, _), (_, P) = *tp.dims("i", "t"), tp.dim("p")
        a = tp.input("a", tp.f32[4], over=(i, t))
        x = tp.tensor("x", tp.f32[4], over=(i, t))
        x[i, 0] = 0.0
        x[i, t < P] = a
        x[i, t + 2] = a
        x[...] = 1.0
        tp.output("x", x)

    (line,) = (line.strip() for line in str(record(program)).splitlines() if "sdg.merge" in line)
    assert line.startswith("%x = sdg.merge {t = 0 : %0, t < P : %a[i, t], t >= 2 : %a[i, t - 2], true : %1} in (i, t)")


def test_a_case_may_read_what_is_defined_later() -> None:
    def program():
        t, T = tp.dim("t")
        o, act = tp.tensor("o", tp.f32[()], over=t), tp.tensor("act", tp.f32[()], over=t)
        o[0], o[t + 1] = 1.0, act * 2.0
        act[...] = o + 1.0
        tp.output("act", act)

    assert run(program, T=4)["act"].tolist() == [2, 5, 11, 23]


def test_only_needed_points_are_computed() -> None:
    calls: list[int] = []

    class Counter:
        def value(self, t):
            calls.append(int(t))
            return np.float32(t)

    def program():
        t, T = tp.dim("t")
        x = tp.host(Counter).value(t, returns=tp.f32[()])
        tp.output("first", x[0])

    assert run(program, T=5)["first"] == 0
    assert calls == [0]


def scalar_program(define):
    def program():
        t, T = tp.dim("t")
        x = tp.tensor("x", tp.f32[()], over=t)
        a = tp.input("a", tp.f32[()], over=t)
        define(x, a, t, T)
        tp.output("x", x)

    return program


def test_a_gap_names_the_lines_of_all_cases() -> None:
    def gap(x, a, t, T):
        x[0], x[3] = a, a

    text = error_of(scalar_program(gap))
    assert "no case holds at t = " in text
    assert text.count("test_cases.py:") == 2


def test_errors_of_definitions() -> None:
    def undefined(x, a, t, T):
        pass

    def dtype(x, a, t, T):
        x[...] = a.cast(tp.f64)

    def shape(x, a, t, T):
        x[...] = tp.stack([a, a])

    def index(x, a, t, T):
        x[2 * t] = a

    def tensor_index(x, a, t, T):
        x[a.cast(tp.i64)] = a

    def arity(x, a, t, T):
        x[t, 0] = a

    def slices(x, a, t, T):
        x[0:3] = a

    def integer(x, a, t, T):
        x[...] = "text"

    assert "'x' is declared and never defined" in error_of(scalar_program(undefined))
    text = error_of(scalar_program(dtype))
    assert "'x' is f32 (tests/frontend/test_cases.py:" in text
    assert "this case is f64: write .cast(tp.f32), or declare it tp.f64" in text
    assert "has the shape () at each point" in error_of(scalar_program(shape))
    assert "cannot tell which point '2 * t' of 'x' belongs to" in error_of(scalar_program(index))
    assert "not at a Tensor" in error_of(scalar_program(tensor_index))
    assert "its index has one entry per dim (t), got 2" in error_of(scalar_program(arity))
    assert "not at a slice" in error_of(scalar_program(slices))
    assert "expected a tensor, a dim, a number or a numpy array, got str" in error_of(scalar_program(integer))


def test_a_value_that_varies_over_a_foreign_dim_is_refused() -> None:
    def program():
        (t, T), (e, E) = tp.dims("t", "e")
        x = tp.tensor("x", tp.f32[()], over=t)
        a = tp.input("a", tp.f32[()], over=(t, e))
        x[...] = a

    assert error_of(program) == (
        "'x' varies over (t), the value of this case also over e: reduce it over e, or read it at one point"
    )


@pytest.mark.parametrize("value", [1.5, True])
def test_numbers_take_the_type_of_the_tensor_or_are_refused(value) -> None:
    def program():
        t, T = tp.dim("t")
        x = tp.tensor("x", tp.i64[()], over=t)
        x[...] = value
        tp.output("x", x)

    if isinstance(value, float):
        assert "the number 1.5 does not fit a tensor of i64" in error_of(program)
    else:
        assert run(program, T=2)["x"].tolist() == [1, 1]
