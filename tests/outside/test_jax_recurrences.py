"""Recurrences beside `jax.lax.scan`, and their gradients through time beside `jax.grad`, in f64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir import nn, rl

SIZES = (0, 1, 2, 5, 17)
Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A recurrence twice. `ours` gives a tensor over t, or a single one; `theirs` the array of all its steps."""

    ours: Callable[..., tp.Tensor]
    theirs: Callable[[Arrays], Any]
    steps: Mapping[str, tuple[int, ...]]  # inputs over t, and their shapes at one step
    whole: Mapping[str, tuple[int, ...]]  # inputs that are the same at all steps
    at_least: int = 0  # steps

    def program(self) -> Any:
        """Inputs, the value, and the gradient of the sum of its sines by every input."""

        def recurrence() -> None:
            t, T = tp.dim("t", at_least=self.at_least or None)
            over = {name: tp.input(name, tp.f64[shape], over=t) for name, shape in self.steps.items()}
            inputs = over | {name: tp.input(name, tp.f64[shape]) for name, shape in self.whole.items()}
            value = self.ours(t, T, **inputs)
            tp.output("value", value)
            loss = tp.sum(tp.sin(value))
            for name, tensor in inputs.items():
                tp.output(f"d{name}", tp.grad(loss, tensor))

        return tp.program(recurrence)()

    def arrays(self, steps: int) -> dict[str, np.ndarray]:
        """Inputs, each drawn from a seed of its own."""
        shapes = {name: (steps, *shape) for name, shape in self.steps.items()} | dict(self.whole)
        return {
            name: np.random.default_rng(seed).uniform(-1.5, 1.5, shape)
            for seed, (name, shape) in enumerate(shapes.items())
        }

    def expected(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """What jax makes of it."""

        def loss(given: Arrays) -> Any:
            value = self.theirs(given)
            return jnp.sin(value).sum(), value

        gradients, value = jax.jit(jax.grad(loss, has_aux=True))(dict(arrays))
        return {"value": np.asarray(value)} | {f"d{name}": np.asarray(array) for name, array in gradients.items()}


def scan(step: Callable[..., Any], first: Any, *rows: Any, reverse: bool = False) -> Any:
    """The values of a recurrence `step(previous, *row)` at all steps."""

    def body(previous: Any, row: Any) -> Any:
        value = step(previous, *row)
        return value, value

    return jax.lax.scan(body, first, rows, reverse=reverse)[1]


def forward(name: str, spec: Any, t: Any, step: Callable[[tp.Tensor], tp.Tensor], first: Any = 0.0) -> tp.Tensor:
    """`h[t] = step(h[t - 1])` with `first` before step 0."""
    h = tp.tensor(name, spec, over=t)
    before = tp.tensor(f"{name}_before", spec, over=t)
    before[0] = first
    before[t] = h[t - 1]
    h[t] = step(before)
    return h


def backward(name: str, spec: Any, t: Any, T: Any, step: Callable[[tp.Tensor], tp.Tensor]) -> tp.Tensor:
    """`h[t] = step(h[t + 1])` with 0 after the last step."""
    h = tp.tensor(name, spec, over=t)
    after = tp.tensor(f"{name}_after", spec, over=t)
    after[T - 1] = 0.0
    after[t] = h[t + 1]
    h[t] = step(after)
    return h


# -------------------------------------------------------------------------------------------------- recurrences


def rnn(t: Any, T: Any, x: Any, w: Any, b: Any) -> Any:
    return forward("h", tp.f64[3], t, lambda h: tp.tanh(x + h @ w + b))


def rnn_in_jax(a: Arrays) -> Any:
    return scan(lambda h, x: jnp.tanh(x + h @ a["w"] + a["b"]), jnp.zeros(3), a["x"])


def rnn_backwards(t: Any, T: Any, x: Any, w: Any, b: Any) -> Any:
    return backward("h", tp.f64[3], t, T, lambda h: tp.tanh(x + h @ w + b))


def rnn_backwards_in_jax(a: Arrays) -> Any:
    return scan(lambda h, x: jnp.tanh(x + h @ a["w"] + a["b"]), jnp.zeros(3), a["x"], reverse=True)


def both_ways(t: Any, T: Any, x: Any, w: Any) -> Any:
    """A recurrence backwards over the values of one forwards."""
    first = forward("f", tp.f64[3], t, lambda h: tp.tanh(x + h @ w))
    return backward("b", tp.f64[3], t, T, lambda h: tp.sin(first * h + x))


def both_ways_in_jax(a: Arrays) -> Any:
    first = scan(lambda h, x: jnp.tanh(x + h @ a["w"]), jnp.zeros(3), a["x"])
    return scan(lambda h, f, x: jnp.sin(f * h + x), jnp.zeros(3), first, a["x"], reverse=True)


def last_of_a_gated_sum(t: Any, T: Any, x: Any, gate: Any) -> Any:
    return forward("h", tp.f64[()], t, lambda h: tp.sigmoid(gate) * h + x)[T - 1]


def last_of_a_gated_sum_in_jax(a: Arrays) -> Any:
    return scan(lambda h, x, g: jax.nn.sigmoid(g) * h + x, jnp.zeros(()), a["x"], a["gate"])[-1]


def second_order(t: Any, T: Any, x: Any, w: Any) -> Any:
    h = tp.tensor("h", tp.f64[()], over=t)
    h[0] = x
    h[t == 1] = x - h[0]
    h[t] = tp.sin(w[0] * h[t - 1]) + w[1] * h[t - 2] + x
    return h


def second_order_in_jax(a: Arrays) -> Any:
    x, w = a["x"], a["w"]
    count = x.shape[0]
    values = [x[0]] if count else []
    values += [x[1] - x[0]] if count > 1 else []
    for t in range(2, count):
        values.append(jnp.sin(w[0] * values[t - 1]) + w[1] * values[t - 2] + x[t])
    return jnp.stack(values) if values else jnp.zeros(0) * w.sum()


def jump(t: Any, T: Any, x: Any) -> Any:
    """A choice by the value itself, and the greater of two."""
    return forward("h", tp.f64[2], t, lambda h: tp.where(h > 1, 0.5 * h - x, tp.maximum(h, -h) + x))


def jump_in_jax(a: Arrays) -> Any:
    return scan(lambda h, x: jnp.where(h > 1, 0.5 * h - x, jnp.maximum(h, -h) + x), jnp.zeros(2), a["x"])


# -------------------------------------------------------------------------------------------------- windows


def weighted_window(t: Any, T: Any, x: Any, w: Any) -> Any:
    return tp.sum(x[tp.maximum(t - 2, 0) : tp.minimum(t + 2, T)], 0) * w


def weighted_window_in_jax(a: Arrays) -> Any:
    x, count = a["x"], a["x"].shape[0]
    t, s = np.arange(count)[:, None], np.arange(count)
    return jnp.where((s >= t - 2) & (s < t + 2), 1.0, 0.0) @ x * a["w"]


def window_of_itself(t: Any, T: Any, x: Any, w: Any) -> Any:
    """A value of its last three values: the ring that the storage planner makes."""
    h = tp.tensor("h", tp.f64[()], over=t)
    h[0] = x
    h[t] = tp.tanh(x + w * tp.mean(h[tp.maximum(t - 3, 0) : t]))
    return h


def window_of_itself_in_jax(a: Arrays) -> Any:
    values: list[Any] = []
    for t, x in enumerate(a["x"]):
        values.append(jnp.tanh(x + a["w"] * jnp.stack(values[max(t - 3, 0) :]).mean()) if t else x)
    return jnp.stack(values) if values else jnp.zeros(0) * a["w"]


def attention(t: Any, T: Any, q: Any, k: Any, v: Any, first: Any) -> Any:
    start = first(t)
    keys, values = k[start : t + 1], v[start : t + 1]
    return tp.einsum("n,nd->d", tp.softmax(tp.einsum("d,nd->n", q, keys)), values)


def attention_in_jax(a: Arrays, window: int) -> Any:
    count = a["q"].shape[0]
    t, s = np.arange(count)[:, None], np.arange(count)
    scores = jnp.where((s <= t) & (s > t - window), a["q"] @ a["k"].T, -jnp.inf)
    return jax.nn.softmax(scores, axis=-1) @ a["v"]


def running_softmax(t: Any, T: Any, x: Any, v: Any) -> Any:
    """Softmax of all numbers so far as a recurrence (Milakov and Gimelshein 2018)."""
    top, total, sums = (tp.tensor(name, tp.f64[()], over=t) for name in ("top", "total", "sums"))
    top[0], total[0], sums[0] = x, 1.0, v
    top[t] = tp.maximum(top[t - 1], x)
    scale, weight = tp.exp(top[t - 1] - top), tp.exp(x - top)
    total[t] = total[t - 1] * scale + weight
    sums[t] = sums[t - 1] * scale + weight * v
    return sums / total


def running_softmax_in_jax(a: Arrays) -> Any:
    lower = np.tril(np.ones((a["x"].shape[0],) * 2, bool))
    return jax.nn.softmax(jnp.where(lower, a["x"], -jnp.inf), axis=-1) @ a["v"]


# -------------------------------------------------------------------------------------------------- cells and returns


def gru(t: Any, T: Any, x: Any, h0: Any, w: Any, u: Any) -> Any:
    def step(h: Any) -> Any:
        reset_x, update_x, new_x = tp.split(nn.linear(x, w), 3, -1)
        reset_h, update_h, new_h = tp.split(nn.linear(h, u), 3, -1)
        update = tp.sigmoid(update_x + update_h)
        return (1 - update) * tp.tanh(new_x + tp.sigmoid(reset_x + reset_h) * new_h) + update * h

    return forward("h", tp.f64[4], t, step, h0)


def gru_in_jax(a: Arrays) -> Any:
    def step(h: Any, x: Any) -> Any:
        reset_x, update_x, new_x = jnp.split(x @ a["w"].T, 3)
        reset_h, update_h, new_h = jnp.split(h @ a["u"].T, 3)
        update = jax.nn.sigmoid(update_x + update_h)
        return (1 - update) * jnp.tanh(new_x + jax.nn.sigmoid(reset_x + reset_h) * new_h) + update * h

    return scan(step, a["h0"], a["x"])


def returns(t: Any, T: Any, r: Any, last: Any) -> Any:
    return rl.discounted_returns("g", r, 0.9, t, last, ends=r > 1)


def returns_in_jax(a: Arrays) -> Any:
    return scan(lambda g, r: r + 0.9 * jnp.where(r > 1, 0.0, g), a["last"], a["r"], reverse=True)


def returns_as_a_sum(t: Any, T: Any, r: Any) -> Any:
    """`sum of gamma ** (s - t) * r[s]` over the future."""
    return rl.discounted_sum(r[t:T], 0.9)


def returns_as_a_sum_in_jax(a: Arrays) -> Any:
    return scan(lambda g, r: r + 0.9 * g, jnp.zeros(2), a["r"], reverse=True)


def advantages(t: Any, T: Any, r: Any, v: Any) -> Any:
    delta = r + 0.9 * tp.where(t < T - 1, v[tp.minimum(t + 1, T - 1)], 0.0) - v
    return rl.generalised_advantages("a", delta, 0.8, (t,), ends=r > 1)


def advantages_in_jax(a: Arrays) -> Any:
    after = jnp.concatenate([a["v"][1:], jnp.zeros(min(1, a["v"].shape[0]))])
    delta = a["r"] + 0.9 * after - a["v"]
    return scan(lambda g, d, r: d + 0.8 * jnp.where(r > 1, 0.0, g), jnp.zeros(()), delta, a["r"], reverse=True)


VECTORS = {"x": (3,)}
WEIGHTS = {"w": (3, 3), "b": (3,)}
KEYS = {"q": (3,), "k": (3,), "v": (2,)}
CASES = {
    "rnn": Case(rnn, rnn_in_jax, VECTORS, WEIGHTS),
    "rnn backwards": Case(rnn_backwards, rnn_backwards_in_jax, VECTORS, WEIGHTS),
    "both ways": Case(both_ways, both_ways_in_jax, VECTORS, {"w": (3, 3)}),
    "last of a gated sum": Case(last_of_a_gated_sum, last_of_a_gated_sum_in_jax, {"x": (), "gate": ()}, {}, 1),
    "second order": Case(second_order, second_order_in_jax, {"x": ()}, {"w": (2,)}),
    "jump": Case(jump, jump_in_jax, {"x": (2,)}, {}),
    "window": Case(weighted_window, weighted_window_in_jax, {"x": (2,)}, {"w": (2,)}),
    "window of itself": Case(window_of_itself, window_of_itself_in_jax, {"x": ()}, {"w": ()}),
    "attention": Case(partial(attention, first=lambda t: 0), partial(attention_in_jax, window=99), KEYS, {}),
    "attention in a window": Case(
        partial(attention, first=lambda t: tp.maximum(t - 3, 0)), partial(attention_in_jax, window=4), KEYS, {}
    ),
    "running softmax": Case(running_softmax, running_softmax_in_jax, {"x": (), "v": ()}, {}),
    "gru": Case(gru, gru_in_jax, VECTORS, {"h0": (4,), "w": (12, 3), "u": (12, 4)}),
    "returns": Case(returns, returns_in_jax, {"r": ()}, {"last": ()}),
    "returns as a sum": Case(returns_as_a_sum, returns_as_a_sum_in_jax, {"r": (2,)}, {}),
    "advantages": Case(advantages, advantages_in_jax, {"r": (), "v": ()}, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_recurrence(name: str, record_property: Callable[[str, object], None]) -> None:
    case = CASES[name]
    program = case.program()
    targets = [tp.compile(program, target) for target in ("cpu", "reference")]
    with jax.enable_x64(True):
        for steps in (size for size in SIZES if size >= case.at_least):
            arrays = case.arrays(steps)
            expected = case.expected(arrays)
            for target in targets:
                found = target(**arrays, **({"T": steps} if not case.steps else {}))
                for key, value in expected.items():
                    assert found[key].shape == value.shape, (key, steps)
                    where = f"{key} at T = {steps} on {target.target}"
                    np.testing.assert_allclose(found[key], value, rtol=1e-9, atol=1e-11, err_msg=where)
                    record_property("numbers beside jax.lax.scan and jax.grad: compared", value.size)
