"""The programs of `compile` beside the decoder, each in tempo_ir and in jax; the statements in torch too."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import tempo_ir as tp
from tempo_ir import nn

BATCH, WIDTH = 16, 64


@tp.program
def rnn(size=128):
    """Gradients through `size` steps."""
    t, T = tp.dim("t", size)
    x = tp.input("x", tp.f32[BATCH, WIDTH], over=t)
    w = tp.parameter("w", tp.f32[WIDTH, WIDTH], init=nn.orthogonal())
    h = tp.tensor("h", tp.f32[BATCH, WIDTH], over=t)
    h[0] = tp.tanh(x[0])
    h[t] = tp.tanh(x + h[t - 1] @ w)
    tp.output("gradient", tp.grad(tp.mean(h**2), w))


@tp.program
def statements(size=10):
    """A recurrence of `size` elementwise operations, each on one of the last three values."""
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[WIDTH], over=t)
    h = tp.tensor("h", tp.f32[WIDTH], over=t)
    before = tp.tensor("before", tp.f32[WIDTH], over=t)
    before[0], before[t + 1] = 0.0, h
    h[t] = chain(size, x, before, tp.tanh)
    tp.output("h", h)


def chain(size: int, x: Any, before: Any, tanh: Callable[[Any], Any]) -> Any:
    """`size` operations on x and `before`, of three kinds in turn."""
    values = [x, before, x + before]
    while len(values) < size + 2:
        n = len(values)
        a, b = values[-1], values[-1 - n % 3]
        values.append((a * (1.0 / n), a - b, tanh(a))[n % 3])
    return tanh(values[-1])


def jax_rnn(size: int) -> tuple[Any, tuple[Any, ...]]:
    import jax
    import jax.numpy as jnp
    from jax import lax

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        def step(h: jax.Array, row: jax.Array) -> Any:
            h = jnp.tanh(row + h @ w)
            return h, (h**2).mean()

        return lax.scan(step, jnp.zeros((BATCH, WIDTH)), x)[1].sum()

    shapes = ((WIDTH, WIDTH), (size, BATCH, WIDTH))
    return jax.jit(jax.grad(loss)), tuple(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes)


def jax_statements(size: int) -> tuple[Any, tuple[Any, ...]]:
    import jax
    import jax.numpy as jnp
    from jax import lax

    def states(x: jax.Array) -> jax.Array:
        def step(before: jax.Array, row: jax.Array) -> Any:
            h = chain(size, row, before, jnp.tanh)
            return h, h

        return lax.scan(step, jnp.zeros(WIDTH), x)[1]

    return jax.jit(states), (jax.ShapeDtypeStruct((128, WIDTH), jnp.float32),)


def torch_statements(size: int) -> Callable[[], Any]:
    """A call that compiles one step."""
    import torch

    step = torch.compile(lambda x, before: chain(size, x, before, torch.tanh), dynamic=False)
    return lambda: step(torch.zeros(WIDTH), torch.zeros(WIDTH))


TEMPO = MappingProxyType({"rnn": rnn, "statements": statements})
JAX = MappingProxyType({"rnn": jax_rnn, "statements": jax_statements})
