"""sdg-devectorize: axes that ranges made are dims again, what must stay an axis, and the same values."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from passes_support import MANY_SIZES, apply, check_executables, check_values_stay
from xdsl.utils.exceptions import PassFailedException

import tempo_ir as tp
from tempo_ir.dialects.types import shape_of

Program = Callable[[], None]


def rows() -> tuple[tp.Tensor, tp.Dim, tp.Dim]:
    t, T = tp.dim("t")
    return tp.input("x", tp.f64[3], over=t), t, T


def chains():
    x, t, T = rows()
    w = tp.input("w", tp.f64[3, 3])
    p = tp.tanh(x[0:T]) * x[0:T] + 1.0
    q = x[0:T] @ w
    tp.output("row", p[t])
    tp.output("row before", p.max(1)[tp.maximum(t - 1, 0)])
    tp.output("sum", p.sum(0))
    tp.output("scan", tp.cumsum(p, 0)[t])
    tp.output("part", (p[1:T] * p[0 : T - 1]).sum())
    tp.output("product", tp.exp(q)[t])
    tp.output("outer", tp.einsum("td,te->tde", p, q)[t])
    tp.output("moved", p.reshape(T, 3, 1).transpose(0, 2, 1)[t])
    tp.output("chosen", tp.where(p > q, tp.softmax(p, 1), tp.sort(q, 1))[t])


def several_dims():
    (i, I), (t, T) = tp.dims("i", "t")
    c, v = tp.input("c", tp.f64[2], over=(i, t)), tp.input("v", tp.f64[2], over=i)
    p = tp.exp(c[i, 0:T]) * v
    tp.output("inner", p[i, t])
    tp.output("whole", p[0:I].sum((0, 1)))
    r = tp.exp(c[0:I, t])
    tp.output("outer", r[t, i])
    tp.output("later", (r * 2)[0:T].sum((0, 1)))
    tp.output("both", (c[0:I, 0:T] * 2)[i, t])


def rows_of_scans():
    x, t, T = rows()
    tp.output("y", tp.cumsum(tp.exp(x[0:T]), 0)[t] * 2)
    tp.output("z", tp.softmax(x[0:T], 0)[t])


PROGRAMS = [chains, several_dims, rows_of_scans]


@functools.cache
def graphs(program: Program):
    """Before and after the pass, told to take all that can be."""
    before = apply(tp.program(program)().module.clone(), "sdg-simplify")
    return before, apply(before.clone(), "sdg-devectorize", all=True)


def with_an_axis(module) -> set[str]:
    """The ops that make an axis of a dynamic extent."""
    made = [op for op in module.walk() if op.results and op.name != "builtin.module"]
    return {op.name for op in made if any(not isinstance(extent, int) for extent in shape_of(op.results[0].type))}


def test_only_what_mixes_rows_keeps_the_axis():
    assert len(with_an_axis(graphs(chains)[0])) > 10
    left = [with_an_axis(apply(graphs(program)[1].clone(), "sdg-simplify")) for program in (chains, rows_of_scans)]
    assert left == [{"sdg.cumsum", "sdg.mul"}, {"sdg.cumsum", "sdg.softmax"}]  # rows 1 to T times rows 0 to T - 1


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_values_stay(program: Program):
    for special in (False, True):
        check_values_stay(*graphs(program), MANY_SIZES, 1e-12, special=special)


@pytest.mark.parametrize("program", [chains, several_dims])
def test_on_the_cpu(program: Program):
    before, _ = graphs(program)
    on, off = tp.compile(before), tp.compile(before, without=("sdg-devectorize",))
    check_executables(before, (on, off), MANY_SIZES, 1e-11)


def shared_weights():
    """A large product of all rows, and what is made of it, stay; so does what feeds it."""
    x, t, T = rows()
    w = tp.input("w", tp.f64[3, 3])
    tp.output("y", tp.tanh(tp.exp(x[0:T]) @ w)[t])


def nobody_takes_a_row():
    x, t, T = rows()
    tp.output("y", tp.exp(x[0:T]).sum(0))


def ragged_ranges():
    x, t, T = rows()
    tp.output("y", tp.exp(x[0 : t + 1]).max(0))


@pytest.mark.parametrize("program", [shared_weights, nobody_takes_a_row, ragged_ranges])
def test_it_does_not_apply(program: Program):
    before, _ = graphs(program)
    assert str(before) == str(apply(before.clone(), "sdg-devectorize"))


def test_the_opposite_of_vectorising():
    """What sdg-vectorize made an axis is the dim again."""

    def program():
        x, t, T = rows()
        w = tp.input("w", tp.f64[3, 3])
        tp.output("y", tp.tanh(x @ w))

    plain = apply(tp.program(program)().module.clone(), "sdg-simplify")
    axis = apply(plain.clone(), "sdg-vectorize", "sdg-simplify")
    assert str(axis) != str(plain)
    assert str(apply(apply(axis, "sdg-devectorize", dims=("t",), all=True), "sdg-simplify")) == str(plain)


def test_a_dim_that_is_none():
    with pytest.raises(PassFailedException, match="has no dim `q`; it declares t"):
        apply(graphs(chains)[0].clone(), "sdg-devectorize", dims=("q",))


def test_a_row_at_a_time_needs_no_more_memory():
    def program():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f32[16], over=t)
        p = tp.exp(tp.tanh(x[0:T]) * 0.5) + x[0:T]
        tp.output("y", (p * p)[t] * 2)

    on, off = tp.compile(tp.program(program)()), tp.compile(tp.program(program)(), without=("sdg-devectorize",))
    x = np.random.default_rng(0).standard_normal((500, 16)).astype(np.float32)
    for executable in (on, off):
        np.testing.assert_allclose(executable(x=x)["y"], 2 * (np.exp(np.tanh(x) / 2) + x) ** 2, 1e-5, 1e-5)
    assert on.stats.peak_bytes <= 1024 < x.nbytes <= off.stats.peak_bytes
