"""`memory`: the most bytes that programs need beside arguments and results, in MB.

decode: Llama 4x256, causal and with a window of 64. bptt: gradients of a GRU through T steps. returns: a policy that
learns from images of 3x16x16 of 64 environments, of returns over n steps and to the end (Monte Carlo), T = 1000.
What tempo_ir and jax plan before they run; for torch eager, what the resident memory of the process grows by. It has no
program of returns here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax
from safetensors.numpy import load_file

import tempo_ir as tp
from benchmarks import decode, rnn
from benchmarks.harness import Report, Sheet, grown_bytes, jax_compiled
from benchmarks.llama_jax import JaxLlama
from benchmarks.llama_torch import TorchLlama
from examples import llama, n_step

HEADINGS = ("program", "tempo_ir", "jax", "torch")


def run(report: Report, quick: bool = False) -> None:
    """Add a table of all programs to the report."""
    sheet = Sheet("peak MB beside arguments and results", HEADINGS)
    for window in (None, decode.WINDOW):
        for length in (256,) if quick else (1024, 4096):
            name = f"decode, T = {length}" + (f", window {window}" if window else "")
            sheet.add(name, *megabytes(decoding(window, length)))
    for length in (128,) if quick else (128, 1024):
        sheet.add(f"bptt, T = {length}", *megabytes(through_time(length)))
    for n in (1, 8, None):
        steps = 100 if quick else 1000
        sheet.add(
            f"returns {'to the end' if n is None else f'of {n} steps'}, T = {steps}", *megabytes(learning(n, steps))
        )
    report.sheets.append(sheet)


def megabytes(found: Mapping[str, float]) -> list[float]:
    return [found.get(heading, float("nan")) / 1e6 for heading in HEADINGS[1:]]


def ours(program: tp.Program, **arguments: Any) -> dict[str, float]:
    """Bytes of a first call."""
    executable = tp.compile(program)
    executable(state=executable.init(seed=0), **arguments)
    return {"tempo_ir": executable.stats.peak_bytes}


def others(jitted: Any, arguments: tuple[Any, ...], eager: Callable[[], Any] | None = None) -> dict[str, float]:
    found: dict[str, float] = {"jax": jax_compiled(jitted, *arguments)[2]}
    return found if eager is None else {**found, "torch": grown_bytes(eager)}


def decoding(window: int | None, length: int) -> dict[str, float]:
    checkpoint = decode.SMALL.checkpoint()
    weights = load_file(checkpoint / "model.safetensors")
    config = json.loads((checkpoint / "config.json").read_text())
    prompt = np.random.default_rng(0).integers(0, config["vocab_size"], (decode.PROMPT, 1))
    static, eager = JaxLlama(weights, config, window, ring=window is not None), TorchLlama(weights, config, window)
    return {
        **ours(llama.decode(model=str(checkpoint), window=window), prompt=prompt, T=length),
        **others(
            static.jit(length), (static.parameters, prompt.T.astype(np.int32)), lambda: eager.generate(prompt.T, length)
        ),
    }


def through_time(length: int, batch: int = 64, width: int = 64) -> dict[str, float]:
    arrays = {name: np.ones((length, batch, width), np.float32) for name in ("x", "wanted")}
    program = rnn.recurrent(cell="gru", batch=batch, width=width, learn=True)
    state = tp.compile(program).init(seed=0)
    eager = rnn.torch_network("gru", state, (length, batch, width))
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    parameters = {name.split(".")[-1]: jnp.asarray(array) for name, array in state.items()}
    jitted = jax.jit(jax.value_and_grad(lambda *values: rnn.jax_loss("gru", *values)))
    return {
        **ours(program, **arrays),
        **others(jitted, (parameters, *arrays.values()), lambda: rnn.torch_gradients(eager, **tensors)),
    }


def learning(n: int | None, steps: int, envs: int = 64, side: int = 16) -> dict[str, float]:
    return {
        **ours(n_step.n_step(n=n, envs=envs, side=side), T=steps),
        **others(*policy_gradient(n, steps, envs, side)),
    }


def policy_gradient(n: int | None, steps: int, envs: int, side: int, hidden: int = 16) -> tuple[Any, tuple[Any, ...]]:
    """examples/n_step.py in jax: a scan that acts and keeps what was seen, returns, and the gradient over all of it."""
    gamma, inputs = 0.99, 3 * side * side
    shapes = {"w1": (inputs, hidden), "b1": (hidden,), "w2": (hidden, n_step.ACTIONS), "b2": (n_step.ACTIONS,)}
    parameters = {name: jnp.full(shape, 0.01) for name, shape in shapes.items()}

    def logits(p: Any, seen: jax.Array) -> jax.Array:
        return jnp.tanh(seen.reshape(*seen.shape[:-3], -1) @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

    def act(p: Any, seen: jax.Array, key: jax.Array) -> Any:
        choosing, fading = jax.random.split(key)
        action = jax.random.categorical(choosing, logits(p, seen))
        brightness = action / (n_step.ACTIONS - 1)
        noise = brightness[:, None, None, None] * jax.random.uniform(fading, seen.shape)
        reward = seen.mean((1, 2, 3)) - 0.5 * jnp.abs(brightness - 0.5)
        return 0.9 * seen + 0.1 * noise, (seen, action, reward)

    def returns(reward: jax.Array) -> jax.Array:
        if n is None:
            back = lambda later, r: (r + gamma * later,) * 2  # noqa: E731
            return lax.scan(back, jnp.zeros(envs), reward, reverse=True)[1]
        padded = jnp.concatenate([reward, jnp.zeros((n - 1, envs))])
        return sum(gamma**k * padded[k : k + steps] for k in range(n))  # pyright: ignore[reportReturnType]

    def gradient(p: Any, key: jax.Array) -> Any:
        first, acting = jax.random.split(key)
        seen = jax.random.uniform(first, (envs, 3, side, side))
        _, (seen, action, reward) = lax.scan(lambda s, k: act(p, s, k), seen, jax.random.split(acting, steps))

        def loss(p: Any) -> jax.Array:
            logp = jnp.take_along_axis(jax.nn.log_softmax(logits(p, seen)), action[..., None], -1)[..., 0]
            return -(logp * returns(reward)).mean(-1).sum()

        return jax.grad(loss)(p)

    return jax.jit(gradient), (parameters, jax.random.key(0))
