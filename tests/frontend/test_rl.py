"""Returns, advantages and normalisation with known answers."""

from __future__ import annotations

import numpy as np
import pytest
from frontend_support import run

import tempo_ir as tp
from tempo_ir import rl


def test_discounted_sum() -> None:
    def program():
        tp.output("y", rl.discounted_sum(tp.input("x", tp.f64[3]), 0.5))

    assert run(program, x=np.ones(3))["y"] == 1.75


@pytest.mark.parametrize("spec", [tp.f64[600, 2], tp.f32[600, 2], tp.bf16[600, 2], tp.i64[600, 2]])
def test_discounts_are_as_exact_as_the_rewards(spec: tp.Spec) -> None:
    def program():
        tp.output("y", rl.discounted_sum(tp.input("x", spec), 0.99))

    x = np.random.default_rng(0).integers(-9, 9, spec.shape).astype(spec.dtype.numpy)
    out = run(program, x=x)["y"]
    expected = (0.99 ** np.arange(600)[:, None] * x.astype(np.float64)).sum(0)
    tolerance = {"f64": 1e-12, "bf16": 2e-2}.get(spec.dtype.name, 1e-5)
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


def test_normalise_of_one_sample_is_zero() -> None:
    def program():
        tp.output("one", rl.normalise(tp.input("x", tp.f64[1])))
        tp.output("more", rl.normalise(tp.input("y", tp.f64[5])))

    y = np.arange(5.0)
    out = run(program, x=np.array([3.0]), y=y)
    assert out["one"].tolist() == [0]
    np.testing.assert_allclose(out["more"], (y - y.mean()) / y.std(), rtol=1e-6)


def test_generalised_advantages() -> None:
    def program():
        t, T = tp.dim("t")
        reward, value, following = (tp.input(name, tp.f64[()], over=t) for name in ("r", "v", "n"))
        terminated, truncated = (tp.input(name, tp.bool[()], over=t) for name in ("terminated", "truncated"))
        delta = reward + 0.9 * tp.where(terminated, 0, following) - value
        tp.output("a", rl.generalised_advantages("a", delta, 0.9 * 0.8, (t,), terminated | truncated))

    out = run(
        program,
        r=np.ones(5),
        v=np.array([0.5, 0.4, 0.3, 0.2, 0.1]),
        n=np.array([0.4, 0.3, 0.9, 0.1, 0.0]),
        terminated=np.arange(5) == 4,
        truncated=np.arange(5) == 2,
    )
    np.testing.assert_allclose(out["a"], [2.269184, 1.9572, 1.51, 1.538, 0.9], atol=1e-12)


@pytest.mark.parametrize("gamma", [0.0, 0.9, 1.0])
def test_discounted_returns_are_stable(gamma: float) -> None:
    def program():
        t, T = tp.dim("t")
        reward = tp.input("r", tp.f64[()], over=t)
        tp.output("g", rl.discounted_returns("later", reward, gamma, t, last=0.0))

    steps = 300
    expected = np.array([sum(gamma**k for k in range(steps - t)) for t in range(steps)])
    np.testing.assert_allclose(run(program, r=np.ones(steps))["g"], expected, rtol=1e-12)
