"""`kernels`: one operation at a time, run many times in one program, each on what the one before gave.

softmax and RMSNorm of rows, matrix times vector and times matrix, causal attention, discounted returns, and Adam.
Beside it jax with a `fori_loop` under jit, torch eager, and torch.compile for what it fuses. Seconds per operation;
what they give is compared first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F
from jax import lax

import tempo_ir as tp
from benchmarks.harness import Report, System, bound_of, compare, finish, jax_compiled
from tempo_ir import optim, rl
from tempo_ir.runtime.profile import Profile

Step = Callable[..., Any]


@dataclass(frozen=True)
class Kernel:
    """One operation: `ours` is a program with an output "out" or a state, `jax` and `torch` give it of the same arrays.

    `read` bytes and `operations` are those of one unit of `units`; `fused` is what torch.compile takes instead of
    `torch`.
    """

    name: str
    case: Mapping[str, Any]
    ours: tp.Program
    arrays: Mapping[str, np.ndarray]
    bounds: Mapping[str, int]
    units: int
    jax: Step
    torch: Step
    read: float
    operations: float
    fused: Step | None = None


def run(report: Report, quick: bool = False) -> None:
    """Add the rows of all kernels to the report."""
    for kernel in kernels(quick):
        if report.wants({"kernel": kernel.name, **kernel.case}):
            measure(report, kernel, rounds=3 if quick else 7)


def measure(report: Report, kernel: Kernel, rounds: int) -> None:
    start = time.perf_counter()
    executable = tp.compile(kernel.ours)
    seconds = time.perf_counter() - start
    state = executable.init(seed=0)

    def ours() -> np.ndarray:
        out = executable(**kernel.arrays, **kernel.bounds, state=state)
        return out.get("out", next(iter(out.state.values()), None))

    def profile() -> Profile:
        return tp.profile(executable, **kernel.arrays, **kernel.bounds, state=state)

    expected = ours()
    values = tuple(jnp.asarray(array) for array in kernel.arrays.values())
    jitted, jax_seconds, scratch = jax_compiled(jax.jit(kernel.jax), *values)
    tensors = tuple(torch.from_numpy(array) for array in kernel.arrays.values())
    systems = [
        System("tempo_ir", lambda: finish(ours()), seconds, executable.stats.peak_bytes, profile=profile),
        System("jax", lambda: finish(jax.block_until_ready(jitted(*values))), jax_seconds, scratch),
        System("torch", lambda: finish(kernel.torch(*tensors)), 0.0),
    ]
    check(kernel.name, "jax", expected, jitted(*values))
    with torch.inference_mode():
        check(kernel.name, "torch", expected, kernel.torch(*tensors))
        if kernel.fused is not None:
            fused = kernel.fused
            start = time.perf_counter()
            check(kernel.name, "torch.compile", expected, fused(*tensors))
            compiled = time.perf_counter() - start
            systems.append(System("torch.compile", lambda: finish(fused(*tensors)), compiled))
        limit = bound_of(kernel.read, kernel.operations)
        compare(report, "kernels", {"kernel": kernel.name, **kernel.case}, systems, kernel.units, rounds, limit)


def check(kernel: str, system: str, mine: np.ndarray, theirs: Any) -> None:
    """Raises SystemExit where two results differ by more than rounding makes."""
    other = np.asarray(theirs)
    worst = float(np.abs(mine - other).max())
    if not worst <= 2e-3 * max(float(np.abs(other).max()), 1e-6):
        raise SystemExit(f"kernels: {kernel}: {system} and tempo_ir differ by {worst:.1e}")


def kernels(quick: bool = False, tiny: bool = False) -> Iterator[Kernel]:
    """All kernels at their sizes; `tiny` at those of a test."""
    compiled = not quick and not tiny
    for rows, width in ((3, 5),) if tiny else ((64, 1024),) if quick else ((64, 64), (64, 1024), (1024, 1024)):
        yield softmax(rows, width, compiled)
        yield rms_norm(rows, width, compiled)
    for size in (7,) if tiny else (256, 1024) if quick else (256, 704, 1024, 2048):
        yield product(1, size)
    for size in (7,) if tiny else (128, 256) if quick else (128, 256, 512, 1024):
        yield product(size, size)
    for length in (9,) if tiny else (256,) if quick else (256, 1024):
        yield attention(length, heads=2 if tiny else 8, width=4 if tiny else 64)
    for envs in (3,) if tiny else (64,) if quick else (64, 1024):
        yield returns(9 if tiny else 1024, envs)
    for size in (16,) if tiny else (64 * 64,) if quick else (64 * 64, 1024 * 1024):
        yield adam(size)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def repeats(cost: float) -> int:
    """How often an operation of so many elementary steps is repeated: about a millisecond or ten, 1000 at most."""
    return int(min(max(1e7 / cost, 4), 1000))


def chained(shape: tuple[int, ...], step: Step, weight: tuple[int, ...] | None) -> tp.Program:
    """`step` on what the last one gave, I times; `step` takes the weight, if there is one, as second argument."""

    @tp.program
    def chain():
        i, I = tp.dim("i")
        x = tp.input("x", tp.f32[shape])
        given = [] if weight is None else [tp.input("w", tp.f32[weight])]
        s = tp.tensor("s", tp.f32[shape], over=i)
        s[0] = x
        s[i] = step(s[i - 1], *given)
        tp.output("out", step(s[I - 1], *given))

    return chain()


def looped(step: Step, count: int) -> tuple[Step, Step]:
    """The same loop in jax and in Python."""

    def in_jax(x: jax.Array, *given: jax.Array) -> jax.Array:
        return lax.fori_loop(0, count, lambda _, s: step(s, *given), x)

    def in_torch(x: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
        for _ in range(count):
            x = step(x, *given)
        return x

    return in_jax, in_torch


def softmax(rows: int, width: int, compiled: bool) -> Kernel:
    count, scale = repeats(4.0 * rows * width), 3.0
    in_jax, _ = looped(lambda s: jax.nn.softmax(scale * s, -1), count)
    step: Step = lambda s: torch.softmax(scale * s, -1)  # noqa: E731
    return Kernel(
        "softmax", {"rows": rows, "width": width}, chained((rows, width), lambda s: tp.softmax(scale * s), None),
        {"x": numbers(rows, width)}, {"I": count}, count, in_jax, looped(step, count)[1], 4.0 * rows * width, 0.0,
        looped(torch.compile(step), count)[1] if compiled else None,
    )  # fmt: skip


def rms_norm(rows: int, width: int, compiled: bool) -> Kernel:
    count, eps = repeats(2.0 * rows * width), 1e-6
    in_jax, _ = looped(lambda s, w: s * lax.rsqrt(jnp.mean(s * s, -1, keepdims=True) + eps) * w, count)
    step: Step = lambda s, w: F.rms_norm(s, (width,), w, eps)  # noqa: E731
    return Kernel(
        "RMSNorm", {"rows": rows, "width": width},
        chained((rows, width), lambda s, w: tp.rms_norm(s, w, eps), (width,)),
        {"x": numbers(rows, width), "w": 1 + 0.01 * numbers(width)}, {"I": count}, count, in_jax,
        looped(step, count)[1], 4.0 * rows * width, 0.0, looped(torch.compile(step), count)[1] if compiled else None,
    )  # fmt: skip


def product(rows: int, size: int) -> Kernel:
    """`x @ w` of (rows, size) and an orthogonal (size, size), so that nothing grows."""
    cost = rows * size * size
    count = repeats(cost / 16)
    weight = np.ascontiguousarray(np.linalg.qr(numbers(size, size).astype(np.float64))[0].astype(np.float32))
    in_jax, in_torch = looped(lambda s, w: s @ w, count)
    return Kernel(
        "gemv" if rows == 1 else "gemm", {"size": size}, chained((rows, size), lambda s, w: s @ w, (size, size)),
        {"x": numbers(rows, size), "w": weight}, {"I": count}, count, in_jax, in_torch, 4.0 * size * size, 2.0 * cost,
    )  # fmt: skip


def attention(length: int, heads: int, width: int) -> Kernel:
    """Causal attention of all positions at once, for torch and jax; of each step, for the program."""

    @tp.program
    def attend():
        t, T = tp.dim("t")
        q, k, v = (tp.input(name, tp.f32[heads, width], over=t) for name in "qkv")
        score = tp.einsum("hd,nhd->hn", q * width**-0.5, k[0 : t + 1])
        tp.output("out", tp.einsum("hn,nhd->hd", tp.softmax(score), v[0 : t + 1]))

    def in_jax(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return jax.nn.dot_product_attention(q, k, v, is_causal=True)

    def in_torch(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)[0].transpose(0, 1)

    draw = np.random.default_rng(0)
    arrays = {name: draw.normal(size=(length, heads, width)).astype(np.float32) for name in "qkv"}
    work = 2.0 * heads * width * length * length  # half of the 4 * T * T of all pairs
    return Kernel(
        "attention", {"T": length, "heads": heads, "width": width}, attend(), arrays, {}, 1, in_jax, in_torch,
        4.0 * 4 * heads * width * length, work,
    )  # fmt: skip


def returns(length: int, envs: int, gamma: float = 0.99) -> Kernel:
    """`G[t] = r[t] + gamma * G[t + 1]`, nothing beyond the end of an episode."""

    @tp.program
    def discounted():
        t, T = tp.dim("t")
        reward, ends = tp.input("reward", tp.f32[envs], over=t), tp.input("ends", tp.bool[envs], over=t)
        tp.output("out", rl.discounted_returns("later", reward, gamma, t, 0.0, ends))

    def in_jax(reward: jax.Array, ends: jax.Array) -> jax.Array:
        def back(later: jax.Array, step: Any) -> Any:
            gain = step[0] + gamma * jnp.where(step[1], 0.0, later)
            return gain, gain

        return lax.scan(back, jnp.zeros(envs), (reward, ends), reverse=True)[1]

    def in_torch(reward: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        later, found = torch.zeros(envs), []
        for t in reversed(range(length)):
            later = reward[t] + gamma * torch.where(ends[t], 0.0, later)
            found.append(later)
        return torch.stack(found[::-1])

    arrays = {"reward": numbers(length, envs), "ends": numbers(length, envs) > 2}
    return Kernel(
        "returns", {"T": length, "envs": envs}, discounted(), arrays, {}, 1, in_jax, in_torch, 9.0 * length * envs, 0.0
    )


def adam(size: int, rate: float = 1e-3) -> Kernel:
    """Steps of Adam on one array, with the same gradient in each."""
    count = repeats(10.0 * size)

    @tp.program
    def descend():
        i, I = tp.dim("i")
        gradient = tp.input("gradient", tp.f32[size])
        w = tp.state("w", tp.f32[size], numbers(size), steps=i)
        optim.Adam(rate).update([w], [gradient])

    def step(n: Any, carry: Any, gradient: jax.Array) -> Any:
        w, m, v = carry
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient * gradient
        return w - rate / (1 - 0.9**n) * m / (jnp.sqrt(v) / (1 - 0.999**n) ** 0.5 + 1e-8), m, v

    def in_jax(gradient: jax.Array) -> jax.Array:
        first, zeros = jnp.asarray(numbers(size)), jnp.zeros(size)
        return lax.fori_loop(1, count + 1, lambda n, carry: step(n, carry, gradient), (first, zeros, zeros))[0]

    parameter, begin = torch.zeros(size), torch.from_numpy(numbers(size))

    def in_torch(gradient: torch.Tensor) -> torch.Tensor:
        parameter.copy_(begin)
        parameter.grad = gradient
        optimizer = torch.optim.Adam([parameter], lr=rate, fused=True)
        for _ in range(count):
            optimizer.step()
        return parameter

    return Kernel(
        "Adam", {"size": size}, descend(), {"gradient": numbers(size)}, {"I": count}, count, in_jax, in_torch,
        7 * 4.0 * size, 0.0,
    )  # fmt: skip
