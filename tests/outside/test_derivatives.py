"""Derivatives of derivatives, stops, and the ops whose gradient has a corner, beside jax and torch in f64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import tempo_ir as tp

TARGETS = ("cpu", "reference")


def run(program: Callable[[], None], **arrays: Any) -> list[tp.Result]:
    """The outputs of the program on each target."""
    made = tp.program(program)()
    return [tp.compile(made, target)(**arrays) for target in TARGETS]


def close(found: Any, expected: Any, what: str = "") -> None:
    np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-9, atol=1e-11, err_msg=what)


SMOOTH: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "exp of a square": (lambda x: tp.exp(-x * x), lambda x: jnp.exp(-x * x)),
    "tanh": (tp.tanh, jnp.tanh),
    "sigmoid": (tp.sigmoid, jax.nn.sigmoid),
    "silu": (tp.silu, jax.nn.silu),
    "gelu": (tp.gelu, lambda x: jax.nn.gelu(x, approximate=False)),
    "softplus": (tp.softplus, jax.nn.softplus),
    "log and root": (
        lambda x: tp.ln(x * x + 1) * tp.sqrt(x * x + 2),
        lambda x: jnp.log(x * x + 1) * jnp.sqrt(x * x + 2),
    ),
    "rsqrt": (lambda x: tp.rsqrt(x * x + 1), lambda x: (x * x + 1) ** -0.5),
    "quotient": (lambda x: tp.sin(x) / (2 + tp.cos(x)), lambda x: jnp.sin(x) / (2 + jnp.cos(x))),
    "power": (lambda x: (x * x + 1) ** x, lambda x: (x * x + 1) ** x),
    "erf": (tp.erf, jax.scipy.special.erf),
    "softmax": (tp.softmax, jax.nn.softmax),
    "log softmax": (tp.log_softmax, jax.nn.log_softmax),
    "logsumexp": (tp.logsumexp, jax.nn.logsumexp),
    "layer norm": (tp.layer_norm, lambda x: (x - x.mean(-1)) / jnp.sqrt(x.var(-1) + 1e-5)),
    "prod": (tp.prod, jnp.prod),
    "cumprod": (tp.cumprod, jnp.cumprod),
    "cumsum": (lambda x: tp.cumsum(x * x, reverse=True), lambda x: jnp.cumsum((x * x)[::-1])[::-1]),
    "variance": (tp.var, jnp.var),
    "outer products": (
        lambda x: tp.einsum("i,j,j->i", x, x, tp.sin(x)),
        lambda x: jnp.einsum("i,j,j->i", x, x, jnp.sin(x)),
    ),
    "sort": (lambda x: tp.sort(x * x) * np.arange(5.0), lambda x: jnp.sort(x * x) * np.arange(5.0)),
    "gather": (lambda x: (x**3).take(np.array([4, 0, 0, 2])), lambda x: (x**3)[np.array([4, 0, 0, 2])]),
    "scatter": (
        lambda x: tp.scatter_add((3,), np.array([0, 2, 0, 1, 2]), x**3) ** 2,
        lambda x: jnp.zeros(3).at[np.array([0, 2, 0, 1, 2])].add(x**3) ** 2,
    ),
    "max": (lambda x: tp.max(x) ** 3, lambda x: jnp.max(x) ** 3),
    "where": (lambda x: tp.where(x > 0, x**3, tp.sin(x)), lambda x: jnp.where(x > 0, x**3, jnp.sin(x))),
    "pad and slice": (lambda x: tp.pad(x[1:4] ** 3, 1, 2) * x[0], lambda x: jnp.pad(x[1:4] ** 3, (1, 2)) * x[0]),
    "concat and reverse": (
        lambda x: tp.concat([x, tp.reverse(x)]) * tp.concat([x[1:], x, x[:1]]),
        lambda x: jnp.concatenate([x, x[::-1]]) * jnp.concatenate([x[1:], x, x[:1]]),
    ),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_second_and_third_derivatives(name: str) -> None:
    ours, theirs = SMOOTH[name]
    weights = np.array([1.0, -2.0, 0.5, 3.0, 1.5])

    def program(third: bool) -> None:
        x = tp.input("x", tp.f64[5])
        value = tp.sum(tp.sin(ours(x)))
        first = tp.grad(value, x)
        second = tp.grad(tp.sum(first * weights), x)
        for key, tensor in {"value": value, "first": first, "second": second}.items():
            tp.output(key, tensor)
        if third:
            tp.output("third", tp.grad(tp.sum(second * second), x, allow_unused=True))

    def in_jax(x: Any) -> dict[str, Any]:
        value = lambda x: jnp.sin(theirs(x)).sum()  # noqa: E731
        first = jax.grad(value)
        second = jax.grad(lambda x: (first(x) * weights).sum())
        third = jax.grad(lambda x: (second(x) ** 2).sum())
        return {"value": value(x), "first": first(x), "second": second(x), "third": third(x)}

    x = np.array([0.3, -1.1, 0.8, 1.7, -0.4])
    with jax.enable_x64(True):
        expected = jax.jit(in_jax)(x)
    for target in TARGETS:
        interpreted = target == "reference"  # compiling a third derivative takes seconds
        found = tp.compile(tp.program(program)(third=interpreted), target)(x=x)
        for key in expected if interpreted else ("value", "first", "second"):
            close(found[key], expected[key], f"{key} on {target}")


def test_second_derivative_through_time() -> None:
    def program() -> None:
        t, T = tp.dim("t", at_least=1)
        x, w = tp.input("x", tp.f64[()], over=t), tp.input("w", tp.f64[()])
        h = tp.tensor("h", tp.f64[()], over=t)
        h[0] = x
        h[t] = tp.tanh(w * h[t - 1] + x)
        first = tp.grad(h[T - 1] ** 2, w)
        tp.output("first", first)
        tp.output("second", tp.grad(first, w))
        tp.output("mixed", tp.grad(first, x))

    def value(w: Any, x: Any) -> Any:
        return jax.lax.scan(lambda h, a: (jnp.tanh(w * h + a), 0), x[0], x[1:])[0] ** 2

    made = tp.program(program)()
    targets = [tp.compile(made, target) for target in TARGETS]
    with jax.enable_x64(True):
        for steps in (1, 2, 5, 9):
            x, w = np.linspace(-1, 1, steps), np.float64(0.7)
            first, second = jax.jit(lambda w, x: (jax.grad(value)(w, x), jax.grad(jax.grad(value), (0, 1))(w, x)))(w, x)
            expected = {"first": first, "second": second[0], "mixed": second[1]}
            for target in targets:
                found = target(x=x, w=w)
                for key, array in expected.items():
                    close(found[key], array, f"{key} at T = {steps}")


def test_second_derivative_of_a_read_of_the_past() -> None:
    def program() -> None:
        t, _ = tp.dim("t")
        x = tp.input("x", tp.f64[()], over=t)
        first = tp.grad(tp.sum(x[0 : t + 1] ** 3) * x, x)
        tp.output("second", tp.grad(first**2, x))

    def loss(x: Any) -> Any:
        return (jnp.cumsum(x**3) * x).sum()

    made = tp.program(program)()
    targets = [tp.compile(made, target) for target in TARGETS]
    with jax.enable_x64(True):
        for steps in (0, 1, 2, 5):
            x = np.linspace(-1, 2, steps)
            expected = jax.jit(jax.grad(lambda x: (jax.grad(loss)(x) ** 2).sum()))(x)
            for target in targets:
                close(target(x=x)["second"], expected)


def test_stops() -> None:
    """A stop is a constant for every derivative, and a value for everything else."""

    def program() -> None:
        x = tp.input("x", tp.f64[4])
        y = tp.sin(x)
        tp.output("y", tp.stop_gradient(y))
        tp.output("once", tp.grad(tp.sum(tp.stop_gradient(y) * x), x))
        tp.output("straight", tp.grad(tp.sum((x + tp.stop_gradient(tp.round(x) - x)) ** 2), x))
        tp.output("nested", tp.grad(tp.sum(tp.stop_gradient(tp.grad(tp.sum(y * y), x)) * x), x))

    x = np.array([0.3, -1.2, 2.6, 0.9])
    for found in run(program, x=x):
        close(found["y"], np.sin(x))
        close(found["once"], np.sin(x))
        close(found["straight"], 2 * np.round(x))
        close(found["nested"], 2 * np.sin(x) * np.cos(x))


CORNERS: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[float]]] = {
    "max of ties": (lambda x: tp.max(x), lambda x: x.amax(), [2, 1, 2, 2]),
    "max along an axis": (
        lambda x: tp.max(tp.reshape(x, 2, 2), 0),
        lambda x: x.reshape(2, 2).amax(0),
        [2, 1, 2, 3],
    ),
    "maximum of ties": (lambda x: tp.maximum(x, 1.0), lambda x: torch.maximum(x, torch.tensor(1.0)), [1, 0, 2, 1]),
    "relu": (tp.relu, torch.relu, [0, -1, 1, -0.0]),
    "relu of NaN": (tp.relu, torch.relu, [np.nan, -1, np.inf, -np.inf]),
    "clip by tensors": (
        lambda x: tp.clip(x[:2], x[2], x[3]),
        lambda x: torch.clamp(x[:2], x[2], x[3]),
        [1, 2, 1, 2],
    ),
    "clip by tensors beyond": (
        lambda x: tp.clip(x[:2], x[2], x[3]),
        lambda x: torch.clamp(x[:2], x[2], x[3]),
        [0, 3, 1, 2],
    ),
    "maximum with 0": (
        lambda x: tp.maximum(x, tp.stop_gradient(x * 0)),
        lambda x: torch.maximum(x, x.detach() * 0),
        [0, -1, 1, 0],
    ),
    "abs at 0": (tp.abs, torch.abs, [0, -1, 1, -0.0]),
    "sign": (lambda x: tp.sign(x) * x, lambda x: torch.sign(x) * x, [0, -2, 3, 1]),
    "clip on its ends": (lambda x: tp.clip(x, -1, 1), lambda x: torch.clamp(x, -1, 1), [-1, 1, 2, 0]),
    "clip of nan": (lambda x: tp.clip(x, -1, 1), lambda x: torch.clamp(x, -1, 1), [5, np.nan, 0.5, -1]),
    "clip of nan by tensors": (
        lambda x: tp.clip(x[:2], x[2], x[3]),
        lambda x: torch.clamp(x[:2], x[2], x[3]),
        [5, np.nan, 0.5, 2],
    ),
    "clip of infinity": (lambda x: tp.clip(x, -1, 1), lambda x: torch.clamp(x, -1, 1), [5, np.inf, -np.inf, 0]),
    "where of a root": (
        lambda x: tp.where(x > 0, tp.sqrt(x), 0.0),
        lambda x: torch.where(x > 0, torch.where(x > 0, x, 1).sqrt(), 0.0),
        [0, -1, 4, 9],
    ),
    "sort of ties": (lambda x: tp.sort(x), lambda x: x.sort(stable=True).values, [2, 1, 2, 1]),
    "sort downwards": (
        lambda x: tp.sort(x, descending=True),
        lambda x: x.sort(stable=True, descending=True).values,
        [2, 1, 2, 1],
    ),
    "prod with a zero": (tp.prod, torch.prod, [0, 3, 2, -1]),
    "prod with two": (tp.prod, torch.prod, [0, 3, 0, -1]),
    "cumprod with a zero": (tp.cumprod, lambda x: x.cumprod(0), [2, 0, 3, 4]),
    "cumprod with two": (tp.cumprod, lambda x: x.cumprod(0), [2, 0, 3, 0]),
    "power of 0": (lambda x: x**2.5 + x**1 + x**0, lambda x: x**2.5 + x**1 + x**0, [0, 1, 2, 3]),
    "0 to a power": (lambda x: (0 * x) ** (x + 1), lambda x: (0 * x) ** (x + 1), [0, 1, 2, 3]),
    "masked softmax": (
        lambda x: tp.softmax(tp.where(x > 0, x, -np.inf)),
        lambda x: torch.softmax(torch.where(x > 0, x, -torch.inf), 0),
        [1, -1, 2, 0],
    ),
    "remainder": (lambda x: x % 2.0, lambda x: torch.remainder(x, 2.0), [1, -1, 2, 3.5]),
    "remainder by it": (
        lambda x: 5.0 % x,
        lambda x: torch.remainder(torch.tensor(5.0).double(), x),
        [1.5, -1.5, 2, 3.5],
    ),
    "one of many": (lambda x: x.take(np.array([1, 1, 3, 1])), lambda x: x[[1, 1, 3, 1]], [1, 2, 3, 4]),
}


@pytest.mark.parametrize("name", CORNERS)
def test_corners(name: str) -> None:
    ours, theirs, numbers = CORNERS[name]
    weights = np.array([1.0, -2.0, 0.5, 3.0])

    def program() -> None:
        x = tp.input("x", tp.f64[4])
        y = ours(x)
        tp.output("g", tp.grad(tp.sum(y * weights[: y.shape[0] if y.ndim else 1]), x))

    x = torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
    y = theirs(x)
    (y * torch.from_numpy(weights[: y.numel()])).sum().backward()
    for found in run(program, x=x.detach().numpy()):
        close(found["g"], x.grad.numpy())


def test_dynamic_slices_and_values_by_differences() -> None:
    """Slices at the point itself, of an axis and of the past, with sort, cumsum and max along the open axis."""

    def losses(x: Any, t: Any, T: Any) -> list[Any]:
        past = x[0 : t + 1]
        return [
            tp.sum(past[t] * past[0]),
            tp.sum(tp.cumsum(past**2, 0) ** 2),
            tp.sum(tp.max(past, 0) ** 2),
            tp.sum(tp.sort(past, 0)[0] ** 3),
            tp.sum(tp.softmax(past, 0)[t] ** 2),
            tp.sum(x[t:T:2] ** 3) * tp.sum(x[tp.maximum(t - 1, 0)]),
            tp.sum(tp.prod(past, 0)),
        ]

    def program() -> None:
        t, T = tp.dim("t")
        x = tp.input("x", tp.f64[2], over=t)
        for number, loss in enumerate(losses(x, t, T)):
            tp.output(f"loss{number}", loss)
            tp.output(f"grad{number}", tp.grad(loss, x))

    made = tp.program(program)()
    for target in TARGETS:
        compiled = tp.compile(made, target)
        for steps in (1, 2, 5):
            x = np.random.default_rng(steps).uniform(0.5, 1.5, (steps, 2))
            found = compiled(x=x)
            changed = {position: _moved(compiled, x, position) for position in np.ndindex(x.shape)}
            for number in range(7):
                expected = np.array([changed[position][number] for position in np.ndindex(x.shape)]).reshape(x.shape)
                where = f"loss {number} at T = {steps} on {target}"
                np.testing.assert_allclose(found[f"grad{number}"], expected, rtol=1e-6, atol=1e-7, err_msg=where)


def _moved(compiled: Any, x: np.ndarray, position: tuple[int, ...], step: float = 1e-6) -> list[float]:
    """Central differences of all losses by one number."""
    results = []
    for offset in (step, -step):
        moved = x.copy()
        moved[position] += offset
        results.append(compiled(x=moved))
    return [float((results[0][f"loss{n}"] - results[1][f"loss{n}"]).sum()) / (2 * step) for n in range(7)]
