"""Attention over blocks of queries on the CPU, against numpy row by row: at sizes round those of blocks, where
rows have no keys, and where what a row must not read is infinite or NaN."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Block
from xdsl.utils.exceptions import VerifyException

import tempo_ir as tp
from tempo_ir.dialects.loop import AttendOp
from tempo_ir.dialects.types import tensor
from tempo_ir.index import Const
from tempo_ir.passes.remarks import collecting
from tempo_ir.reference.shares import evaluate_attend
from tempo_ir.runtime.compiler import lower, module_of

NUMPY = {tp.f32: np.float32, tp.f64: np.float64, tp.bf16: ml_dtypes.bfloat16}
SIZES = (0, 1, 2, 64, 65, 130)


@tp.program
def attention(
    past="causal", window=None, heads=2, group=None, width=8, batch=None, bias=False, dtype=tp.f32, after=False
):
    """Attention of each step to a range of steps."""
    t, T = tp.dim("t")
    lead = () if batch is None else (batch,)
    shared, own = ("" if batch is None else "b"), ("" if group is None else "g")
    queries = (*lead, heads) if group is None else (*lead, heads, group)
    q = tp.input("q", dtype[(*queries, width)], over=t)
    k, v = (tp.input(name, dtype[(*lead, heads, width)], over=t) for name in "kv")
    ranges = {
        "causal": lambda: slice(0 if window is None else tp.maximum(0, t - window + 1), t + 1),
        "before": lambda: slice(0, t),
        "late": lambda: slice(0, t - 1),
        "following": lambda: slice(t, T),
        "next": lambda: slice(t + 1, tp.minimum(t + 5, T)),
        "everything": lambda: slice(0, T),
    }
    seen = ranges[past]()
    scores = tp.einsum(f"{shared}h{own}d,n{shared}hd->{shared}h{own}n", q * width**-0.5, k[seen])
    if bias:
        added = tp.input("added", dtype[1], over=t)
        scores = scores + added[seen].reshape(*([1] * len(queries)), -1)
    mixed = tp.einsum(f"{shared}h{own}n,n{shared}hd->{shared}h{own}d", tp.softmax(scores), v[seen])
    tp.output("mixed", mixed * q + 1 if after else mixed)


def inputs(steps: int, settings: dict[str, Any], spoiled: bool) -> dict[str, np.ndarray]:
    """Queries, keys and values; where `spoiled` some are infinite or NaN."""
    random = np.random.default_rng(steps)
    heads, width, batch, group = (
        settings.get(n, d) for n, d in [("heads", 2), ("width", 8), ("batch", 0), ("group", 0)]
    )
    lead = (batch,) if batch else ()
    shapes = {"q": (*lead, heads, *([group] if group else []), width), "k": (*lead, heads, width)}
    shapes["v"] = shapes["k"]
    dtype = NUMPY[settings.get("dtype", tp.f32)]
    arrays = {name: random.standard_normal((steps, *shape)).astype(dtype) for name, shape in shapes.items()}
    if settings.get("bias"):
        left_out = random.random((steps, 1)) < 0.3
        arrays["added"] = np.where(left_out, -np.inf, random.standard_normal((steps, 1))).astype(dtype)
    if spoiled:
        for number in (np.inf, -np.inf, np.nan):
            arrays["v"][random.integers(steps)].flat[random.integers(width)] = number
        arrays["k"][random.integers(steps)].flat[0] = np.nan
    return arrays


RANGES = {
    "causal": lambda t, T, window: (0 if window is None else max(0, t - window + 1), t + 1),
    "before": lambda t, T, window: (0, t),
    "late": lambda t, T, window: (0, max(0, t - 1)),
    "following": lambda t, T, window: (t, T),
    "next": lambda t, T, window: (t + 1, min(t + 5, T)),
    "everything": lambda t, T, window: (0, T),
}


def expected(given: dict[str, np.ndarray], settings: dict[str, Any]) -> np.ndarray:
    """What each row gives by itself."""
    q, k, v = (given[name].astype(np.float64) for name in "qkv")
    shared, own = ("b" if "batch" in settings else ""), ("g" if "group" in settings else "")
    mixed = np.zeros(q.shape)
    for t in range(len(q)):
        first, end = RANGES[settings.get("past", "causal")](t, len(q), settings.get("window"))
        scores = np.einsum(f"{shared}h{own}d,n{shared}hd->{shared}h{own}n", q[t], k[first:end]) * q.shape[-1] ** -0.5
        if "added" in given:
            scores = scores + given["added"][first:end, 0].astype(np.float64)
        greatest = scores.max(axis=-1, initial=-np.inf, keepdims=True)
        weights = np.exp(scores - np.where(greatest == -np.inf, 0, greatest))
        total = weights.sum(axis=-1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
        mixed[t] = np.einsum(f"{shared}h{own}n,n{shared}hd->{shared}h{own}d", weights, v[first:end])
    return mixed * q + 1 if settings.get("after") else mixed


CASES: list[dict[str, Any]] = [
    {},
    *({"window": window} for window in (1, 64, 100)),
    *({"past": past} for past in ("before", "late", "following", "next", "everything")),
    {"group": 3},
    {"batch": 2, "group": 2, "window": 70},
    {"bias": True, "after": True},
    {"bias": True, "group": 2, "past": "following"},
    {"heads": 1, "width": 5},
    {"width": 24, "dtype": tp.f64, "past": "following"},
    {"dtype": tp.bf16},
]


@pytest.mark.parametrize("settings", CASES, ids=str)
def test_all_steps_at_once(settings: dict[str, Any]):
    compiled = tp.compile(attention(**settings))
    tolerance = 3e-2 if settings.get("dtype") is tp.bf16 else 1e-5
    for steps in SIZES:
        for spoiled in (False, True) if steps > 1 else (False,):
            given = inputs(steps, settings, spoiled)
            with np.errstate(invalid="ignore"):
                wanted = expected(given, settings)
            got = compiled(**given, T=steps)["mixed"].astype(np.float64)
            np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, err_msg=f"{steps=}, {spoiled=}")


@pytest.mark.parametrize("settings", [CASES[0], CASES[2], CASES[6], CASES[-6]], ids=str)
def test_no_loop_is_left(settings: dict[str, Any]):
    lowered = str(lower(module_of(attention(**settings)), "cpu").lowered)
    assert "loop.for" not in lowered
    assert lowered.count("loop.launch") == 1


def test_keys_that_no_row_of_a_block_has_are_not_read():
    """Rows 0 to 63 read no keys beyond theirs: spoiled ones would make all of them NaN, were they multiplied by 0."""
    steps = 300
    given = inputs(steps, {}, spoiled=False)
    given["v"][64:] = np.nan
    got = tp.compile(attention())(**given)["mixed"]
    assert np.isfinite(got[:64]).all()
    assert np.isnan(got[64:]).all()


@tp.program
def read_twice(width=4):
    """Attention to ranges of two lengths."""
    t, _T = tp.dim("t")
    q, k = (tp.input(name, tp.f32[width], over=t) for name in "qk")
    mixed = tp.einsum("n,nd->d", tp.softmax(tp.einsum("d,nd->n", q, k[0 : t + 1])), k[0 : t + 1])
    tp.output("mixed", mixed + tp.sum(k[tp.maximum(0, t - 2) : t + 1], axis=0))


def test_a_step_that_reads_two_ranges_stays_a_step():
    with collecting() as collector:
        lowered = lower(module_of(read_twice()), "cpu").lowered
    assert "loop.for" in str(lowered)
    assert any("its steps are computed one by one" in remark.message for remark in collector.remarks)
    steps, random = 40, np.random.default_rng(0)
    given = {name: random.standard_normal((steps, 4)).astype(np.float32) for name in "qk"}
    expected = tp.compile(read_twice(), "reference")(**given)["mixed"]
    np.testing.assert_allclose(tp.compile(read_twice())(**given)["mixed"], expected, rtol=1e-5, atol=1e-5)


@tp.program
def beside(width=4):
    """Two sums over steps, and what has nothing to do with them, in one loop."""
    t, T = tp.dim("t")
    q, k, r = (tp.input(name, tp.f32[width], over=t) for name in "qkr")

    def mixed(queries, past):
        return tp.einsum("n,nd->d", tp.softmax(tp.einsum("d,nd->n", queries, k[past])), k[past])

    tp.output("before", mixed(q, slice(0, t + 1)))
    tp.output("after", mixed(r, slice(t, T)))
    tp.output("sum", q + r)


def test_what_stands_beside_stays_in_its_loop():
    lowered = str(lower(module_of(beside()), "cpu").lowered)
    assert lowered.index("launch @contract_attend") < lowered.index("loop.for") < lowered.index("launch @add")
    steps, random = 70, np.random.default_rng(0)
    given = {name: random.standard_normal((steps, 4)).astype(np.float32) for name in "qkr"}
    expected, got = tp.compile(beside(), "reference")(**given), tp.compile(beside())(**given)
    for name in ("before", "after", "sum"):
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-5, atol=1e-5)


def test_the_meaning_of_a_row_without_keys():
    """Row 0 has none, row 1 key 0 alone, though the value of key 1 is infinite."""
    scores, summed = np.zeros((3, 2), np.float32), np.array([[1.0], [np.inf]], np.float32)
    block_args = [tensor(f32, (3, 2)), tensor(f32, (2, 1))]
    first, second = Block(arg_types=block_args).args
    op = AttendOp("tn,nd->td", first, second, "t", high=Const(0))
    np.testing.assert_array_equal(evaluate_attend(op, [scores, summed], {}), [[0.0], [1.0], [np.inf]])


def test_rows_of_integers_have_no_weights():
    first, second = Block(arg_types=[tensor(i32, (3, 2)), tensor(i32, (2, 1))]).args
    with pytest.raises(VerifyException, match=r"loop\.attend of i32"):
        AttendOp("tn,nd->td", first, second, "t")
