"""`rnn`: a GRU and an LSTM over T = 128 and 1024 steps, 64 and 256 wide, batch 1 and 64: forward, and gradients of all
weights (BPTT). Beside it torch's own nn.GRU and nn.LSTM, and jax with a `scan`. Seconds per step.

All hidden states, and all gradients, are compared first. torch.compile has no row: it unrolls the loop over T.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax

import tempo_ir as tp
from benchmarks.harness import Report, System, bound_of, compare, finish, jax_compiled
from tempo_ir import nn
from tempo_ir.runtime.profile import Profile

GATES = {"gru": 3, "lstm": 4}


@tp.program
def recurrent(cell="gru", batch=64, width=64, learn=False):
    """All hidden states, or the loss against `wanted` and the gradients of the weights."""
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[batch, width], over=t)
    before = tp.tensor("before", tp.f32[batch, width], over=t)
    if cell == "gru":
        net = nn.GRUCell(width, width)
        h = net(x, before)
    else:
        net, memory = nn.LSTMCell(width, width), tp.tensor("memory", tp.f32[batch, width], over=t)
        h, after = net(x, (before, memory))
        memory[0], memory[t + 1] = 0.0, after
    before[0], before[t + 1] = 0.0, h
    if not learn:
        tp.output("h", h)
        return
    wanted = tp.input("wanted", tp.f32[batch, width], over=t)
    loss = tp.mean((h - wanted) ** 2)
    tp.output("loss", tp.sum(loss[0:T]))
    for name, weight in net.named_tensors().items():
        tp.output(f"gradient of {name}", tp.grad(loss, weight))


def run(report: Report, quick: bool = False) -> None:
    """Add the rows of all cells and sizes to the report."""
    lengths, widths, batches = ((128,), (64, 256), (1, 64)) if quick else ((128, 1024), (64, 256), (1, 64))
    for cell, learn, width, batch in product(GATES, (False, True), widths, batches):
        cases = [
            {"cell": cell, "pass": "bptt" if learn else "forward", "T": length, "hidden": width, "batch": batch}
            for length in lengths
        ]
        if not (wanted := [case for case in cases if report.wants(case)]):
            continue
        start = time.perf_counter()
        executable = tp.compile(recurrent(cell=cell, batch=batch, width=width, learn=learn))
        seconds = time.perf_counter() - start
        for case in wanted:
            systems = systems_of(executable, seconds, cell, learn, (case["T"], batch, width))
            limit = bound(cell, learn, batch, width)
            compare(report, "rnn", case, systems, case["T"], 3 if quick else 7, limit)


def bound(cell: str, learn: bool, batch: int, width: int) -> float:
    """Seconds of a step for its products, or to read the recurrent weights in each pass.

    Products of the rows with both matrices; with gradients those of the states, whose inputs need none, and of both
    matrices too.
    """
    matrix = GATES[cell] * width * width
    read, products = 4.0 * matrix * (2 if learn else 1), 5 if learn else 2
    return bound_of(read, 2.0 * batch * matrix * products, footprint=4.0 * matrix)


def systems_of(
    executable: tp.Executable, seconds: float, cell: str, learn: bool, shape: tuple[int, int, int]
) -> list[System]:
    """The systems on the same weights and inputs, after a comparison of what they give."""
    draw = np.random.default_rng(0)
    arrays = {name: draw.normal(size=shape).astype(np.float32) for name in ("x", "wanted")[: 1 + learn]}
    state = executable.init(seed=0)
    eager = torch_network(cell, state, shape)
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    parameters = {name.split(".")[-1]: jnp.asarray(array) for name, array in state.items()}
    call = jax.jit(jax.value_and_grad(partial(jax_loss, cell)) if learn else partial(jax_states, cell))
    jitted, jax_seconds, scratch = jax_compiled(call, parameters, *arrays.values())

    def fused() -> Any:
        return jax.block_until_ready(jitted(parameters, *arrays.values()))

    mine = executable(**arrays, state=state)
    if learn:
        value, gradients = fused()
        check("jax", mine["loss"], value)
        eager_loss, eager_gradients = torch_gradients(eager, **tensors)
        check("torch", mine["loss"], eager_loss)
        for name in state:
            found, short = mine[f"gradient of {name.split('.')[-1]}"], name.split(".")[-1]
            check("jax", found, gradients[short])
            check("torch", found, eager_gradients[short])
        torch_call: Callable[[], Any] = lambda: torch_gradients(eager, **tensors)  # noqa: E731
    else:
        check("jax", mine["h"], fused())
        check("torch", mine["h"], torch_states(eager, tensors["x"]))
        torch_call = lambda: torch_states(eager, tensors["x"])  # noqa: E731
    peak = executable.stats.peak_bytes

    def profile() -> Profile:
        return tp.profile(executable, **arrays, state=state)

    return [
        System("tempo_ir", lambda: finish(executable(**arrays, state=state)), seconds, peak, profile=profile),
        System("jax", lambda: finish(fused()), jax_seconds, scratch),
        System("torch", lambda: finish(torch_call()), 0.0),
    ]


def check(system: str, mine: Any, theirs: Any) -> None:
    """Raises SystemExit where two results differ by more than rounding makes of sums over many steps."""
    ours, other = np.asarray(mine), np.asarray(theirs)
    if np.abs(ours - other).max() > 1e-3 * max(float(np.abs(other).max()), 1e-3):
        raise SystemExit(f"rnn: {system} and tempo_ir differ by {np.abs(ours - other).max():.1e}")


# -- torch


def torch_network(cell: str, state: dict[str, np.ndarray], shape: tuple[int, int, int]) -> torch.nn.Module:
    """torch's own network, which runs its loop in C++, with the same weights."""
    network = (torch.nn.GRU if cell == "gru" else torch.nn.LSTM)(shape[2], shape[2])
    with torch.no_grad():
        for name, array in state.items():
            getattr(network, f"{name.split('.')[-1]}_l0").copy_(torch.from_numpy(array))
    return network


@torch.inference_mode()
def torch_states(network: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return network(x)[0]


def torch_gradients(
    network: torch.nn.Module, x: torch.Tensor, wanted: torch.Tensor
) -> tuple[float, dict[str, torch.Tensor | None]]:
    network.zero_grad()
    loss = ((network(x)[0] - wanted) ** 2).mean((1, 2)).sum()
    loss.backward()
    return float(loss.detach()), {name.removesuffix("_l0"): p.grad for name, p in network.named_parameters()}


# -- jax


def jax_states(cell: str, parameters: Any, x: jax.Array) -> jax.Array:
    """All hidden states (T, batch, width); what needs no state is one product before the scan."""
    inputs = x @ parameters["weight_ih"].T + parameters["bias_ih"]
    zeros = jnp.zeros(x.shape[1:])
    weight, bias = parameters["weight_hh"].T, parameters["bias_hh"]

    def gru(h: jax.Array, row: jax.Array) -> Any:
        reset_x, update_x, new_x = jnp.split(row, 3, -1)
        reset_h, update_h, new_h = jnp.split(h @ weight + bias, 3, -1)
        reset, update = jax.nn.sigmoid(reset_x + reset_h), jax.nn.sigmoid(update_x + update_h)
        h = (1 - update) * jnp.tanh(new_x + reset * new_h) + update * h
        return h, h

    def lstm(carry: Any, row: jax.Array) -> Any:
        h, c = carry
        enter, forget, new, leave = jnp.split(row + h @ weight + bias, 4, -1)
        c = jax.nn.sigmoid(forget) * c + jax.nn.sigmoid(enter) * jnp.tanh(new)
        h = jax.nn.sigmoid(leave) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(gru, zeros, inputs)[1] if cell == "gru" else lax.scan(lstm, (zeros, zeros), inputs)[1]


def jax_loss(cell: str, parameters: Any, x: jax.Array, wanted: jax.Array) -> jax.Array:
    return ((jax_states(cell, parameters, x) - wanted) ** 2).mean((1, 2)).sum()
