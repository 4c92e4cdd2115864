"""Cases 1 to 7: reads at points, slices and steps, and the domains that follow from them."""

from __future__ import annotations

import numpy as np
import pytest
from semantics_support import SIZES, Everywhere, normal, per_step, ramp, refused

import tempo_ir as tp

WINDOWS = {
    "a[0:t+1]": (lambda t, T: slice(0, t + 1), lambda t, T: slice(0, t + 1)),
    "a[t:T]": (lambda t, T: slice(t, T), lambda t, T: slice(t, T)),
    "a[max(0,t-2):t+1]": (lambda t, T: slice(tp.maximum(0, t - 2), t + 1), lambda t, T: slice(max(0, t - 2), t + 1)),
    "a[t:min(t+3,T)]": (lambda t, T: slice(t, tp.minimum(t + 3, T)), lambda t, T: slice(t, t + 3)),
    "both sides": (
        lambda t, T: slice(tp.maximum(0, t - 2), tp.minimum(t + 3, T)),
        lambda t, T: slice(max(0, t - 2), t + 3),
    ),
    "empty": (lambda t, T: slice(t, t), lambda t, T: slice(t, t)),
    "before": (lambda t, T: slice(0, t), lambda t, T: slice(0, t)),
    "after": (lambda t, T: slice(t + 1, T), lambda t, T: slice(t + 1, T)),
    "step": (lambda t, T: slice(0, t + 1, 3), lambda t, T: slice(0, t + 1, 3)),
    "reversed window": (lambda t, T: slice(T - 1 - t, T), lambda t, T: slice(T - 1 - t, T)),
    "half": (lambda t, T: slice(t // 2, t + 1), lambda t, T: slice(t // 2, t + 1)),
}


@pytest.mark.parametrize("window", WINDOWS)
def test_01_sums_over_windows(window: str) -> None:
    ours, theirs = WINDOWS[window]

    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[()], over=t)
        tp.output("y", a[ours(t, T)].sum())
        tp.output("max", tp.max(a[ours(t, T)] - 100))

    run = Everywhere(program)
    for T in SIZES:
        a = ramp(T)
        expected = per_step(T, lambda t, a=a, T=T: a[theirs(t, T)].sum())
        largest = per_step(T, lambda t, a=a, T=T: np.max(a[theirs(t, T)] - 100, initial=-np.inf))
        run.gives({"y": expected, "max": largest}, a=a)


def test_01_values_as_stated() -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[()], over=t)
        tp.output("past", a[0 : t + 1].sum())
        tp.output("future", a[t:T].sum())
        tp.output("window", a[tp.maximum(0, t - 2) : t + 1].sum())
        tp.output("ahead", a[t : tp.minimum(t + 3, T)].sum())

    run = Everywhere(program)
    stated = {"past": [0, 1, 3, 6, 10, 15], "future": [15, 15, 14, 12, 9, 5], "window": [0, 1, 3, 6, 9, 12]}
    run.gives(stated, a=ramp(6))
    run.gives({"ahead": [3, 6, 9, 12, 15, 11, 6]}, a=ramp(7))


POINTS = {
    "t//2": (lambda t, T: t // 2, lambda t, T: t // 2),
    "T-1-t": (lambda t, T: T - 1 - t, lambda t, T: T - 1 - t),
    "-1": (lambda t, T: -1 + 0 * t, None),
    "min(t+3,T-1)": (lambda t, T: tp.minimum(t + 3, T - 1), lambda t, T: min(t + 3, T - 1)),
    "max(t-2,0)": (lambda t, T: tp.maximum(t - 2, 0), lambda t, T: max(t - 2, 0)),
    "(T-1-t)//3": (lambda t, T: (T - 1 - t) // 3, lambda t, T: (T - 1 - t) // 3),
    "(t-1)%4": (lambda t, T: tp.minimum((t - 1) % 4, T - 1), lambda t, T: np.minimum((t - 1) % 4, T - 1)),
    "(t-5)//3": (lambda t, T: tp.maximum((t - 5) // 3 + 1, 0), lambda t, T: np.maximum((t - 5) // 3 + 1, 0)),
    "t-t%4": (lambda t, T: t - t % 4, lambda t, T: t - t % 4),
}


@pytest.mark.parametrize("point", [name for name in POINTS if name != "-1"])
def test_02_points(point: str) -> None:
    ours, theirs = POINTS[point]

    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[()], over=t)
        tp.output("y", a[ours(t, T)])
        tp.output("z", tp.exp(a[ours(t, T)] * -0.5))

    run = Everywhere(program)
    for T in SIZES:
        y = per_step(T, lambda t, T=T: theirs(t, T))
        run.gives({"y": y, "z": np.exp(-0.5 * y)}, a=ramp(T))


@pytest.mark.parametrize("modulus", [2, 3])
def test_02_modular_indices(modulus: int) -> None:
    def program():
        t, T = tp.dim("t", at_least=modulus)
        a = tp.input("a", tp.f32[()], over=t)
        tp.output("y", a[t % modulus])
        tp.output("last", a[-1])
        tp.output("second", a[-2])

    run = Everywhere(program)
    for T in SIZES:
        if T >= modulus:
            expected = per_step(T, lambda t: t % modulus)
            run.gives({"y": expected, "last": T - 1, "second": T - 2}, a=ramp(T))


def test_02_a_negative_literal_and_a_recurrence_read_in_reverse() -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[()], over=t)
        h = tp.tensor("h", tp.f32[()], over=t)
        h[0] = a
        h[t + 1] = h + a[t + 1]
        tp.output("y", h[T - 1 - t] + h)

    run = Everywhere(program)
    for T in SIZES:
        h = np.cumsum(ramp(T))
        run.gives({"y": h[::-1] + h}, a=ramp(T))


def test_03_dims_left_by_an_index() -> None:
    def program(C=2, D=3):
        (a, A), (b, B) = tp.dims("a", "b")
        x = tp.input("x", tp.f32[C, D], over=(a, b))
        tp.output("x0", x[0] * 1.5)
        tp.output("x01", x[0, 1] * 1.5)
        tp.output("up", x[tp.minimum(a + 1, A - 1), b])
        tp.output("five", x[0:5, b].sum(1))
        tp.output("dynamic", x[0 : a + 1].sum(0))
        tp.output("two", x[0:A, 0:B].sum(2))
        tp.output("both", x[0 : a + 1, b:B].sum(0).sum(0))
        assert x[0].dims == ("b",)
        assert x[0, 1].dims == ()
        assert x[0:5, b].dims == ("b",)
        assert x[0:5, b].shape == (5, C, D)
        assert str(x[0 : a + 1].shape) == f"(a + 1, {C}, {D})"

    run = Everywhere(program)
    for A, B in [(5, 2), (6, 3), (9, 7), (17, 2)]:
        x = np.random.default_rng(0).normal(size=(A, B, 2, 3)).astype(np.float32)
        both = [[x[: i + 1, j:].sum((0, 1)) for j in range(B)] for i in range(A)]
        expected = {
            "x0": x[0] * 1.5, "x01": x[0, 1] * 1.5, "up": x[[*range(1, A), A - 1]], "five": x[:5].sum(2).swapaxes(0, 1),
            "dynamic": np.cumsum(x, 0), "two": x.sum(2), "both": both,
        }  # fmt: skip
        run.gives(expected, x=x)

    def too_many():
        (a, A), (b, B) = tp.dims("a", "b")
        tp.output("y", tp.input("x", tp.f32[()], over=(a, b))[0, 0, 0])

    assert "too many indices" in refused(too_many)


def test_03_indices_over_several_dims_and_reads_of_neighbours() -> None:
    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        a, c = tp.input("a", tp.f64[()], over=t), tp.input("c", tp.f64[()], over=(i, t))
        y = tp.tanh(c)
        tp.output("sum", a[tp.minimum(i + t, T - 1)])
        tp.output("difference", y[tp.maximum(i - t, 0), tp.maximum(t - i, 0)])
        tp.output("skewed", y[i, tp.minimum(2 * i + t, T - 1)] - y[tp.minimum((i + t) % 2, I - 1), (T - 1 - t) // 2])
        tp.output("between", a[tp.maximum(t - i, 0) : tp.minimum(t + i + 1, T)].sum())
        tp.output("next", y[tp.minimum(i + 1, I - 1), t] + y[i, tp.maximum(t - 1, 0)])

    run = Everywhere(program)
    for I, T in [(1, 1), (2, 3), (3, 2), (0, 3), (3, 0), (5, 8), (3, 17)]:
        a, c = normal(T, dtype=np.float64), normal(I, T, dtype=np.float64)
        y, (i, t) = np.tanh(c), np.indices((I, T))
        between = [a[max(n - m, 0) : m + n + 1].sum() for m in range(I) for n in range(T)]
        expected = {
            "sum": a[np.minimum(i + t, T - 1)], "difference": y[np.maximum(i - t, 0), np.maximum(t - i, 0)],
            "skewed": y[i, np.minimum(2 * i + t, T - 1)] - y[np.minimum((i + t) % 2, I - 1), (T - 1 - t) // 2],
            "between": np.reshape(between, (I, T)), "next": y[np.minimum(i + 1, I - 1), t] + y[i, np.maximum(t - 1, 0)],
        }  # fmt: skip
        run.gives(expected, a=a, c=c)


def test_03_domains_with_affine_constraints() -> None:
    """What is needed on a triangle, on every third diagonal and in a wedge is computed there, and read from there."""

    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        c = tp.input("c", tp.f64[()], over=(i, t))
        x = tp.tensor("x", tp.f64[()], over=(i, t))
        x[i > t] = tp.exp(c) - c
        x[(i + t) % 3 == 1] = tp.tanh(c) * 2
        x[2 * i >= t] = c[i, t - i] + 0.5
        x[...] = c * 3
        y = tp.tensor("y", tp.f64[()], over=(i, t))
        y[i >= t] = x
        y[...] = y[i, t - 1] + 1
        tp.output("x", x)
        tp.output("y", y)
        tp.output("rest", y[i, tp.minimum(i, T) : T].sum())

    def expected(c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, y = np.zeros(c.shape), np.zeros(c.shape)
        for t in range(c.shape[1]):
            for i in range(len(c)):
                x[i, t] = (
                    np.exp(c[i, t]) - c[i, t] if i > t
                    else np.tanh(c[i, t]) * 2 if (i + t) % 3 == 1
                    else c[i, t - i] + 0.5 if 2 * i >= t
                    else c[i, t] * 3
                )  # fmt: skip
                y[i, t] = x[i, t] if i >= t else y[i, t - 1] + 1
        return x, y

    run = Everywhere(program)
    for I, T in [(1, 1), (3, 2), (2, 5), (0, 3), (3, 0), (5, 9), (9, 17)]:
        c = normal(I, T, dtype=np.float64)
        x, y = expected(c)
        run.gives({"x": x, "y": y, "rest": [y[i, min(i, T) :].sum() for i in range(I)]}, c=c)


def test_04_reads_across_two_dims() -> None:
    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        c = tp.input("c", tp.i64[()], over=(i, t))
        tp.output("row", c[i, 0:T].sum())
        tp.output("column", c[0:I, t].sum())
        tp.output("all", c[0:I, 0:T].sum())
        tp.output("corner", c[0 : i + 1, t:T].sum())
        tp.output("table", c[0:I, 0:T])
        tp.output("centred", c - c[i, 0:T].sum())

    run = Everywhere(program)
    for I, T in [(3, 3), (0, 3), (3, 0), (1, 1), (2, 7), (8, 9), (17, 5)]:
        c = 10 * np.arange(I)[:, None] + np.arange(T)
        corner = np.array([[c[: i + 1, t:].sum() for t in range(T)] for i in range(I)], np.int64).reshape(I, T)
        run.gives(
            {
                "row": c.sum(1), "column": c.sum(0), "all": c.sum(), "corner": corner, "table": c,
                "centred": c - c.sum(1, keepdims=True),
            },
            c=c,
        )  # fmt: skip
        if (I, T) == (3, 3):
            assert run(c=c)["row"].tolist() == [3, 33, 63]
            assert run(c=c)["all"] == 99


def test_05_slices_of_one_keep_their_axis_and_empty_ones_read_nothing() -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[()], over=t)
        tp.output("all", a[0:T] * 2)
        tp.output("one", a[t : t + 1] * 2)
        tp.output("none", a[t:t].sum())
        tp.output("nothing", a[t:t] + 1)
        tp.output("past", a[t + 3 : t].sum())

    run = Everywhere(program)
    for T in SIZES:
        a, zero = ramp(T), np.zeros(T)
        expected = {"all": 2 * a, "one": 2 * a[:, None], "none": zero, "nothing": np.zeros((T, 0)), "past": zero}
        run.gives(expected, a=a)


@pytest.mark.parametrize("step", [2, 3, 5])
def test_06_steps(step: int) -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.i64[()], over=t)
        b = tp.input("b", tp.f32[3], over=t)
        tp.output("y", tp.cumsum(a[0:T:step]))
        tp.output("rows", tp.cumsum(b[0:T:step], 0))
        tp.output("later", a[t:T:step].sum())
        tp.output("softmax", tp.softmax(b[1:T:step], 0))

    run = Everywhere(program)
    for T in (*SIZES, 10):
        a, b = np.arange(1, T + 1), np.random.default_rng(T).normal(size=(T, 3)).astype(np.float32)
        e = np.exp(b[1::step])
        later = np.array([a[t::step].sum() for t in range(T)], np.int64)
        expected = {"y": np.cumsum(a[::step]), "rows": np.cumsum(b[::step], 0), "later": later, "softmax": e / e.sum(0)}
        run.gives(expected, a=a, b=b)
    if step == 3:
        assert run(a=np.arange(1, 11), b=np.zeros((10, 3), np.float32))["y"].tolist() == [1, 5, 12, 22]


@pytest.mark.parametrize("index", ["t - 1", "t + 3", "2 * t"])
def test_07_reads_out_of_range_are_refused(index: str) -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[()], over=t)
        tp.output("y", a[eval(index, {"t": t})])

    text = refused(program)
    assert f"[{index}]" in text
    assert "t = " in text


def test_07_guarded_reads_are_exact() -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[()], over=t)
        x = tp.tensor("x", tp.f32[()], over=t)
        x[t >= 2] = a[t - 2]
        x[t < T - 3] = a[t + 3]
        x[...] = -1.0
        tp.output("x", x)
        tp.output("y", a[tp.minimum(t + 3, T - 1)])

    run = Everywhere(program)
    for T in SIZES:
        x = per_step(T, lambda t, T=T: t - 2 if t >= 2 else t + 3 if t < T - 3 else -1)
        run.gives({"x": x, "y": np.minimum(ramp(T) + 3, T - 1)}, a=ramp(T))
