"""Ten kernels of deep learning, native against the reference interpreter, at odd sizes and for narrower machines."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f32

from tempo_ir.dialects.tile.attributes import PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.lowering.llvm.engine import host_target
from tempo_ir.lowering.llvm.kernel import lower_kernel
from tempo_ir.lowering.llvm.target import AVX2, AVX512, SSE, Target
from tests.llvm.support import assert_same
from tests.tile import kernels
from tests.tile.kernels import Case

CASES = {
    "linear_tanh": lambda rng: kernels.linear_tanh(rng, 70, 16),
    "linear_tanh one block": lambda rng: kernels.linear_tanh(rng, 50, 64),
    "linear_tanh odd": lambda rng: kernels.linear_tanh(rng, 11, 5, 37, 19),
    "gemv": lambda rng: kernels.linear(rng, 1, 64, 64, 64, 64),
    "gemv odd": lambda rng: kernels.linear(rng, 1, 37, 29, 37, 29),
    "linear 4 rows": lambda rng: kernels.linear(rng, 4, 64, 64, 32, 32),
    "linear 20 rows": lambda rng: kernels.linear(rng, 20, 128, 64, 64, 64),
    "linear odd, transposed": lambda rng: kernels.linear(rng, 20, 37, 29, 37, 29),
    "linear bf16": lambda rng: kernels.linear(rng, 4, 64, 64, 64, 64, bf16),
    "linear by depth": lambda rng: kernels.linear(rng, 7, 40, 33, 40, 33, f32, False),
    "attention": lambda rng: kernels.decode_attention(rng, 8, 4, 64, 100, 64, True, 256),
    "attention by time": lambda rng: kernels.decode_attention(rng, 6, 2, 24, 37, 16, False, 64),
    "attention one position": lambda rng: kernels.decode_attention(rng, 2, 2, 16, 1, 32, True, 64),
    "rmsnorm": lambda rng: kernels.rmsnorm_linear(rng, 4, 64, 64, 32),
    "rmsnorm odd": lambda rng: kernels.rmsnorm_linear(rng, 3, 13, 37, 13, bf16),
    "rnn": lambda rng: kernels.rnn(rng, 20, 4, 16, 64),
    "rnn odd": lambda rng: kernels.rnn(rng, 7, 3, 5, 11),
    "matmul": lambda rng: kernels.matmul(rng, 64, 64, 64, (32, 32, 32)),
    "matmul odd": lambda rng: kernels.matmul(rng, 37, 45, 29, (16, 16, 8)),
    "rollout": lambda rng: kernels.rollout(rng, 20, 3, 16, 64),
    "rollout odd": lambda rng: kernels.rollout(rng, 7, 3, 3, 13),
    "prefill": lambda rng: kernels.causal_attention(rng, 2, 32, 50, 16, 32, 64),
    "prefill odd": lambda rng: kernels.causal_attention(rng, 1, 11, 13, 5, 7, 16),
    "weight gradient": lambda rng: kernels.weight_gradient(rng, 100, 32, 48, 32),
    "weight gradient odd": lambda rng: kernels.weight_gradient(rng, 13, 7, 19, 5),
    "layernorm": lambda rng: kernels.embed_layernorm(rng, 37, 64, 8),
    "layernorm odd": lambda rng: kernels.embed_layernorm(rng, 5, 27, 3),
}


@pytest.mark.parametrize("name", CASES)
def test_kernel(name: str):
    run(name, None)


@pytest.mark.parametrize("name", [name for name in CASES if "odd" in name])
@pytest.mark.parametrize("target", [AVX2, SSE], ids=["avx2", "sse"])
def test_narrower_machines(name: str, target: Target):
    run(name, target)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if "odd" not in name])
@pytest.mark.parametrize("target", [AVX2, SSE], ids=["avx2", "sse"])
def test_more_on_narrower_machines(name: str, target: Target):
    run(name, target)


@pytest.mark.parametrize("rows", [16, 32])
@pytest.mark.parametrize("columns", [256, 512])
def test_products_with_a_bias_take_vectors_along_their_operands(rows: int, columns: int):
    case = linear_bias(np.random.default_rng(0), rows, columns, 256)
    text = lower_kernel(case.kernel, AVX512).definition
    assert "gather" not in text
    assert "scatter" not in text
    assert_same(case.kernel, case.arguments, case.grid, case.tolerance)


def linear_bias(rng: np.random.Generator, rows: int, columns: int, depth: int) -> Case:
    """x @ w.T + bias, with w as linear layers store it."""
    pointer = PointerType(f32)
    k = KernelBuilder("linear_bias", {"x": pointer, "w": pointer, "bias": pointer, "out": pointer})
    product = k.dot(
        k.load(k.view(k["x"], [rows, depth]), (0, rows), (0, depth)),
        k.load(k.view(k["w"], [columns, depth]), (0, columns), (0, depth)).t,
        k.const(0.0, f32, [rows, columns]),
    )
    bias = k.load(k.view(k["bias"], [columns]), (0, columns))
    k.store(product + bias[None, :], k.view(k["out"], [rows, columns]), (0, rows), (0, columns))
    sizes = (rows, depth), (columns, depth), (columns,)
    arguments = [kernels.normal(rng, *size) for size in sizes]
    return Case(k.finish(), [*arguments, np.zeros((rows, columns), np.float32)], ())


def test_blocks_of_keys_have_one_text():
    """The rest of the keys is no trip of its own where scores and weighted sums go over those that are there."""
    case: Case = CASES["attention by time"](np.random.default_rng(0))
    assert "srem" not in lower_kernel(case.kernel, AVX512).definition


def run(name: str, target: Target | None) -> None:
    if target is not None and target.lanes > host_target().lanes:
        target = None
    case: Case = CASES[name](np.random.default_rng(0))
    assert_same(case.kernel, case.arguments, case.grid, case.tolerance, target)
