"""Gradients through recurrences of every kind, and through ops along an open axis, by central differences in f64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tempo_ir as tp

STEP = 1e-6


def differences(loss: Callable[..., np.ndarray], arrays: dict[str, np.ndarray], key: str) -> np.ndarray:
    """The gradient of the sum of a loss by one array."""
    gradient = np.zeros_like(arrays[key])
    for position in np.ndindex(gradient.shape):
        sums: list[float] = []
        for offset in (STEP, -STEP):
            moved = arrays[key].copy()
            moved[position] += offset
            sums.append(float(np.sum(loss(**{**arrays, key: moved}))))
        gradient[position] = (sums[0] - sums[1]) / (2 * STEP)
    return gradient


def agree(make: Callable[[], tuple[Any, dict[str, Any]]], shapes: list[dict[str, tuple[int, ...]]]) -> None:
    """`make` gives a loss and what it is differentiated by; gradients on both targets equal central differences."""

    def program() -> None:
        loss, wrt = make()
        tp.output("loss", loss)
        for key, tensor in wrt.items():
            tp.output(f"d{key}", tp.grad(loss, tensor))

    made = tp.program(program)()
    compiled = {target: tp.compile(made, target) for target in ("cpu", "reference")}
    for size in shapes:
        drawn = np.random.default_rng(1)
        arrays = {key: drawn.uniform(0.5, 1.5, shape) for key, shape in size.items()}
        found = {target: executable(**arrays) for target, executable in compiled.items()}
        for key in arrays:
            expected = differences(lambda **given: compiled["cpu"](**given)["loss"], arrays, key)
            for target, out in found.items():
                where = f"{key} at {size} on {target}"
                np.testing.assert_allclose(out[f"d{key}"], expected, rtol=1e-6, atol=1e-7, err_msg=where)


# ---- recurrences over one dim; x is of f64[2] over t, w of f64[2, 2]


def second_order(h: Any, x: Any, w: Any, t: Any, T: Any) -> None:
    h[0], h[1] = x, x * 2
    h[t] = tp.tanh(h[t - 1] @ w + h[t - 2] * x)


def third_order(h: Any, x: Any, w: Any, t: Any, T: Any) -> None:
    h[t < 3] = x
    h[t] = tp.tanh(h[t - 1] @ w + h[t - 3] * x) - h[t - 2]


def backwards(h: Any, x: Any, w: Any, t: Any, T: Any) -> None:
    h[T - 1] = x
    h[t] = tp.tanh(h[t + 1] @ w) + x


def second_order_backwards(h: Any, x: Any, w: Any, t: Any, T: Any) -> None:
    h[t >= T - 2] = x
    h[t] = tp.tanh(h[t + 1] @ w + h[t + 2] * x)


def in_chunks(h: Any, x: Any, w: Any, t: Any, T: Any) -> None:
    h[t % 3 == 0] = x
    h[t] = tp.tanh(h[t - 1] @ w) + x


def by_halves(h: Any, x: Any, w: Any, t: Any, T: Any) -> None:
    h[0] = x
    h[t] = tp.tanh(h[t // 2] @ w) + x


def over_a_window(h: Any, x: Any, w: Any, t: Any, T: Any) -> None:
    h[0] = x
    h[t] = tp.tanh(tp.mean(h[tp.maximum(0, t - 3) : t], 0) @ w + x)


def attending_to_its_past(h: Any, x: Any, w: Any, t: Any, T: Any) -> None:
    h[0] = x
    past = h[0:t]
    h[t] = tp.tanh(tp.softmax(past @ x) @ past) + x @ w


def two_by_turns(h: Any, x: Any, w: Any, t: Any, T: Any) -> None:
    other = tp.tensor("other", tp.f64[2], over=t)
    h[0], other[0] = x, x * x
    h[t] = tp.tanh(h[t - 1] @ w + other[t - 1])
    other[t] = tp.sin(h[t] * other[t - 1] + x)


RECURRENCES = {
    made.__name__.replace("_", " "): made
    for made in (
        second_order,
        third_order,
        backwards,
        second_order_backwards,
        in_chunks,
        by_halves,
        over_a_window,
        attending_to_its_past,
        two_by_turns,
    )
}


@pytest.mark.parametrize("name", RECURRENCES)
def test_recurrence(name: str) -> None:
    def make() -> tuple[Any, dict[str, Any]]:
        t, T = tp.dim("t")
        x, w = tp.input("x", tp.f64[2], over=t), tp.input("w", tp.f64[2, 2])
        h = tp.tensor("h", tp.f64[2], over=t)
        RECURRENCES[name](h, x, w, t, T)
        return tp.sum(h * h), {"x": x, "w": w}

    agree(make, [{"x": (steps, 2), "w": (2, 2)} for steps in (0, 1, 2, 3, 7)])


# ---- recurrences over two dims; x is over (i, t), w over i


def grid(h: Any, x: Any, w: Any, i: Any, t: Any, I: Any, T: Any) -> None:
    h[0, 0], h[0, t], h[i, 0] = x, h[0, t - 1] * x, h[i - 1, 0] + x
    h[i, t] = tp.sin(h[i - 1, t] * h[i, t - 1]) + w * h[i - 1, t - 1]


def rows_in_turn(h: Any, x: Any, w: Any, i: Any, t: Any, I: Any, T: Any) -> None:
    h[0, 0], h[i, 0] = x, tp.sin(h[i - 1, T - 1]) + x
    h[i, t] = tp.tanh(h[i, t - 1] * w + x)


def triangle(h: Any, x: Any, w: Any, i: Any, t: Any, I: Any, T: Any) -> None:
    h[t > i] = x
    h[0, t] = x * w
    h[i, t] = h[i - 1, t] * w + x


def rows_backwards(h: Any, x: Any, w: Any, i: Any, t: Any, I: Any, T: Any) -> None:
    h[I - 1, t] = x
    h[i, t] = h[i + 1, tp.maximum(t - 1, 0)] * w + x


TWO_DIMS = {made.__name__.replace("_", " "): made for made in (grid, rows_in_turn, triangle, rows_backwards)}


@pytest.mark.parametrize("name", TWO_DIMS)
def test_recurrence_over_two_dims(name: str) -> None:
    def make() -> tuple[Any, dict[str, Any]]:
        (i, I), (t, T) = tp.dim("i", at_least=1), tp.dim("t", at_least=1)
        x, w = tp.input("x", tp.f64[()], over=(i, t)), tp.input("w", tp.f64[()], over=i)
        h = tp.tensor("h", tp.f64[()], over=(i, t))
        TWO_DIMS[name](h, x, w, i, t, I, T)
        return h * h, {"x": x, "w": w}

    agree(make, [{"x": shape, "w": shape[:1]} for shape in ((1, 1), (2, 3), (3, 2), (3, 4))])


# ---- ops along an axis whose extent is another at each point: p is x[0:t + 1]

DYNAMIC: dict[str, Callable[..., Any]] = {
    "sum": lambda p, x, w, t, T: tp.sum(tp.sum(p, 0) ** 2),
    "mean": lambda p, x, w, t, T: tp.mean(p**2),
    "variance": lambda p, x, w, t, T: tp.var(p),
    "prod": lambda p, x, w, t, T: tp.sum(tp.prod(p, 0) ** 2),
    "max": lambda p, x, w, t, T: tp.sum(tp.max(p, 0) * x),
    "min": lambda p, x, w, t, T: tp.sum(tp.min(p, 0) * x),
    "cumsum": lambda p, x, w, t, T: tp.sum(tp.cumsum(p, 0) ** 2),
    "cumprod": lambda p, x, w, t, T: tp.sum(tp.cumprod(p, 0) ** 2),
    "cumprod reversed": lambda p, x, w, t, T: tp.sum(tp.cumprod(p, 0, reverse=True) ** 2),
    "softmax": lambda p, x, w, t, T: tp.sum(tp.softmax(p, 0) ** 2),
    "logsumexp": lambda p, x, w, t, T: tp.sum(tp.logsumexp(p, 0) ** 2),
    "sort": lambda p, x, w, t, T: tp.sum(tp.cumsum(tp.sort(p, 0), 0) ** 2),
    "take by argsort": lambda p, x, w, t, T: tp.sum(tp.cumsum(p.take(tp.argsort(p[..., 0], 0), 0), 0) ** 2),
    "gather": lambda p, x, w, t, T: tp.sum(p.take(tp.arange(0, t + 1) // 2) ** 3),
    "scatter_add": lambda p, x, w, t, T: tp.sum(tp.scatter_add((2, 2), tp.arange(0, t + 1) % 2, p) ** 3),
    "concat": lambda p, x, w, t, T: tp.sum(tp.cumsum(tp.concat([p, w, x[t:T]], 0), 0) ** 2),
    "pad": lambda p, x, w, t, T: tp.sum(tp.cumsum(tp.pad(p, 2, 1, 0), 0) ** 2),
    "reverse": lambda p, x, w, t, T: tp.sum(tp.cumsum(tp.reverse(p, 0), 0) ** 2),
    "stack": lambda p, x, w, t, T: tp.sum(tp.cumsum(tp.stack([p, p * 2]), 0) ** 2),
    "reshape": lambda p, x, w, t, T: tp.sum(tp.cumsum(tp.reshape(p, -1), 0) ** 2),
    "broadcast": lambda p, x, w, t, T: tp.sum((p + tp.expand_dims(p, 1)) ** 2),
    "transpose and matmul": lambda p, x, w, t, T: tp.sum((p.T @ p @ w) ** 2),
    "outer product": lambda p, x, w, t, T: tp.sum(tp.einsum("nd,md->nm", p, p) ** 2),
    "three operands": lambda p, x, w, t, T: tp.sum(tp.einsum("nd,de,ne->n", p, w, p) ** 2),
    "one operand thrice": lambda p, x, w, t, T: tp.sum(tp.einsum("nd,ne,nf->def", p, p, p) ** 2),
    "layer norm": lambda p, x, w, t, T: tp.sum(tp.layer_norm(p, w[0], w[1]) ** 3),
    "where": lambda p, x, w, t, T: tp.sum(tp.where(p > 1, tp.ln(p), p**3)),
    "clip": lambda p, x, w, t, T: tp.sum(tp.clip(p, 0.7, 1.2) * p),
    "window of sums of the past": lambda p, x, w, t, T: tp.sum(
        tp.prod(tp.sum(p, 0)[tp.maximum(0, t - 1) : t + 1], 0) @ w
    ),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_along_an_open_axis(name: str) -> None:
    def make() -> tuple[Any, dict[str, Any]]:
        t, T = tp.dim("t")
        x, w = tp.input("x", tp.f64[2], over=t), tp.input("w", tp.f64[2, 2])
        loss = DYNAMIC[name](x[0 : t + 1], x, w, t, T) + tp.sum(x @ w)
        return loss, {"x": x, "w": w}

    agree(make, [{"x": (steps, 2), "w": (2, 2)} for steps in (0, 1, 2, 4)])
