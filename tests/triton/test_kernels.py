"""Ten kernels of deep learning in Triton's interpreter, at odd sizes in blocks of powers of two."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f32

from tests.tile import kernels
from tests.triton.support import assert_same

CASES = {
    "linear_tanh": lambda rng: kernels.linear_tanh(rng, 50, 16, 32, 64),
    "gemv": lambda rng: kernels.linear(rng, 1, 64, 64, 64, 64),
    "linear 4 rows": lambda rng: kernels.linear(rng, 4, 64, 64, 32, 32),
    "linear 16 rows": lambda rng: kernels.linear(rng, 16, 128, 64, 64, 64),
    "linear bf16": lambda rng: kernels.linear(rng, 4, 64, 64, 64, 64, bf16),
    "linear by depth": lambda rng: kernels.linear(rng, 8, 64, 32, 64, 32, f32, False),
    "attention": lambda rng: kernels.decode_attention(rng, 8, 4, 64, 100, 64, True, 256),
    "attention by time": lambda rng: kernels.decode_attention(rng, 8, 2, 16, 37, 16, False, 64),
    "rmsnorm": lambda rng: kernels.rmsnorm_linear(rng, 4, 64, 64, 32),
    "rnn": lambda rng: kernels.rnn(rng, 20, 4, 16, 64),
    "matmul": lambda rng: kernels.matmul(rng, 64, 64, 64, (32, 32, 32)),
    "matmul odd": lambda rng: kernels.matmul(rng, 37, 45, 29, (16, 16, 8)),
    "rollout": lambda rng: kernels.rollout(rng, 20, 3, 16, 64),
    "prefill": lambda rng: kernels.causal_attention(rng, 2, 32, 50, 16, 32, 64),
    "weight gradient": lambda rng: kernels.weight_gradient(rng, 50, 32, 64, 32),
    "layernorm": lambda rng: kernels.embed_layernorm(rng, 37, 64, 8),
}


@pytest.mark.parametrize("name", CASES)
def test_kernel(name):
    case = CASES[name](np.random.default_rng(0))
    assert_same(case.kernel, case.arguments, case.grid, case.tolerance)
