"""Attention on a GPU, in Triton's interpreter: keys in shares that are computed side by side and combined, and blocks
of queries over the keys that they may see."""

from __future__ import annotations

import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.kernels.blocks import TARGETS
from tempo_ir.lowering.triton.interpreter import run_interpreted
from tempo_ir.lowering.triton.module import kernel_sources
from tempo_ir.runtime.compiler import lower, module_of
from tests.triton import catalogue

NUMPY = {tp.f32: np.dtype(np.float32), tp.f16: np.dtype(np.float16), tp.bf16: np.dtype(ml_dtypes.bfloat16)}
TOLERANCE = {tp.f32: 1e-5, tp.f16: 4e-3, tp.bf16: 3e-2}


@tp.program
def last(dtype=tp.f32, heads=2, group=3, width=8, window=None, masked=False):
    """Attention of the last step alone, over a cache as long as the call."""
    t, T = tp.dim("t")
    q = tp.input("q", dtype[heads, group, width], over=t)
    k, v = (tp.input(name, dtype[heads, width], over=t) for name in "kv")
    past = slice(0 if window is None else tp.maximum(0, t - window + 1), t + 1)
    scores = tp.einsum("hgd,nhd->hgn", q, k[past])
    if masked:
        bias = tp.input("bias", dtype[1], over=t)
        scores = scores + bias[past].reshape(1, 1, -1)
    mixed = tp.einsum("hgn,nhd->hgd", tp.softmax(scores), v[past])
    tp.output("mixed", mixed[T - 1])


def kernels_of(program, target: str = "triton-interpret") -> list[str]:
    """The names of the kernels of a program, in their order."""
    module = lower(module_of(program), target).lowered
    return [op.sym_name.data for op in module.ops if isinstance(op, KernelOp)]


def drawn(steps: int, dtype, heads: int, group: int, width: int) -> dict[str, np.ndarray]:
    """Queries, keys and values."""
    random = np.random.default_rng(steps)
    shapes = {"q": (heads, group, width), "k": (heads, width), "v": (heads, width)}
    return {name: random.standard_normal((steps, *shape)).astype(NUMPY[dtype]) for name, shape in shapes.items()}


def expected(inputs: dict[str, np.ndarray], bias: np.ndarray | float = 0.0) -> np.ndarray:
    """In f64."""
    q, k, v = (inputs[name].astype(np.float64) for name in "qkv")
    scores = np.einsum("hgd,nhd->hgn", q[-1], k) + bias
    greatest = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(greatest == -np.inf, 0, greatest))
    total = weights.sum(axis=-1, keepdims=True)
    return np.einsum("hgn,nhd->hgd", weights / np.where(total == 0, 1, total), v)


@pytest.mark.parametrize(
    ("steps", "dtype", "settings"),
    [
        (1, tp.f32, {}),
        (65, tp.f32, {"width": 24}),
        (600, tp.f32, {}),
        (700, tp.f32, {"heads": 1, "group": 17}),
        (300, tp.f16, {"width": 80, "group": 1}),
        (300, tp.bf16, {"group": 4}),
    ],
    ids=str,
)
def test_a_long_cache_is_attended_to_in_shares(steps, dtype, settings):
    settings = {"heads": 2, "group": 3, "width": 8, **settings}
    program = last(dtype=dtype, **settings)
    assert kernels_of(program) == ["contract_shares", "max_eq_exp_contract"]
    inputs = drawn(steps, dtype, **settings)
    got = run_interpreted(lower(module_of(program), "triton-interpret").lowered, inputs, {"T": steps})["mixed"]
    np.testing.assert_allclose(got.astype(np.float64), expected(inputs), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("kept", ["none", "one share", "the last key"])
def test_shares_without_a_key_that_counts_change_nothing(kept):
    """Scores of -inf, as those of shares that have no keys at all: no NaN comes of them."""
    steps = 400
    bias = np.full((steps, 1), -np.inf, np.float32)
    bias[{"none": slice(0, 0), "one share": slice(64, 70), "the last key": slice(steps - 1, None)}[kept]] = 0
    inputs = drawn(steps, tp.f32, 2, 3, 8)
    module = lower(module_of(last(masked=True)), "triton-interpret").lowered
    got = run_interpreted(module, {**inputs, "bias": bias}, {"T": steps})["mixed"]
    np.testing.assert_allclose(got, expected(inputs, bias[:, 0]), rtol=1e-5, atol=1e-5)
    if kept == "none":
        assert not got.any()


def test_a_long_window_is_in_shares_and_a_short_one_is_not():
    assert kernels_of(last(window=4096), "sm_90") == ["contract_shares", "max_eq_exp_contract"]
    assert kernels_of(last(window=256), "sm_90") == ["contract_softmax"]
    inputs = drawn(700, tp.f32, 2, 3, 8)
    module = lower(module_of(last(window=600)), "triton-interpret").lowered
    got = run_interpreted(module, inputs, {"T": 700})["mixed"]
    within = {name: array[-600:] for name, array in inputs.items()}
    np.testing.assert_allclose(got, expected(within), rtol=1e-5, atol=1e-5)


@tp.program
def ringed(window=66, width=8):
    """Keys and values that are computed, of which a ring holds a window."""
    t, _T = tp.dim("t")
    q, x = (tp.input(name, tp.f32[2, width], over=t) for name in "qx")
    k = tp.tensor("k", tp.f32[width], over=t)
    k[0] = x[0, 0]
    k[t] = k[t - 1] * 0.5 + x[t, 0]
    past = slice(tp.maximum(0, t - window + 1), t + 1)
    tp.output("mixed", tp.einsum("gn,nd->gd", tp.softmax(tp.einsum("gd,nd->gn", q, k[past])), k[past]))


def test_a_window_that_lies_in_a_ring_is_in_shares(monkeypatch):
    """Blocks of 8 keys, so that a short window has shares; they are dealt out in both stretches of the ring."""
    monkeypatch.setitem(TARGETS, "triton-interpret", replace(TARGETS["triton-interpret"], reduced=8, dynamic=8))
    module = lower(module_of(ringed()), "triton-interpret").lowered
    assert any("shares" in op.sym_name.data for op in module.ops if isinstance(op, KernelOp))
    steps, random = 80, np.random.default_rng(4)
    given = {name: random.standard_normal((steps, 2, 8)).astype(np.float32) for name in "qx"}
    expected = tp.compile(ringed(), "reference")(**given)["mixed"]
    got = run_interpreted(module, given, {"T": steps})["mixed"]
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_programs_enough_need_no_shares():
    assert kernels_of(last(heads=256), "sm_90") == ["contract_softmax"]
    assert kernels_of(last(heads=2), "cpu") == ["contract_softmax"]


def test_how_many_shares_there_are():
    blocks = TARGETS["sm_90"]
    assert blocks.key_shares(None, 8) == 32
    assert blocks.key_shares(None, 1) == 64
    assert blocks.key_shares(None, 133) == blocks.key_shares(None, 10_000) == 1
    assert blocks.key_shares(4096, 8) == 16
    assert blocks.key_shares(511, 8) == 1
    assert TARGETS["cpu"].key_shares(None, 1) == 1


def causal(inputs: dict[str, np.ndarray], window: int | None) -> np.ndarray:
    """Attention of all queries to what comes no later, in f64."""
    q, k, v = (inputs[name].astype(np.float64) for name in "qkv")
    scores = np.einsum("mhgd,nhd->hgmn", q, k) * q.shape[-1] ** -0.5
    m, n = np.arange(len(q))[:, None], np.arange(len(q))
    scores = np.where((n <= m) & (n > m - (window or len(q))), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("hgmn,nhd->mhgd", weights / weights.sum(axis=-1, keepdims=True), v)


@pytest.mark.parametrize(
    ("steps", "dtype", "settings"),
    [
        (1, tp.f32, {}),
        (67, tp.f32, {"width": 24, "group": 1}),
        (70, tp.f16, {"heads": 1, "group": 4}),
        (50, tp.bf16, {"heads": 1, "group": 8, "width": 80}),
        (150, tp.f16, {"heads": 1, "group": 3, "window": 40}),
        (70, tp.f16, {"heads": 1, "group": 9, "window": 1}),
    ],
    ids=str,
)
def test_a_prompt_is_attended_to_in_blocks_of_queries(steps, dtype, settings):
    settings = {"heads": 2, "group": 2, "width": 8, "window": None, **settings}
    window = settings["window"]
    program = catalogue.prefill(dtype=dtype, **settings)
    assert len(kernels_of(program)) == 1
    inputs = drawn(steps, dtype, settings["heads"], settings["group"], settings["width"])
    got = run_interpreted(lower(module_of(program), "triton-interpret").lowered, inputs, {"P": steps})["mixed"]
    np.testing.assert_allclose(
        got.astype(np.float64), causal(inputs, window), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
    )


def prefill_text(**settings) -> str:
    """The one kernel of a prompt's attention."""
    (source, *_) = kernel_sources(lower(module_of(catalogue.prefill(**settings)), "sm_90").lowered)
    return source.text


def test_grouped_queries_share_a_block_of_keys():
    text = prefill_text(dtype=tp.bf16, group=4)
    assert text.count("tl.load(k_ptr") == text.count("tl.load(v_ptr") == 1
    assert text.count("tl.dot(") == 8
    assert "# grid: the launch says how many (p by BLOCK_P), 2 (h)" in text


def test_keys_that_no_query_of_a_block_sees_are_not_read():
    """The loop ends behind the last query of a block, and begins with a window at that of its first one."""
    (last,) = re.findall(r"in range\(0, (\w+), BLOCK_P_2\)", prefill_text(dtype=tp.bf16, group=1))
    assert last != "P"
    windowed = prefill_text(dtype=tp.bf16, group=1, window=100)
    assert "-99 + " in windowed
    assert "in range(0," not in windowed


@tp.program
def with_masks(kind="caller"):
    """Attention with masks that say nothing of positions, or not of these."""
    p, P = tp.dim("p")
    q, k = (tp.input(name, tp.f32[8], over=p)[0:P] for name in "qk")
    m, n = tp.arange(P).reshape(-1, 1), tp.arange(P).reshape(1, -1)
    scores = tp.einsum("md,nd->mn", q, k)
    if kind == "caller":
        scores = tp.where(tp.input("seen", tp.bool[1], over=p)[0:P].reshape(1, -1), scores, float("-inf"))
    elif kind == "either":
        scores = tp.where((n <= m) | (n > m + 3), scores, float("-inf"))
    elif kind == "lowered":
        scores = tp.where(n <= m, scores, -2.0)
    elif kind == "turned":
        scores = tp.where(m - 3 < n, scores, float("-inf"))
        scores = tp.where(m + 5 >= n, scores, float("-inf"))
    tp.output("mixed", tp.einsum("mn,nd->md", tp.softmax(scores), k))


@pytest.mark.parametrize("kind", ["caller", "either", "lowered", "turned"])
def test_what_masks_leave_out(kind):
    steps = 150
    random = np.random.default_rng(2)
    given = {name: random.standard_normal((steps, 8)).astype(np.float32) for name in "qk"}
    seen = random.random((steps, 1)) < 0.3
    m, n = np.arange(steps)[:, None], np.arange(steps)
    scores = given["q"].astype(np.float64) @ given["k"].T
    scores = {
        "caller": np.where(seen[:, 0], scores, -np.inf),
        "either": np.where((n <= m) | (n > m + 3), scores, -np.inf),
        "lowered": np.where(n <= m, scores, -2.0),
        "turned": np.where((n > m - 3) & (n <= m + 5), scores, -np.inf),
    }[kind]
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    expected = weights / weights.sum(axis=-1, keepdims=True) @ given["k"]
    arrays = {**given, "seen": seen} if kind == "caller" else given
    module = lower(module_of(with_masks(kind=kind)), "triton-interpret").lowered
    np.testing.assert_allclose(run_interpreted(module, arrays, {"P": steps})["mixed"], expected, rtol=1e-4, atol=1e-4)


@tp.program
def with_reshaped_positions(kind="halves", rows=64, keys=96):
    """Rows of two batches, whose positions are cut in two by a reshape, or whose keys all have one position."""
    q, k, v = (tp.parameter(name, tp.f32[shape]) for name, shape in
               {"q": (2, rows, 8), "k": (keys, 8), "v": (keys, 8)}.items())  # fmt: skip
    m, n = tp.arange(rows).reshape(1, rows, 1), tp.arange(keys).reshape(1, 1, keys)
    if kind == "halves":
        m = tp.broadcast_to(tp.arange(rows).reshape(rows, 1), (rows, 2)).reshape(2, rows, 1)
    else:
        n = tp.arange(1).reshape(1, 1, 1) + tp.zeros([1, 1, keys], tp.i64)
    scores = tp.where(n <= m, tp.einsum("amd,nd->amn", q, k), float("-inf"))
    tp.output("mixed", tp.einsum("amn,nd->amd", tp.softmax(scores), v))


@pytest.mark.parametrize("kind", ["halves", "one position"])
def test_positions_that_a_reshape_cuts_are_not_those_of_an_axis(kind):
    program, random = with_reshaped_positions(kind=kind), np.random.default_rng(0)
    shapes = {"q": (2, 64, 8), "k": (96, 8), "v": (96, 8)}
    state = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    rows = np.repeat(np.arange(64), 2).reshape(2, 64, 1) if kind == "halves" else np.full((2, 64, 1), 96)
    scores = np.einsum("amd,nd->amn", state["q"].astype(np.float64), state["k"])
    weights = np.exp(np.where(np.arange(96) <= rows, scores, -np.inf))
    expected = weights / weights.sum(axis=-1, keepdims=True) @ state["v"]
    found = tp.compile(program, "triton-interpret")(state=state)["mixed"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
