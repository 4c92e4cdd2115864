"""Attention of one step after the other on the CPU, each query made of what the step before gave, against numpy: at
lengths round those of blocks, of caches of each type, of rings, and where values are infinite."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir.runtime.compiler import lower, module_of

NUMPY = {tp.f32: np.float32, tp.f64: np.float64, tp.bf16: ml_dtypes.bfloat16, tp.f16: np.float16}


@tp.program
def decode(group=2, width=32, cache=tp.f32, window=None, batch=1, heads=2):
    """What is mixed at a step is part of the query of the next one."""
    kind = tp.f64 if cache is tp.f64 else tp.f32
    t, _ = tp.dim("t")
    q = tp.input("q", kind[batch, heads, group, width], over=t)
    k, v = (tp.cast(tp.input(name, kind[batch, heads, width], over=t), cache) for name in "kv")
    before = tp.tensor("before", kind[batch, heads, group, width], over=t)
    past = slice(0 if window is None else tp.maximum(0, t - window + 1), t + 1)
    scores = tp.einsum("bhgd,nbhd->bhgn", (q + before) * width**-0.5, k[past])
    mixed = tp.einsum("bhgn,nbhd->bhgd", tp.softmax(scores), v[past])
    before[0] = 0.0
    before[t + 1] = tp.tanh(mixed)
    tp.output("mixed", mixed)


def inputs(steps: int, group: int, width: int, batch: int, heads: int, spoiled: bool) -> dict[str, np.ndarray]:
    random = np.random.default_rng(steps)
    shapes = {"q": (batch, heads, group, width), "k": (batch, heads, width), "v": (batch, heads, width)}
    arrays = {name: random.standard_normal((steps, *shape)) for name, shape in shapes.items()}
    if spoiled:
        arrays["v"][steps // 2, ..., width // 2] = np.inf
        arrays["v"][-1, ..., 0] = -np.inf
    return arrays


def expected(given: dict[str, np.ndarray], cache: np.dtype[Any], window: int | None) -> np.ndarray:
    q, k, v = given["q"], *(given[name].astype(cache).astype(np.float64) for name in "kv")
    before, rows = np.zeros(q.shape[1:]), list[np.ndarray]()
    for t in range(len(q)):
        first = 0 if window is None else max(0, t - window + 1)
        scores = np.einsum("bhgd,nbhd->bhgn", q[t] + before, k[first : t + 1]) * q.shape[-1] ** -0.5
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        rows.append(np.einsum("bhgn,nbhd->bhgd", weights / weights.sum(axis=-1, keepdims=True), v[first : t + 1]))
        before = np.tanh(rows[-1])
    return np.stack(rows) if rows else np.zeros(q.shape)


CASES: list[dict[str, Any]] = [
    *({"cache": cache} for cache in (tp.f32, tp.bf16, tp.f16, tp.f64)),
    {"group": 1, "width": 20},
    {"group": 3, "width": 64, "cache": tp.bf16},
    {"group": 5, "width": 48, "batch": 2},
    {"width": 7, "cache": tp.bf16},
    {"window": 64},
    {"window": 70, "cache": tp.bf16, "batch": 3},
    {"window": 200, "width": 16},
    {"heads": 1, "batch": 3, "width": 5, "cache": tp.bf16},
    {"heads": 1, "batch": 2, "group": 1, "window": 40},
]


@pytest.mark.parametrize("settings", CASES, ids=str)
def test_step_by_step(settings: dict[str, Any]):
    program = decode(**settings)
    assert "loop.for" in str(lower(module_of(program), "cpu").lowered)
    compiled, cache = tp.compile(program), settings.get("cache", tp.f32)
    kind, tolerance = (np.float64, 1e-9) if cache is tp.f64 else (np.float32, 1e-5)
    for steps in (0, 1, 17, 130, 270):
        for spoiled in (False, True) if steps > 1 else (False,):
            shape = settings.get("group", 2), settings.get("width", 32), settings.get("batch", 1)
            given = inputs(steps, *shape, settings.get("heads", 2), spoiled)
            given = {name: array.astype(kind) for name, array in given.items()}
            wide = {name: array.astype(np.float64) for name, array in given.items()}
            with np.errstate(invalid="ignore"):
                wanted = expected(wide, np.dtype(NUMPY[cache]), settings.get("window"))
            got = compiled(**given, T=steps)["mixed"]
            np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, err_msg=f"{steps=}, {spoiled=}")
