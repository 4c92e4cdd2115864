"""sdg-unflatten and the twins of sdg-devectorize: rows put together are worked on apart, and computed once."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from passes_support import MANY_SIZES, apply, check_executables, check_values_stay

import tempo_ir as tp
from tempo_ir import nn, optim
from tempo_ir.passes.pipeline import default_pipeline

Program = Callable[[], None]


def learner() -> None:
    """Acting step by step, and learning from all steps as one batch."""
    (i, I), (t, T) = tp.dims("i", "t")
    e, _ = tp.dim("e", 1)
    x, w = tp.input("x", tp.f64[3, 4], over=(i, t)), tp.input("w", tp.f64[4, 4], over=(i, e))
    tp.output("acted", tp.tanh(x @ w[i, 0])[i, t].max(1))
    flat = x[i, 0:T].flatten(0, 1)
    tp.output("learnt", (tp.tanh(flat @ w) - 0.5).sum())
    tp.output("weights", tp.einsum("bk,bn->kn", flat, tp.tanh(flat @ w) ** 2))


def elementwise() -> None:
    t, T = tp.dim("t")
    x, b = tp.input("x", tp.f64[3, 4], over=t), tp.input("b", tp.f64[4])
    flat = x[0:T].flatten(0, 1)
    rows = tp.where(flat > b, flat * 2, tp.ones([3 * T, 4]) + flat.max(1).reshape(3 * T, 1))
    tp.output("rows", rows)
    tp.output("sums", tp.cumsum(tp.softmax(rows, 1), 1).sum(0))
    tp.output("greatest", tp.argmax(rows, 1))


def several_axes() -> None:
    t, T = tp.dim("t")
    x = tp.input("x", tp.f64[2, 3, 4], over=t)
    flat = x[0:T].flatten(0, 2)
    tp.output("sorted", tp.sort(tp.exp(flat), 1).sum(0))
    tp.output("turned", flat.reshape(6 * T, 2, 2).transpose(0, 2, 1).sum((0, 1)))
    tp.output("part", flat[:, 1:3].prod(1))


def rows_that_mix() -> None:
    t, T = tp.dim("t")
    x, y = tp.input("x", tp.f64[3, 4], over=t), tp.input("y", tp.f64[3 * T, 4])
    flat = x[0:T].flatten(0, 1)
    tp.output("scan", tp.cumsum(flat, 0))
    tp.output("apart", tp.exp(flat) + y)
    tp.output("some", tp.exp(flat)[T : 2 * T])


PROGRAMS = [learner, elementwise, several_axes, rows_that_mix]


@functools.cache
def graph(program: Program):
    """The graph before the passes."""
    return apply(tp.program(program)().module.clone(), "sdg-autodiff", "sdg-simplify")


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_values_stay(program: Program) -> None:
    after = apply(graph(program).clone(), "sdg-unflatten", "sdg-devectorize")
    for special in (False, True):
        check_values_stay(graph(program), after, MANY_SIZES, 1e-12, special=special)


@pytest.mark.parametrize("program", PROGRAMS)
def test_on_the_cpu(program: Program) -> None:
    before = graph(program)
    on, off = tp.compile(before), tp.compile(before, without=("sdg-unflatten", "sdg-devectorize"))
    check_executables(before, (on, off), MANY_SIZES, 1e-11)


def ops_of(module: object) -> Counter[str]:
    """How many ops of each name there are."""
    return Counter(op.name for op in module.walk())  # pyright: ignore


def test_what_acts_and_what_learns_is_computed_once() -> None:
    before = graph(learner).clone()
    assert (ops_of(before)["sdg.contract"], ops_of(before)["sdg.tanh"]) == (4, 3)
    after = apply(before, "sdg-cse", "sdg-unflatten", "sdg-devectorize", "sdg-dce")
    assert (ops_of(after)["sdg.contract"], ops_of(after)["sdg.tanh"]) == (2, 1)
    assert not ops_of(after)["sdg.reshape"]


@pytest.mark.parametrize("epochs", [1, 2])
def test_one_forward_pass_less_where_there_is_one_epoch(epochs: int) -> None:
    """A policy that acts and learns: two products forward each step, of which learning in one epoch adds none."""

    @tp.program
    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        e, _ = tp.dim("e", epochs)
        policy = nn.MLP(4, 8, 2, name="policy", steps=(i, e))
        obs = tp.tensor("obs", tp.f32[3, 4], over=(i, t))
        logits = policy[i, 0](obs)
        obs[i, 0] = tp.random.uniform(-1.0, 1.0, tp.f32[3, 4])
        obs[i, t] = tp.tanh(obs[i, t - 1] + logits[i, t - 1].sum(1).reshape(3, 1))
        now = policy(tp.stop_gradient(obs)[i, 0:T].flatten(0, 1))
        optim.Adam(0.1).minimize(tp.mean(now * now), policy)
        tp.output("obs", obs)

    module = program().module.clone()
    products = ops_of(apply(module, *default_pipeline()))["sdg.contract"]
    assert products == (5 if epochs == 1 else 7)  # two forward, one back and two of weights; two forward again
    on, off = tp.compile(program()), tp.compile(program(), without=("sdg-unflatten", "sdg-devectorize"))
    state = on.init(0)
    for T in (1, 2, 5, 9):
        found, expected = (each(I=3, T=T, state=state, seed=T) for each in (on, off))
        np.testing.assert_allclose(found["obs"], expected["obs"], 2e-4, 2e-5)
        for key in state:
            np.testing.assert_allclose(found.state[key], expected.state[key], 2e-3, 2e-4, err_msg=key)
