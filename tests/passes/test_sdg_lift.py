"""sdg-lift: recurrences that accumulate as reductions and running sums, what must stay a loop, and the same values."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import pytest
from passes_support import MANY_SIZES, apply, check_executables, check_values_stay, program_of

import tempo_ir as tp
from tempo_ir.dialects.sdg import MergeOp
from tempo_ir.passes.remarks import collecting

Program = Callable[[], None]
COMBINE: dict[str, tuple[Callable[[tp.Tensor, tp.Tensor], tp.Tensor], float]] = {
    "sum": (lambda x, y: x + y, 0.0),
    "prod": (lambda x, y: y * x, 1.0),
    "max": (tp.maximum, -math.inf),
    "min": (tp.minimum, math.inf),
}


def recurrences(name: str, a: tp.Tensor, t: tp.Dim, T: tp.Dim) -> list[tp.Tensor]:
    """One way to combine rows in every form: from the first row or from nothing, up and down, before or after a row."""
    combine, nothing = COMBINE[name]
    inclusive, strict, down, down_strict = (tp.tensor(f"{name} {n}", a.spec, over=t) for n in range(4))
    inclusive[0], inclusive[t] = a, combine(inclusive[t - 1], a)
    after = combine(strict, a * 2)
    strict[0], strict[t + 1] = nothing, after
    down[T - 1], down[t] = a, combine(a, down[t + 1])
    later = combine(down_strict, a * 2)
    down_strict[T - 1], down_strict[t] = nothing, later[t + 1]
    return [inclusive, strict, down, down_strict, after, later]


def last_values():
    t, T = tp.dim("t")
    a = tp.input("a", tp.f64[3], over=t)
    for name in COMBINE:
        for number, value in enumerate(recurrences(name, a, t, T)):
            tp.output(f"{name} {number}", value[T - 1 if number in (0, 1, 4) else 0])


def each_value():
    t, T = tp.dim("t")
    a = tp.input("a", tp.f64[3], over=t)
    for name in ("sum", "prod"):
        for number, value in enumerate(recurrences(name, a, t, T)):
            tp.output(f"{name} {number}", value * value[T - 1])
            tp.output(f"{name} {number} ranges", value[t:T].max(0) + value[t // 2])


def several_dims():
    (i, I), (t, T) = tp.dims("i", "t")
    c = tp.input("c", tp.f64[2], over=(i, t))
    s, u, w = (tp.tensor(name, tp.f64[2], over=(i, t)) for name in "suw")
    s[i, 0], s[i, t] = c, s[i, t - 1] + c
    u[0, t], u[i, t] = c, u[i - 1, t] * c
    w[i, 0], w[i, t] = c * 3, w[i, t - 1] + s
    tp.output("last", s[i, T - 1])
    tp.output("each", u)
    tp.output("of another", w[i, T - 1])


def integers():
    t, T = tp.dim("t")
    a, b = tp.input("a", tp.i8[3], over=t), tp.input("b", tp.bool[3], over=t)
    s, m = (tp.tensor(name, tp.i8[3], over=t) for name in "sm")
    some, every = (tp.tensor(name, tp.bool[3], over=t) for name in ("some", "every"))
    s[0], s[t] = a, s[t - 1] + a
    m[0], m[t] = a, tp.maximum(m[t - 1], a)
    some[0], some[t] = b, some[t - 1] | b
    every[T - 1], every[t] = b, every[t + 1] & b
    tp.output("sum", s)
    tp.output("greatest", m[T - 1])
    tp.output("some", some[T - 1])
    tp.output("every", every[0])


@functools.cache
def graphs(program: Program):
    """Before and after the pass, told to lift all that can be."""
    before = apply(tp.program(program)().module.clone(), "sdg-autodiff", "sdg-simplify")
    return before, apply(before.clone(), "sdg-lift", all=True)


def merges(module) -> int:
    return sum(isinstance(op, MergeOp) for op in module.walk())


@pytest.mark.parametrize("program", [last_values, each_value, several_dims, integers])
def test_no_recurrence_is_left(program: Program):
    before, after = graphs(program)
    assert merges(before) > 2
    assert merges(after) == 0


@pytest.mark.parametrize("special", [False, True], ids=["finite", "nan and inf"])
@pytest.mark.parametrize("program", [last_values, each_value, several_dims, integers])
def test_the_values_stay(program: Program, special: bool):
    before, after = graphs(program)
    sizes = MANY_SIZES[1:] if program_of(before).preconditions else MANY_SIZES
    check_values_stay(before, after, sizes, 1e-11, special=special)


@pytest.mark.parametrize("program", [each_value, several_dims])
def test_on_the_cpu(program: Program):
    before, after = graphs(program)
    on, off = tp.compile(after, without=("sdg-unlift",)), tp.compile(before, without=("sdg-lift",))
    check_executables(before, (on, off), MANY_SIZES[1:], 1e-10)


def factor():
    t, T = tp.dim("t")
    a = tp.input("a", tp.f64[3], over=t)
    s = tp.tensor("s", tp.f64[3], over=t)
    s[0], s[t] = a, 0.9 * s[t - 1] + a
    tp.output("s", s)


def two_that_feed_each_other():
    t, T = tp.dim("t")
    a = tp.input("a", tp.f64[3], over=t)
    q, r = tp.tensor("q", tp.f64[3], over=t), tp.tensor("r", tp.f64[3], over=t)
    q[0], q[t] = a, q[t - 1] + r
    r[0], r[t] = a, tp.tanh(q[t - 1])
    tp.output("q", q)


def doubled():
    t, T = tp.dim("t")
    a = tp.input("a", tp.f64[3], over=t)
    s = tp.tensor("s", tp.f64[3], over=t)
    s[0], s[t] = a, s[t - 1] + s[t - 1]
    tp.output("s", s)


def subtracted():
    t, T = tp.dim("t")
    a = tp.input("a", tp.f64[3], over=t)
    s = tp.tensor("s", tp.f64[3], over=t)
    s[0], s[t] = a, a - s[t - 1]
    tp.output("s", s)


def two_steps_back():
    t, T = tp.dim("t")
    a = tp.input("a", tp.f64[3], over=t)
    s = tp.tensor("s", tp.f64[3], over=t)
    s[t < 2], s[t] = a, s[t - 2] + a
    tp.output("s", s)


def running_greatest():
    t, T = tp.dim("t")
    a = tp.input("a", tp.f64[3], over=t)
    s = tp.tensor("s", tp.f64[3], over=t)
    s[0], s[t] = a, tp.maximum(s[t - 1], a)
    tp.output("s", s)


def sixteen_bits():
    t, T = tp.dim("t")
    a = tp.input("a", tp.bf16[3], over=t)
    s = tp.tensor("s", tp.bf16[3], over=t)
    s[0], s[t] = a, s[t - 1] + a
    tp.output("s", s[T - 1])


@pytest.mark.parametrize(
    "program",
    [factor, two_that_feed_each_other, doubled, subtracted, two_steps_back, running_greatest, sixteen_bits],
)
def test_it_does_not_apply(program: Program):
    before, after = graphs(program)
    assert str(before) == str(after)


def test_what_ends_a_dim_stays_a_loop():
    """The end of t is where the running sum passes 10; the running product is read when it is known."""

    def program():
        t, T = tp.dim("t", until=lambda: s > 10)
        a = tp.input("a", tp.f64[()], over=t)
        s, p = tp.tensor("s", tp.f64[()], over=t), tp.tensor("p", tp.f64[()], over=t)
        s[0], s[t] = a, s[t - 1] + a
        p[0], p[t] = a, p[t - 1] * a
        tp.output("s", s[T - 1])
        tp.output("p", p[T - 1])

    before = tp.program(program)().module
    after = apply(before.clone(), "sdg-lift", all=True)
    assert merges(after) == 1
    a = np.arange(1.0, 9.0)
    for module in (before, after):
        found = tp.compile(module)(a=a)
        assert (found["s"], found["p"]) == (15, 120)


def test_a_sum_of_inputs_stays_a_loop_and_says_why():
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f64[3], over=t)
        s = tp.tensor("s", tp.f64[3], over=t)
        s[0], s[t] = a, s[t - 1] + a
        tp.output("s", s)

    with collecting() as collector:
        module = apply(tp.program(program)().module.clone(), "sdg-lift")
    assert merges(module) == 1
    assert "t is a loop anyway" in collector.remarks[0].message


def test_gradients_that_are_added_up_are_one_product():
    """T products of (b, k) and (b, n) become one of (T b, k) and (T b, n): no product is stored."""

    def program():
        t, T = tp.dim("t")
        x, d = (tp.input(name, tp.f32[4, 16], over=t) for name in "xd")
        g = tp.einsum("bk,bn->kn", x, d)
        s = tp.tensor("s", tp.f32[16, 16], over=t)
        s[0], s[t] = g, s[t - 1] + g
        tp.output("s", s[T - 1])

    module = tp.program(program)().module
    on, off = tp.compile(module), tp.compile(module, without=("sdg-lift",))
    assert '"tbk,tbn->kn"' in str(on.levels.optimised)
    x, d = np.random.default_rng(0).standard_normal((2, 100, 4, 16)).astype(np.float32)
    for executable in (on, off):
        np.testing.assert_allclose(executable(x=x, d=d)["s"], np.einsum("tbk,tbn->kn", x, d), 1e-4, 1e-4)
    assert on.stats.peak_bytes < off.stats.peak_bytes
