"""The programs that a GPU runs beside the CPU target: the bounds to check each at, and those to measure it at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import tempo_ir as tp
from tempo_ir import nn


@dataclass(frozen=True)
class Case:
    """A program: with the bounds `small` it is compared with the CPU target, with `large` it is measured."""

    make: Callable[[], Any]
    small: dict[str, int]
    large: dict[str, int] = field(default_factory=dict)
    tolerance: float = 1e-4


@tp.program
def normed_product(dtype=tp.f32, width=256, columns=512):
    """RMSNorm and a product in one kernel."""
    t, _T = tp.dim("t")
    x = tp.input("x", dtype[width], over=t)
    scale, w = tp.parameter("scale", dtype[width]), tp.parameter("w", dtype[columns, width])
    tp.output("y", tp.einsum("k,nk->n", tp.rms_norm(x, scale), w))


@tp.program
def attention(dtype=tp.f32, heads=8, group=4, width=128, window=None):
    """Decode attention with grouped queries over a growing cache."""
    t, _T = tp.dim("t")
    q = tp.input("q", dtype[heads, group, width], over=t)
    k, v = (tp.input(name, dtype[heads, width], over=t) for name in "kv")
    past = slice(0 if window is None else tp.maximum(0, t - window + 1), t + 1)
    weights = tp.softmax(tp.einsum("hgd,nhd->hgn", q * width**-0.5, k[past]))
    tp.output("mixed", tp.einsum("hgn,nhd->hgd", weights, v[past]))


@tp.program
def recurrence(batch=64, width=64):
    """A recurrent network, forwards."""
    t, _T = tp.dim("t")
    x = tp.input("x", tp.f32[batch, width], over=t)
    w = tp.parameter("w", tp.f32[width, width], init=nn.orthogonal())
    h = tp.tensor("h", tp.f32[batch, width], over=t)
    h[0] = tp.tanh(x)
    h[t] = tp.tanh(x + h[t - 1] @ w)
    tp.output("h", h)


@tp.program
def draws(width=64):
    """Random numbers, which are the same on every target."""
    t, _T = tp.dim("t")
    tp.output("uniform", tp.random.uniform(0.0, 1.0, tp.f32[width], over=t))
    tp.output("bits", tp.random.bits(tp.i64[width], over=t))


CASES = {
    "normed product f32": Case(normed_product, {"T": 3}, {"T": 512}),
    "normed product bf16": Case(lambda: normed_product(dtype=tp.bf16), {"T": 3}, {"T": 512}, 3e-2),
    "normed product f16": Case(lambda: normed_product(dtype=tp.f16), {"T": 3}, {"T": 512}, 3e-3),
    "attention f32": Case(attention, {"T": 70}, {"T": 4096}),
    "attention bf16": Case(lambda: attention(dtype=tp.bf16), {"T": 70}, {"T": 4096}, 3e-2),
    "attention, window 64": Case(lambda: attention(window=64), {"T": 150}, {"T": 4096}),
    "recurrence": Case(recurrence, {"T": 9}, {"T": 1024}),
    "draws": Case(draws, {"T": 5}, {}, 0.0),
}
