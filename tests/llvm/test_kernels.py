"""Ten kernels of deep learning, native against the reference interpreter, at odd sizes and for narrower machines."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f32

from tempo_ir.lowering.llvm.engine import host_target
from tempo_ir.lowering.llvm.target import AVX2, SSE, Target
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


def run(name: str, target: Target | None) -> None:
    if target is not None and target.lanes > host_target().lanes:
        target = None
    case: Case = CASES[name](np.random.default_rng(0))
    assert_same(case.kernel, case.arguments, case.grid, case.tolerance, target)
