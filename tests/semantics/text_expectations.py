"""What the programs in `programs/` compute: arguments for a size, and the values, by numpy or as stated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from semantics_support import normal, per_step, ramp

Call = tuple[dict[str, Any], dict[str, Any]]
"""The arguments of a call, and its outputs."""


def windows(T: int) -> Call:
    a = ramp(T)
    ranges = {
        "past": lambda t: slice(0, t + 1),
        "future": lambda t: slice(t, T),
        "window": lambda t: slice(max(0, t - 2), t + 1),
        "ahead": lambda t: slice(t, t + 3),
        "around": lambda t: slice(max(0, t - 2), t + 3),
    }
    return {"a": a}, {name: per_step(T, lambda t, r=r: a[r(t)].sum()) for name, r in ranges.items()}


def points(T: int) -> Call:
    t = ramp(T)
    return {"a": t}, {"modular": t % 2, "halved": t // 2, "reversed": t[::-1], "last": T - 1}


def dims_left(A: int) -> Call:
    x = normal(A, 3, 2, 3)
    growing = np.cumsum(x, 0)
    up = x[[*range(1, A), A - 1]]
    five = x[:5].swapaxes(0, 1) * 1.5
    expected = {"row": 2 * x[0], "point": 2 * x[0, 1], "next": up, "five": five, "growing": growing, "both": 1.5 * x}
    return {"x": x}, expected


def across_dims(T: int) -> Call:
    c = 10 * np.arange(3)[:, None] + np.arange(T)
    corner = [[c[: i + 1, t:].sum() for t in range(T)] for i in range(3)]
    return {"c": c}, {"row": c.sum(1), "all": c.sum(), "corner": np.array(corner, np.int64).reshape(3, T)}


def one_and_none(T: int) -> Call:
    a = ramp(T)
    return {"a": a}, {"all": 2 * a, "one": 2 * a[:, None], "none": np.zeros(T)}


def steps(T: int) -> Call:
    a = np.arange(1, T + 1)
    return {"a": a}, {"y": np.cumsum(a[::3]), "later": [a[t::3].sum() for t in range(T)]}


def guarded(T: int) -> Call:
    x = [t - 2 if t >= 2 else t + 3 if t < T - 3 else -1 for t in range(T)]
    return {"a": ramp(T)}, {"x": x, "y": np.minimum(ramp(T) + 3, T - 1)}


def first_case(T: int) -> Call:
    return {"T": T}, {"x": [1, 1, 1, 2, 2, *range(3, T - 2)][:T]}


def recurrences(T: int) -> Call:
    fibonacci = [0, 1]
    while len(fibonacci) < T:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    return {"T": T}, {"x": [2**t - 1 for t in range(T)], "fibonacci": fibonacci[:T]}


def odometer(J: int) -> Call:
    return {"I": 3, "J": J}, {"x": np.arange(1, 3 * J + 1).reshape(3, J)}


def backwards(T: int) -> Call:
    r = ramp(T) + 1
    return {"r": r}, {"g": per_step(T, lambda t: sum(0.5**k * r[t + k] for k in range(T - t)))}


def feed_each_other(T: int) -> Call:
    o, act = np.ones(2), np.zeros((T, 2))
    for t in range(T):
        act[t] = np.sin(o) + 1
        o = act[t] * 0.5
    return {"T": T}, {"act": act}


def stencil(J: int) -> Call:
    a = np.arange(4 * J).reshape(4, J) * 7 % 5
    x = a.copy()
    for i in range(1, 4):
        x[i, :-1] = x[i - 1, 1:] + 1
    return {"a": a}, {"x": x, "row": x.cumsum(1)}


def two_blocks(T: int) -> Call:
    return {"a": ramp(T)}, {"first": 1.5 * 6, "second": 1.5 * 18}


def window_of_a_recurrence(T: int) -> Call:
    a, h = normal(T, 3), np.zeros((T, 3))
    for t in range(T):
        h[t] = a[t] + (0.5 * h[t - 1] if t else 0)
    rows = [h[max(0, t - 3) : t + 1] for t in range(T)]
    expected = {"sum": [row.sum(0) for row in rows], "oldest": [row[0] for row in rows]}
    return {"a": a}, {name: np.reshape(value, (T, 3)) for name, value in expected.items()}


def written_and_read(T: int) -> Call:
    a = normal(T, 2)
    h = a.copy()
    for t in range(3, T):
        h[t] = 0.5 * h[t - 3] + a[t]
    g = np.sin(h)
    return {"a": a}, {"y": g - g[np.maximum(np.arange(T) - 3, 0)]}


def carried(I: int) -> Call:
    x, w, v = 0.1 * normal(I, 4), np.full(4, 1.5), np.full(4, 0.25)
    state = {"w": w.astype(np.float32), "v": v.astype(np.float32)}
    before = np.zeros((I, 4))
    for i in range(I):
        before[i] = w
        v = 0.5 * v + x[i]
        w = w - v * w[0]
    return {"x": x, "state": state}, {"before": before, "w": w, "v": v}


def read_after_the_update(I: int) -> Call:
    x, w = normal(I, 4), np.full(4, 2.0)
    y = np.zeros((I, 4))
    for i in range(I):
        y[i] = x[i] + w
        w = 0.5 * w + x[i]
    return {"x": x, "state": {"w": np.full(4, 2.0, np.float32)}}, {"y": y, "first": np.full(4, 2.0), "w": w}


def alike(T: int) -> Call:
    a, b = normal(T, 2), normal(T, 2, seed=1)
    before = b[np.maximum(np.arange(T) - 1, 0)]
    choice = np.maximum(a, b) - 2 * np.minimum(a, b)
    return {"a": a, "b": b}, {"choice": choice, "sum": (a + b) * (a + before)}


def suffix_and_prefix(T: int) -> Call:
    a = ramp(T)
    return {"a": a}, {"suffix": np.cumsum(a[::-1])[::-1], "prefix": np.cumsum(a)}


def growing(T: int) -> Call:
    a, w = normal(T, 3), 5 * normal(T, seed=1)
    rows = [a[: t + 1] for t in range(T)]
    weights = [np.exp(w[: t + 1] - w[: t + 1].max()) for t in range(T)]
    weighted = [e / e.sum() @ row for e, row in zip(weights, rows, strict=True)]
    expected = {"max": np.reshape([row.max(0) - 100 for row in rows], (T, 3)), "weighted": np.reshape(weighted, (T, 3))}
    return {"a": a, "w": w}, {**expected, "dot": [(row @ row[-1]).sum() for row in rows]}


def batch_and_time(T: int) -> Call:
    x, w, h = normal(2, T, 3), normal(3, 3, seed=2), np.zeros((2, T, 3))
    for t in range(T):
        h[:, t] = np.tanh(h[:, t - 1] @ w + x[:, t]) if t else x[:, 0]
    return {"x": x, "w": w}, {"h": h, "rows": x.cumsum(1)}


def zero_times_infinity(_: int) -> Call:
    x = np.array([np.nan, np.inf, -np.inf, 2], np.float32)
    return {"x": x}, {"zero": [np.nan, np.nan, np.nan, 0], "none": [np.nan, np.nan, np.nan, 0]}


def discounted(T: int) -> Call:
    left = T - np.arange(T)
    return {"r": np.ones(T)}, {"g": 10 * (1 - 0.9**left), "u": left.astype(float)}


def of_sums(T: int) -> Call:
    w = np.arange(1.0, T + 1)
    return {"x": np.zeros(T), "w": w}, {
        "all": np.ones(T),
        "weighted": np.full(T, w.sum()),
        "past": w[::-1].cumsum()[::-1],
    }


def of_points(T: int) -> Call:
    t, w = np.arange(T), np.arange(1.0, T + 1)
    at = {"before": np.maximum(t - 1, 0), "after": np.minimum(t + 1, T - 1), "modular": t % 2}
    expected = {name: 3.0 * np.bincount(index, minlength=T) for name, index in at.items()}
    expected["first"] = w.sum() * (t == 0)
    expected["second"] = np.bincount(np.maximum(t - 2, 0), w, T)
    return {"x": np.zeros(T), "w": w}, expected


def through_time(T: int) -> Call:
    each = np.full(T, 2.0 ** (T - 1))
    return {"w": np.full(T, 2.0), "v": np.float64(2)}, {"each": each, "shared": T * 2.0 ** (T - 1)}


def accumulate(T: int) -> Call:
    x = normal(3, T, 2, 3, dtype=np.float64)
    given = {"w": np.ones(3), "y": np.array([3.0, 1, 2]), "weights": np.array([10.0, 20, 30])}
    expected = {"summed": x.sum((1, 2, 3)), "sorted": [30, 10, 20], "same": [1, 1, 1], "ties": [0, 0, 0]}
    return {"x": x, **given, "ids": np.array([0, 1, 1, 1, 2])}, {**expected, "taken": [1, 3, 1]}


def no_nan(_: int) -> Call:
    return {"x": np.array([-1.0, 0, 4]), "w": np.arange(3.0)}, {"masked": [0, 0, 0], "root": [0, 0, 0.25]}


def sgd(I: int) -> Call:
    state = {"p": np.float64(1), "q": np.full(2, 3.0)}
    before = 0.5 ** np.arange(I)
    return {"I": I, "state": state}, {"before": before, "q2": np.arange(I)[:, None] * np.full(2, 3.0), "p": 0.5**I}


def types(_: int) -> Call:
    x, n = np.array([1, 2, 3], np.float32), np.array([1, 2, 3])
    given = {"x": x, "n": n, "d": np.full(3, 0.5), "small": np.array([100, 101, -50], np.int8)}
    expected = {"hundreds": 200, "ratio": np.ones(3), "weak": x + 2, "wide": n + 0.5}
    return given, {**expected, "wrapped": [-56, -55, 50]}


def bf16(_: int) -> Call:
    x, y = np.ones(1000, ml_dtypes.bfloat16), np.ones((8, 1000), ml_dtypes.bfloat16)
    return {"x": x, "y": y}, {"sum": 1000, "dot": np.full(8, 1000)}


def statistics(_: int) -> Call:
    return {"x": np.ones(3), "one": np.full(1, 7.0)}, {"discounted": 1.75, "normal": [0], "std": 0}


def advantages(_: int) -> Call:
    given = {
        "r": np.ones(5), "v": np.array([0.5, 0.4, 0.3, 0.2, 0.1]), "n": np.array([0.4, 0.3, 0.9, 0.1, 0.0]),
        "terminated": np.arange(5) == 4, "truncated": np.arange(5) == 2,
    }  # fmt: skip
    return given, {"a": [2.269184, 1.9572, 1.51, 1.538, 0.9]}


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, window: int) -> np.ndarray:
    """Causal attention: q (T, heads, group, d), k and v (T, heads, d); row t sees keys t - window + 1 to t."""
    result = np.zeros_like(q)
    for t in range(len(q)):
        past = slice(max(0, t - window + 1), t + 1)
        score = np.einsum("hgd,nhd->hgn", q[t], k[past])
        p = np.exp(score - score.max(-1, keepdims=True))
        result[t] = np.einsum("hgn,nhd->hgd", p / p.sum(-1, keepdims=True), v[past])
    return result


def windowed(T: int) -> Call:
    q, k, v = (normal(T, 2, dtype=np.float64, seed=seed) for seed in range(3))
    wide = q[:, None, None], k[:, None], v[:, None]
    return {"q": q, "k": k, "v": v}, {f"window_{w}": attention(*wide, w)[:, 0, 0] for w in (1, 3, 16)}


def grouped(T: int) -> Call:
    q, k, v = (normal(T, *shape, dtype=np.float64, seed=n) for n, shape in enumerate([(2, 3, 8), (2, 8), (2, 8)]))
    return {"q": q, "k": k, "v": v}, {"o": attention(q, k, v, T)}


def preconditions(T: int) -> Call:
    k = normal(T)
    return {"k": k}, {"last": k[-1], "mean": k.mean()}


def odd_slices(T: int) -> Call:
    x, n = normal(T, 3, 2), np.arange(T) % 3 + 1
    table = np.array([9, 8, 7, 6])
    expected = {"column": x[:, :, 0], "down": np.zeros((3, 2)), "row": table[n], "quotient": 12 // n}
    return {"x": x, "n": n, "table": table}, expected


def nan_and_casts(_: int) -> Call:
    x = np.array([-np.inf, np.nan, 1e30, -2.7], np.float32)
    expected = {"max": np.nan, "argmax": 1, "softmax": np.full(4, np.nan), "i64": [-(2**63), 0, 2**63 - 1, -2]}
    given = {"x": x, "n": np.array([-7, 7]), "m": np.array([2, -2])}
    return given, {**expected, "i8": [-128, 0, 127, -2], "quotient": [-4, -4], "rest": [1, -1]}


def bounds_that_follow(T: int) -> Call:
    M = T * 8 // 64
    y = normal(M)
    return {"x": normal(T, 8), "y": y}, {"block": 2 * y, "count": sum(range(M))}


EXPECTED: dict[str, tuple[Callable[[int], Call], int]] = {
    "01_windows": (windows, 0),
    "02_points": (points, 2),
    "03_dims_left_by_an_index": (dims_left, 5),
    "04_across_dims": (across_dims, 0),
    "05_slices_of_one_and_none": (one_and_none, 0),
    "06_steps": (steps, 0),
    "07_guarded_reads": (guarded, 0),
    "08_first_case_wins": (first_case, 0),
    "09_recurrences": (recurrences, 0),
    "10_odometer": (odometer, 0),
    "11_backwards": (backwards, 0),
    "13_feed_each_other": (feed_each_other, 0),
    "15_stencil": (stencil, 0),
    "16_two_blocks": (two_blocks, 7),
    "17_window_of_a_recurrence": (window_of_a_recurrence, 0),
    "18_written_at_t_and_read_at_t_minus_w": (written_and_read, 0),
    "19_carried_states": (carried, 0),
    "20_read_after_the_update": (read_after_the_update, 1),
    "21_alike_and_not_equal": (alike, 0),
    "22_suffix_and_prefix_sums": (suffix_and_prefix, 0),
    "23_growing_ranges": (growing, 0),
    "24_batch_and_time": (batch_and_time, 0),
    "25_zero_times_infinity": (zero_times_infinity, -1),
    "26_discounted_returns": (discounted, 0),
    "27_gradients_of_sums": (of_sums, 0),
    "28_gradients_of_points": (of_points, 2),
    "29_through_time": (through_time, 1),
    "30_gradients_accumulate": (accumulate, 0),
    "31_no_nan_leaks": (no_nan, -1),
    "32_sgd": (sgd, 0),
    "33_types": (types, -1),
    "34_sums_of_bf16": (bf16, -1),
    "35_statistics": (statistics, -1),
    "36_advantages": (advantages, -1),
    "39_windowed_attention": (windowed, 0),
    "40_grouped_queries": (grouped, 0),
    "41_preconditions": (preconditions, 1),
    "42_odd_slices_and_run_time_errors": (odd_slices, 0),
    "43_nan_and_casts": (nan_and_casts, -1),
    "46_bounds_that_follow": (bounds_that_follow, 0),
}
"""By program: the call at a size, and the least size; -1 for a program of one size."""
STATED: dict[str, tuple[int, dict[str, Any]]] = {
    "01_windows": (6, {"past": [0, 1, 3, 6, 10, 15], "future": [15, 15, 14, 12, 9, 5], "window": [0, 1, 3, 6, 9, 12]}),
    "02_points": (6, {"modular": [0, 1, 0, 1, 0, 1], "halved": [0, 0, 1, 1, 2, 2]}),
    "04_across_dims": (3, {"row": [3, 33, 63], "all": 99}),
    "06_steps": (10, {"y": [1, 5, 12, 22]}),
    "08_first_case_wins": (8, {"x": [1, 1, 1, 2, 2, 3, 4, 5]}),
    "09_recurrences": (10, {"fibonacci": [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]}),
    "10_odometer": (3, {"x": [[1, 2, 3], [4, 5, 6], [7, 8, 9]]}),
    "11_backwards": (4, {"g": [3.25, 4.5, 5, 4]}),
    "22_suffix_and_prefix_sums": (8, {"suffix": [28, 28, 27, 25, 22, 18, 13, 7]}),
    "27_gradients_of_sums": (4, {"all": [1] * 4, "weighted": [10] * 4, "past": [10, 9, 7, 4]}),
    "28_gradients_of_points": (
        4, {"before": [6, 3, 3, 0], "after": [0, 3, 3, 6], "modular": [6, 6, 0, 0], "first": [10, 0, 0, 0]},
    ),
    "29_through_time": (4, {"each": [8] * 4, "shared": 32}),
    "32_sgd": (4, {"before": [1, 0.5, 0.25, 0.125]}),
}  # fmt: skip
"""Known values at one size, typed in."""
