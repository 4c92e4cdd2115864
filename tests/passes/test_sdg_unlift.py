"""sdg-unlift: reductions over growing ranges as recurrences, what must stay a reduction, and the same values."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from passes_support import MANY_SIZES, apply, check_executables, check_values_stay, parse, program_of, transformed

import tempo_ir as tp
from tempo_ir.dialects.sdg import MergeOp, ReduceOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.reference.sdg import run
from tests.fuzz.arguments import draw

Program = Callable[[], None]


def rows(dtype: tp.DType = tp.f64) -> tuple[tp.Tensor, tp.Dim, tp.Dim]:
    t, T = tp.dim("t")
    return tp.input("a", dtype[3], over=t), t, T


def prefixes():
    a, t, T = rows()
    tp.output("sum", tp.exp(a)[0 : t + 1].sum(0))
    tp.output("strict", a[0:t].sum())
    tp.output("product", a[0:t].prod(0))
    tp.output("greatest", a[0 : t + 1].max(0))
    tp.output("least", a[0:t].min(0))
    tp.output("mean", a[0 : t + 1].mean(0))
    tp.output("all", a[0 : t + 1].mean())


def suffixes():
    a, t, T = rows()
    tp.output("sum", a[t:T].sum(0))
    tp.output("strict", a[t + 1 : T].sum())
    tp.output("product", a[t:T].prod(0))
    tp.output("least", a[t + 1 : T].min(0))
    tp.output("mean", a[t:T].mean(0))


def other_ranges():
    a, t, T = rows()
    tp.output("half", a[0 : t // 2].sum(0))
    tp.output("backwards", a[T - 1 - t : T].sum(0))
    tp.output("shrinking", a[0 : T - t].prod(0))
    tp.output("clamped", a[0 : tp.minimum(t + 2, T)].min(0))
    tp.output("late", a[tp.minimum(3, T) : tp.maximum(t, tp.minimum(3, T))].sum(0))
    tp.output("early", a[tp.maximum(t - 2, 0) : T].mean(0))
    tp.output("thirds", (a * a)[t // 3 : T].sum())
    tp.output("stops", a[tp.minimum(t, 4) : T].sum())


def functions_of_rows():
    a, t, T = rows()
    b, w = tp.input("b", tp.f64[3], over=t), tp.input("w", tp.f64[3, 3])
    p, q = a[0 : t + 1], b[0 : t + 1]
    tp.output("fused", (tp.tanh(p) * q + p).sum(0))
    tp.output("projected", (p @ w).sum(0))
    tp.output("outer", tp.einsum("nd,ne->de", p, q))
    tp.output("attended", tp.einsum("d,nd,ne->e", a, p, q))
    tp.output("moved", (p.sum(1) * q.transpose(1, 0)).sum())
    tp.output("counted", (tp.arange(t + 1).cast(tp.f64)[..., None] * p).max(0))
    tp.output("chosen", tp.where(p > q, p, q).reshape(-1, 3, 1).prod((0, 2)))
    tp.output("scanned", tp.cumsum(p, 1).sum(0))
    tp.output("normal", tp.softmax(p, 1).max(0))
    tp.output("dots", tp.einsum("nd,nd->n", p, q).min())
    tp.output("moved on", (a[0:t] * b[1 : t + 1]).sum(0))


def scaled_rows():
    a, t, T = rows()
    for gamma in (0.0, 0.9, 1.0):
        tp.output(f"returns {gamma}", tp.rl.discounted_sum(a[t:T], gamma))
    past = tp.arange(t + 1)
    tp.output("decayed", (0.5 ** (t - past).cast(tp.f64)[..., None] * a[0 : t + 1]).sum(0))
    tp.output("absolute", tp.rl.discounted_sum(a[0 : t + 1], 0.9))
    tp.output("entropy", tp.logsumexp(a[0 : t + 1], 0))
    tp.output("backwards", tp.logsumexp(a[t:T], 0))


def several_dims():
    (i, I), (t, T) = tp.dims("i", "t")
    c = tp.input("c", tp.f64[2], over=(i, t))
    tp.output("inner", c[i, 0 : t + 1].sum(0))
    tp.output("columns", c[0:I, 0 : t + 1].sum())
    tp.output("corner", c[0 : i + 1, 0 : t + 1].max((0, 1)))
    tp.output("outer", c[0 : i + 1, t].mean(0))
    tp.output("rest", c[i, t:T].sum())


def fed_back():
    a, t, T = rows()
    x = tp.tensor("x", tp.f64[3], over=t)
    x[0] = a[0]
    x[t] = tp.tanh(x[0:t].sum(0)) + a[t]
    tp.output("x", x)


def gradients():
    a, t, T = rows()
    w = tp.input("w", tp.f64[3], over=t)
    y = a[0 : t + 1].sum(0) * w
    tp.output("da", tp.grad(y.sum(), a))
    tp.output("dw", tp.grad(y.sum(), w))


def integers():
    a, t, T = rows(tp.i8)
    b = tp.input("b", tp.bool[3], over=t)
    tp.output("sum", a[0 : t + 1].sum(0))
    tp.output("product", a[t:T].prod(0))
    tp.output("greatest", a[0:t].max(0))
    tp.output("any", tp.any(b[0 : t + 1], 0))
    tp.output("every", tp.all(b[0:t], 0))


def windows_of_integers():
    """The row that joins is added, the one that leaves taken away; the greatest knows no such step."""
    t, T = tp.dim("t")
    a, b = (tp.input(name, tp.i8[3], over=t) for name in "ab")
    past = slice(tp.maximum(0, t - 6), t + 1)
    tp.output("past", a[past].sum(0))
    tp.output("ahead", a[t : tp.minimum(t + 7, T)].sum())
    tp.output("product", (a[past] * b[past]).sum(0))
    tp.output("slow", a[tp.minimum(t // 2, tp.maximum(T - 5, 0)) : tp.minimum(t // 2 + 5, T)].sum(0))


APPLIES: dict[Program, int] = {
    prefixes: 7, suffixes: 5, other_ranges: 8, functions_of_rows: 11, scaled_rows: 9, several_dims: 6, fed_back: 1,
    gradients: 2, integers: 5, windows_of_integers: 4,
}  # fmt: skip


@functools.cache
def graphs(program: Program):
    """Before and after the pass."""
    before = apply(tp.program(program)().module.clone(), "sdg-autodiff", "sdg-simplify")
    return before, apply(before.clone(), "sdg-unlift")


def growing_reductions(module) -> int:
    """Reductions over an extent that names a dim, at more than one point of it."""
    found = 0
    for op in module.walk():
        if isinstance(op, ReduceOp):
            extents = [shape_of(op.accesses[0].tensor)[axis] for axis in op.axes]
            many = all("T - 1" not in str(op.domain) and "0 to 1" not in str(op.domain) for _ in extents)
            found += many and any("t" in str(extent) or "i" in str(extent) for extent in extents)
    return found


@pytest.mark.parametrize("program", APPLIES)
def test_it_applies(program: Program):
    before, after = graphs(program)
    merges = [sum(isinstance(op, MergeOp) for op in module.walk()) for module in (before, after)]
    assert merges[1] - merges[0] == APPLIES[program]
    assert growing_reductions(after) == 0


@pytest.mark.parametrize("special", [False, True], ids=["finite", "nan and inf"])
@pytest.mark.parametrize("program", APPLIES)
def test_the_values_stay(program: Program, special: bool):
    check_values_stay(*graphs(program), MANY_SIZES, 1e-12, special=special)


@pytest.mark.parametrize("program", [other_ranges, functions_of_rows, scaled_rows, several_dims])
def test_on_the_cpu(program: Program):
    before, _ = graphs(program)
    on, off = tp.compile(before), tp.compile(before, without=("sdg-unlift",))
    check_executables(before, (on, off), MANY_SIZES, 1e-11)


@pytest.mark.parametrize("dtype", [tp.f16, tp.bf16])
def test_sixteen_bits_round_once(dtype: tp.DType):
    """A thousand ones are a thousand, which no running sum of 8 or 11 bits reaches."""

    def program():
        a, t, T = rows(dtype)
        tp.output("sum", a[0 : t + 1].sum())
        tp.output("mean", a[t:T].mean(0))
        tp.output("square", tp.einsum("nd,nd->d", a[0 : t + 1], a[0 : t + 1]))

    before = tp.program(program)().module
    after = apply(before.clone(), "sdg-unlift")
    assert "f32" in str(after)
    ones = np.ones((1000, 3), np.float32).astype(draw(program_of(before), {"T": 1})["a"].dtype)
    found = run(program_of(after), {"a": ones}, {"T": 1000})
    assert found["sum"][999] == found["sum"].dtype.type(3000)
    assert found["mean"][0].tolist() == [1, 1, 1]
    assert found["square"][999].tolist() == [found["square"].dtype.type(1000)] * 3


def stays(program: Program) -> bool:
    """Whether the pass leaves a program as it is."""
    before = apply(tp.program(program)().module.clone(), "sdg-autodiff", "sdg-simplify")
    return str(apply(before.clone(), "sdg-unlift")) == str(before)


def windows():
    a, t, T = rows()
    tp.output("window", a[tp.maximum(0, t - 6) : t + 1].sum(0))
    tp.output("few", a.cast(tp.i32)[tp.maximum(0, t - 3) : t + 1].sum(0))
    tp.output("greatest", a.cast(tp.i32)[tp.maximum(0, t - 6) : t + 1].max(0))
    tp.output("ahead", a[t : tp.minimum(t + 7, T)].max(0))


def steps():
    a, t, T = rows()
    tp.output("y", a[0 : t + 1 : 2].sum(0))


def other_rows_at_each_point():
    a, t, T = rows()
    tp.output("centred", ((a[0 : t + 1] - a) ** 2).sum(0))
    tp.output("scores", tp.einsum("n,nd->d", tp.softmax(a[0 : t + 1] @ a), a[0 : t + 1]))
    tp.output("aligned", (a[t:T] * a[0 : T - t]).sum(0))


def growing_weights():
    """`2 ** (s - t)` is half of what it was before: dividing by a power that underflows is not stable."""
    a, t, T = rows()
    weights = 0.5 ** (tp.arange(t + 1) - t).cast(tp.f64)
    tp.output("y", (weights[..., None] * a[0 : t + 1]).sum(0))


def whole_ranges():
    a, t, T = rows()
    tp.output("y", a * a[0:T].sum(0))


def one_point():
    a, t, T = rows()
    tp.output("y", a[0 : t + 1].sum(0)[T - 1])


def few_rows():
    a, t, T = rows()
    tp.output("y", a[0 : tp.minimum(t + 1, tp.minimum(3, T))].sum(0))


def exponentials_of_other_maxima():
    """Where another maximum is -inf, rows are not: nothing may be dropped with it."""
    a, t, T = rows()
    b = tp.input("b", tp.f64[3], over=t)
    top = b[0 : t + 1].max(0)
    tp.output("y", tp.exp(a[0 : t + 1] - top).sum(0))


@pytest.mark.parametrize(
    "program", [windows, steps, other_rows_at_each_point, growing_weights, whole_ranges, one_point, few_rows]
)
def test_it_does_not_apply(program: Program):
    assert stays(program)


def test_exponentials_over_another_maximum_stay():
    _, after = graphs(exponentials_of_other_maxima)
    assert growing_reductions(after) == 1


def test_a_large_state_is_not_kept_for_few_steps():
    """The running outer product has 64 * 64 elements; a row of the operands has 128."""

    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[64], over=t)
        tp.output("y", tp.einsum("d,nd,ne->e", a, a[0 : t + 1], a[0 : t + 1]))

    text = str(tp.program(program)().module)
    assert "sdg.merge" in transformed(text, "sdg-unlift", steps=1000)
    assert str(parse(text)) == transformed(text, "sdg-unlift", steps=2)


def growth(cost) -> int:
    """By what twice as many steps multiply a cost."""
    first, second = (float(cost.subs(dict.fromkeys(cost.free_symbols, steps))) for steps in (10**6, 2 * 10**6))
    return round(second / first)


def test_a_prefix_needs_one_row_and_one_step():
    """Storage of what is summed falls from all rows to one, work from t rows a step to one."""

    def program():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f32[16], over=t)
        tp.output("past", tp.exp(x)[0 : t + 1].sum(0))
        tp.output("future", tp.rl.discounted_sum(tp.tanh(x)[t:T], 0.9))

    on, off = tp.compile(tp.program(program)()), tp.compile(tp.program(program)(), without=("sdg-unlift",))
    x = np.ones((1000, 16), np.float32)
    for executable in (on, off):
        found = executable(x=x)
        np.testing.assert_allclose(found["past"][-1], 1000 * np.exp(x[0]), 1e-5)
        np.testing.assert_allclose(found["future"][0], np.tanh(x[0]) / 0.1, 1e-5)
    assert off.stats.peak_bytes >= x.nbytes
    assert on.stats.peak_bytes <= 512
    assert [growth(executable.costs.operations) for executable in (on, off)] == [2, 4]
    assert [growth(executable.costs.bytes_moved) for executable in (on, off)] == [2, 4]
    assert "0:t + 1" in off.ir("loop")
    assert "0:t + 1" not in on.ir("loop")
    assert "T]" not in on.ir("loop")


def test_linear_attention_keeps_one_state():
    """The sum of `k v` is kept for one step, and not a product for each."""

    def program():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f32[16], over=t)
        k, v = tp.tanh(x), tp.exp(x)
        tp.output("y", tp.einsum("d,nd,ne->e", x, k[0 : t + 1], v[0 : t + 1]))

    executable = tp.compile(tp.program(program)())
    x = np.random.default_rng(0).standard_normal((100, 16)).astype(np.float32)
    state = np.cumsum(np.einsum("nd,ne->nde", np.tanh(x), np.exp(x)), 0)
    np.testing.assert_allclose(executable(x=x)["y"], np.einsum("td,tde->te", x, state), 1e-3, 1e-3)
    assert executable.stats.peak_bytes <= 4 * 16 * 16 * 4


@pytest.mark.parametrize("gamma", [0.0, 0.9, 1.0])
def test_discounted_returns_are_stable(gamma: float):
    """2000 steps: dividing by the powers of the discount would give NaN."""

    def program():
        t, T = tp.dim("t")
        r = tp.input("r", tp.f64[()], over=t)
        weights = gamma ** tp.arange(T - t).cast(tp.f64)
        tp.output("g", (weights * r[t:T]).sum())

    executable = tp.compile(tp.program(program)())
    assert "sdg.arange" not in str(executable.levels.optimised)
    left = 2000 - np.arange(2000)
    expected = left if gamma == 1 else np.ones(2000) if gamma == 0 else 10 * (1 - 0.9**left)
    np.testing.assert_allclose(executable(r=np.ones(2000))["g"], expected, 1e-12)
