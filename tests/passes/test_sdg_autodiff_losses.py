"""Several losses in one program: each by its own parameters, at once, or one inside another; beside jax in f64."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir.passes.remarks import collecting

TARGETS = ("reference", "cpu")


def close(found: Any, expected: Any, what: str) -> None:
    np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-10, atol=1e-12, err_msg=what)


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


# ---- a generator and a discriminator, updated at the same step


def adversaries() -> None:
    i, _ = tp.dim("i")
    z, real = tp.input("z", tp.f64[4, 2], over=i), tp.input("real", tp.f64[4, 3], over=i)
    g, d = tp.state("g", tp.f64[2, 3], steps=i), tp.state("d", tp.f64[3], steps=i)
    fake = tp.tanh(z @ g)
    loss_d = tp.mean(tp.softplus(-(real @ d)) + tp.softplus(fake @ d))
    loss_g = tp.mean(tp.softplus(-(fake @ d)))
    d.next = d - 0.1 * tp.grad(loss_d, d)
    g.next = g - 0.2 * tp.grad(loss_g, g)
    tp.output("losses", tp.stack([loss_d, loss_g]))


def test_two_losses_by_two_parameters_at_once() -> None:
    def loss_d(d: Any, g: Any, z: Any, real: Any) -> Any:
        return (jax.nn.softplus(-(real @ d)) + jax.nn.softplus(jnp.tanh(z @ g) @ d)).mean()

    def loss_g(g: Any, d: Any, z: Any) -> Any:
        return jax.nn.softplus(-(jnp.tanh(z @ g) @ d)).mean()

    made = [tp.compile(tp.program(adversaries)(), target) for target in TARGETS]
    for steps in (0, 1, 2, 7):
        z, real, state = draw(steps, 4, 2), draw(steps, 4, 3, seed=1), {"g": draw(2, 3), "d": draw(3)}
        with jax.enable_x64(True):
            g, d = map(jnp.asarray, state.values())
            losses = []
            for number in range(steps):
                (of_d, to_d) = jax.value_and_grad(loss_d)(d, g, z[number], real[number])
                (of_g, to_g) = jax.value_and_grad(loss_g)(g, d, z[number])
                losses.append([of_d, of_g])
                d, g = d - 0.1 * to_d, g - 0.2 * to_g
        for target, compiled in zip(TARGETS, made, strict=True):
            out = compiled(z=z, real=real, state=state)
            close(out["losses"], np.array(losses).reshape(steps, 2), f"{steps} steps on {target}")
            close(out.state["g"], g, f"g after {steps} steps on {target}")
            close(out.state["d"], d, f"d after {steps} steps on {target}")


def test_a_remark_says_what_is_held() -> None:
    with collecting() as collected:
        tp.compile(tp.program(adversaries)(), "reference")
    text = " ".join(remark.message for remark in collected.remarks)
    assert "the gradients of %loss_d and of %loss_g need each other" in text
    assert "held constant" in text


def ring() -> None:
    """Three players, each of whom sees the next."""
    i, _ = tp.dim("i")
    players = [tp.state(name, tp.f64[2], steps=i) for name in "abc"]
    for number, own in enumerate(players):
        following = players[(number + 1) % 3]
        own.next = own - 0.1 * tp.grad(tp.sum(tp.sin(own * following) + own**2), own)


def test_three_losses_in_a_ring() -> None:
    loss = jax.grad(lambda own, following: (jnp.sin(own * following) + own**2).sum())
    state = {name: draw(2, seed=number) for number, name in enumerate("abc")}
    with jax.enable_x64(True):
        players = list(map(jnp.asarray, state.values()))
        for _ in range(4):
            players = [own - 0.1 * loss(own, players[(n + 1) % 3]) for n, own in enumerate(players)]
    for target in TARGETS:
        out = tp.compile(tp.program(ring)(), target)(I=4, state=state)
        for name, expected in zip("abc", players, strict=True):
            close(out.state[name], expected, f"{name} on {target}")


# ---- a loss whose inner steps are differentiated through


def learning_to_learn(pulled: bool) -> None:
    """The first weights of each task are learnt by what `K` steps make of them (Finn et al. 2017)."""
    (i, _), (k, K) = tp.dim("i"), tp.dim("k", at_least=1)
    x = tp.input("x", tp.f64[3], over=(i, k))
    m = tp.state("m", tp.f64[3], steps=i)
    w = tp.tensor("w", tp.f64[3], over=(i, k))
    inner = tp.sum(tp.sin(w * x) + 0.5 * w**2)
    if pulled:  # by the parameter of the outer loss: its update then lies on a path to the inner loss of later tasks
        inner = inner + 0.3 * tp.sum((w - m) ** 2)
    after = w - 0.1 * tp.grad(inner, w)
    w[i, 0] = m
    w[i, k] = after[i, k - 1]
    outer = tp.sum(tp.cos(after[i, K - 1]))
    m.next = m - 0.2 * tp.grad(outer, m)
    tp.output("outer", outer)


@pytest.mark.parametrize("pulled", [False, True])
def test_the_gradient_flows_through_inner_steps(pulled: bool) -> None:
    def inner(w: Any, m: Any, x: Any) -> Any:
        return (jnp.sin(w * x) + 0.5 * w**2).sum() + pulled * 0.3 * ((w - m) ** 2).sum()

    def outer(m: Any, rows: Any) -> Any:
        w = m
        for x in rows:
            w = w - 0.1 * jax.grad(inner)(w, m, x)
        return jnp.cos(w).sum()

    made = [tp.compile(tp.program(learning_to_learn)(pulled=pulled), target) for target in TARGETS]
    for tasks, steps in ((1, 1), (3, 4), (2, 7)):
        x, m = draw(tasks, steps, 3), draw(3, seed=1)
        state = {"m": m}
        outers = []
        with jax.enable_x64(True):
            for task in range(tasks):
                value, gradient = jax.value_and_grad(outer)(m, x[task])
                outers.append(value)
                m = m - 0.2 * gradient
        for target, compiled in zip(TARGETS, made, strict=True):
            out = compiled(x=x, state=state)
            close(out["outer"], outers, f"{tasks} tasks of {steps} steps on {target}")
            close(out.state["m"], m, f"m after {tasks} tasks of {steps} steps on {target}")


def learnt_rate() -> None:
    """The gradient by a constant of all that is trained with it."""
    k, K = tp.dim("k", at_least=1)
    x = tp.input("x", tp.f64[3], over=k)
    rate = tp.parameter("rate", tp.f64[()])
    w = tp.tensor("w", tp.f64[3], over=k)
    loss = tp.sum(tp.sin(w * x) + 0.5 * w**2)
    after = w - rate * tp.grad(loss, w)
    w[0] = 1.0
    w[k] = after[k - 1]
    tp.output("gradient", tp.grad(tp.sum(after[K - 1] ** 2), rate))


def test_the_gradient_by_a_learning_rate() -> None:
    def last(rate: Any, rows: Any) -> Any:
        w = jnp.ones(3)
        for x in rows:
            w = w - rate * jax.grad(lambda w, x: (jnp.sin(w * x) + 0.5 * w**2).sum())(w, x)
        return (w**2).sum()

    made = [tp.compile(tp.program(learnt_rate)(), target) for target in TARGETS]
    for steps in (1, 2, 5):
        x = draw(steps, 3)
        with jax.enable_x64(True):
            expected = jax.grad(last)(0.1, x)
        for target, compiled in zip(TARGETS, made, strict=True):
            out = compiled(x=x, state={"rate": np.float64(0.1)})
            close(out["gradient"], expected, f"{steps} steps on {target}")


# ---- gradients of gradients


def penalised() -> None:
    """A loss with a penalty on its gradient by the data (Gulrajani et al. 2017)."""
    i, _ = tp.dim("i")
    x = tp.input("x", tp.f64[3], over=i)
    w = tp.state("w", tp.f64[3, 3], steps=i)
    score = tp.sum(tp.tanh(x @ w) ** 2)
    slope = tp.grad(score, x)
    loss = score + (tp.sqrt(tp.sum(slope**2)) - 1) ** 2
    w.next = w - 0.1 * tp.grad(loss, w)


def test_a_penalty_on_a_gradient() -> None:
    def score(x: Any, w: Any) -> Any:
        return (jnp.tanh(x @ w) ** 2).sum()

    def loss(w: Any, x: Any) -> Any:
        return score(x, w) + (jnp.sqrt((jax.grad(score)(x, w) ** 2).sum()) - 1) ** 2

    x, w = draw(5, 3), draw(3, 3, seed=1)
    state = {"w": w}
    with jax.enable_x64(True):
        for row in x:
            w = w - 0.1 * jax.grad(loss)(w, row)
    for target in TARGETS:
        out = tp.compile(tp.program(penalised)(), target)(x=x, state=state)
        close(out.state["w"], w, target)


def curved() -> None:
    """The Hessian of a loss through time, times a vector."""
    t, T = tp.dim("t", at_least=1)
    x, w, v = tp.input("x", tp.f64[2], over=t), tp.input("w", tp.f64[2, 2]), tp.input("v", tp.f64[2, 2])
    h = tp.tensor("h", tp.f64[2], over=t)
    h[0] = x
    h[t] = tp.tanh(h[t - 1] @ w + x)
    loss = tp.sum(h[T - 1] ** 2)
    tp.output("product", tp.grad(tp.sum(tp.grad(loss, w) * v), w))


def test_a_hessian_times_a_vector() -> None:
    def loss(w: Any, rows: Any) -> Any:
        h = rows[0]
        for x in rows[1:]:
            h = jnp.tanh(h @ w + x)
        return (h**2).sum()

    made = [tp.compile(tp.program(curved)(), target) for target in TARGETS]
    for steps in (1, 2, 5, 8):
        x, w, v = draw(steps, 2), draw(2, 2, seed=1), draw(2, 2, seed=2)
        with jax.enable_x64(True):
            expected = jax.jvp(lambda w, x=x: jax.grad(loss)(w, x), (jnp.asarray(w),), (jnp.asarray(v),))[1]
        for target, compiled in zip(TARGETS, made, strict=True):
            close(compiled(x=x, w=w, v=v)["product"], expected, f"{steps} steps on {target}")
