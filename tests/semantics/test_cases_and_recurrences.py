"""Cases 8 to 15: definition by cases, recurrences in every direction, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from semantics_support import SIZES, Everywhere, per_step, ramp, refused

import tempo_ir as tp


def test_08_the_first_case_that_holds_wins() -> None:
    def program():
        t, T = tp.dim("t")
        x = tp.tensor("x", tp.i64[()], over=t)
        x[t < 3] = 1
        x[t < 5] = 2
        x[...] = x[t - 1] + 1
        tp.output("x", x)

    run = Everywhere(program)
    for T in SIZES:
        run.gives({"x": [*[1, 1, 1, 2, 2][:T], *range(3, T - 2)]}, T=T)
    run.gives({"x": [1, 1, 1, 2, 2, 3, 4, 5]}, T=8)


def test_08_odd_conditions() -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[()], over=t)
        x, y = tp.tensor("x", tp.f32[()], over=t), tp.tensor("y", tp.f32[()], over=t)
        x[t % 3 == 1] = a * 10
        x[(t == 0) | (t == T - 1)] = -a
        x[~(t < 4) & (t != 6)] = x[t - 2] + 1
        x[...] = 0.5
        y[2 * t < T] = a
        y[t // 2 == 3] = y[t - 4] - 1.0
        y[...] = y[T - 1 - t] * 2
        tp.output("x", x)
        tp.output("y", y)

    def expected(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        T = len(a)
        x, y = np.zeros(T), np.zeros(T)
        for t in range(T):
            x[t] = 10 * a[t] if t % 3 == 1 else -a[t] if t in (0, T - 1) else x[t - 2] + 1 if t >= 4 and t != 6 else 0.5
            y[t] = a[t] if 2 * t < T else y[t - 4] - 1 if t // 2 == 3 else y[T - 1 - t] * 2
        return x, y

    run = Everywhere(program)
    for T in (*SIZES, 12, 13):
        x, y = expected(ramp(T))
        run.gives({"x": x, "y": y}, a=ramp(T))


def test_09_recurrences() -> None:
    def program():
        t, T = tp.dim("t")
        x, fibonacci = tp.tensor("x", tp.i64[()], over=t), tp.tensor("fibonacci", tp.i64[()], over=t)
        x[0], x[t + 1] = 0, 2 * x + 1
        fibonacci[0], fibonacci[1] = 0, 1
        fibonacci[t] = fibonacci[t - 1] + fibonacci[t - 2]
        tp.output("x", x)
        tp.output("fibonacci", fibonacci)
        tp.output("last", tp.stack([x[T - 1], fibonacci[T - 1]]))

    run = Everywhere(program)
    numbers = [0, 1]
    while len(numbers) < 40:
        numbers.append(numbers[-1] + numbers[-2])
    for T in SIZES[1:]:
        expected = {
            "x": [2**t - 1 for t in range(T)],
            "fibonacci": numbers[:T],
            "last": [2 ** (T - 1) - 1, numbers[T - 1]],
        }
        run.gives(expected, T=T)
    run.fails((tp.ProgramError, ValueError), "T >= 1", T=0)


def test_09_a_recurrence_of_vectors_and_of_order_three() -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f64[3], over=t)
        x = tp.tensor("x", tp.f64[3], over=t)
        x[t < 3] = a
        x[...] = 0.5 * x[t - 3] + tp.tanh(x[t - 1]) * a - x[t - 2][..., 0]
        tp.output("x", x)
        tp.output("late", x[tp.maximum(t - 4, 0)])

    def expected(a: np.ndarray) -> np.ndarray:
        x = a.copy()
        for t in range(3, len(a)):
            x[t] = 0.5 * x[t - 3] + np.tanh(x[t - 1]) * a[t] - x[t - 2, 0]
        return x

    run = Everywhere(program)
    for T in SIZES:
        a = np.random.default_rng(T).normal(size=(T, 3))
        x = expected(a)
        run.gives({"x": x, "late": x[np.maximum(np.arange(T) - 4, 0)] if T else x}, a=a)


@pytest.mark.parametrize("order", ["rows", "columns", "backwards"])
def test_10_an_odometer_over_two_dims(order: str) -> None:
    def program():
        (i, I), (j, J) = tp.dims("i", "j")
        x = tp.tensor("x", tp.i64[()], over=(i, j))
        if order == "rows":
            x[0, 0] = 1
            x[i, j + 1] = x + 1
            x[i + 1, 0] = x[i, J - 1] + 1
        if order == "columns":
            x[0, 0] = 1
            x[i + 1, j] = x + 1
            x[0, j + 1] = x[I - 1, j] + 1
        if order == "backwards":
            x[I - 1, J - 1] = 1
            x[i, j - 1] = x + 1
            x[i - 1, J - 1] = x[i, 0] + 1
        tp.output("x", x)

    run = Everywhere(program)
    for I, J in [(3, 3), (1, 1), (2, 7), (5, 1), (1, 5), (8, 3), (0, 0)]:
        count = np.arange(1, I * J + 1)
        by = {"rows": count.reshape(I, J), "columns": count.reshape(J, I).T, "backwards": count[::-1].reshape(I, J)}
        run.gives({"x": by[order]}, I=I, J=J)


def test_11_backwards() -> None:
    def program():
        t, T = tp.dim("t")
        r = tp.input("r", tp.f32[()], over=t)
        g, h = tp.tensor("g", tp.f32[()], over=t), tp.tensor("h", tp.f32[()], over=t)
        g[T - 1] = r
        g[t] = r + 0.5 * g[t + 1]
        h[0] = g
        h[t] = h[t - 1] + g
        tp.output("g", g)
        tp.output("h", h)
        tp.output("centred", g - g[0:T].sum())

    run = Everywhere(program)
    for T in SIZES:
        r = ramp(T) + 1
        g = per_step(T, lambda t, r=r: sum(0.5**k * r[t + k] for k in range(len(r) - t)))
        run.gives({"g": g, "h": np.cumsum(g), "centred": g - g.sum()}, r=r)
    run.gives({"g": [3.25, 4.5, 5, 4]}, r=np.array([1, 2, 3, 4], np.float32))
    assert " down to 0" in run.cpu.ir("loop")


def defined(define):
    def program():
        t, T = tp.dim("t")
        x, a = tp.tensor("x", tp.f32[()], over=t), tp.input("a", tp.f32[()], over=t)
        define(x, a, t, T)
        tp.output("x", x)

    return program


def test_12_gaps_cycles_and_unreached_cases() -> None:
    def gap(x, a, t, T):
        x[0], x[3] = a, a

    def cycle(x, a, t, T):
        x[...] = x[t + 1] + x[t - 1] + a

    def guarded_cycle(x, a, t, T):
        x[0], x[T - 1] = a, a
        x[...] = x[t + 1] + x[t - 1] + a

    def unreached(x, a, t, T):
        x[t < 3], x[t < 2] = a, a
        x[...] = a

    assert "no case holds at t = " in refused(defined(gap))
    assert "%x[t + 1]" in refused(defined(cycle))
    assert "case #1" in refused(defined(unreached))
    assert "%x needs itself" in refused(defined(guarded_cycle))


def test_13_tensors_that_feed_each_other() -> None:
    def program():
        t, T = tp.dim("t")
        o, act = tp.tensor("o", tp.f32[2], over=t), tp.tensor("act", tp.f32[2], over=t)
        o[0], o[t + 1] = 1.0, act * 0.5
        act[...] = tp.sin(o) + 1.0
        tp.output("act", act)

    run = Everywhere(program)
    for T in SIZES:
        o, values = np.ones(2), []
        for _ in range(T):
            values.append(np.sin(o) + 1)
            o = values[-1] * 0.5
        run.gives({"act": np.reshape(values, (T, 2))}, T=T)

    def stuck():
        t, T = tp.dim("t")
        x = tp.tensor("x", tp.f32[()], over=t)
        y = tp.tensor("y", tp.f32[()], over=t)
        x[...] = y
        y[...] = x
        tp.output("x", x)

    line = stuck.__code__.co_firstlineno
    text = refused(stuck)
    assert f"test_cases_and_recurrences.py:{line + 2}" in text
    assert f"test_cases_and_recurrences.py:{line + 3}" in text


def test_14_only_needed_points_run() -> None:
    calls: list[int] = []

    class Counter:
        def value(self, t):
            calls.append(int(t))
            return np.float32(t + 10)

    def program():
        t, T = tp.dim("t")
        x = tp.host(Counter).value(t, returns=tp.f32[()])
        tp.output("first", x[0])

    run = Everywhere(program)
    for executable in (run.reference, run.cpu, *run.others.values()):
        calls.clear()
        assert executable(T=5)["first"] == 10
        assert calls == [0]


def test_15_a_stencil_of_neighbour_rows() -> None:
    def program():
        (i, I), (j, J) = tp.dims("i", "j")
        a = tp.input("a", tp.i64[()], over=(i, j))
        x, y = tp.tensor("x", tp.i64[()], over=(i, j)), tp.tensor("y", tp.i64[()], over=(i, j))
        x[0, j] = a
        x[i, J - 1] = a
        x[...] = x[i - 1, j + 1] + 1
        y[(i == 0) | (j == 0) | (j == J - 1)] = a
        y[...] = y[i - 1, j - 1] + y[i - 1, j] - y[i - 1, j + 1] + y[i, j - 1]
        tp.output("x", x)
        tp.output("y", y)

    run = Everywhere(program)
    for I, J in [(0, 4), (1, 1), (2, 2), (3, 5), (5, 3), (8, 9), (9, 17)]:
        a = np.arange(I * J).reshape(I, J) * 7 % 5
        x, y = a.copy(), a.copy()
        for i in range(1, I):
            for j in range(J - 1):
                x[i, j] = x[i - 1, j + 1] + 1
            for j in range(1, J - 1):
                y[i, j] = y[i - 1, j - 1] + y[i - 1, j] - y[i - 1, j + 1] + y[i, j - 1]
        run.gives({"x": x, "y": y}, a=a)
