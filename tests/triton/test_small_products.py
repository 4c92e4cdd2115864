"""Products whose sides are short or odd: vectors, a few rows padded to what tensor cores take, few or odd columns; in
Triton's interpreter."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir.lowering.triton.interpreter import run_interpreted
from tempo_ir.lowering.triton.module import kernel_sources
from tempo_ir.runtime.compiler import lower, module_of

NUMPY = {tp.f32: np.dtype(np.float32), tp.f16: np.dtype(np.float16), tp.bf16: np.dtype(ml_dtypes.bfloat16)}
TOLERANCE = {tp.f32: 1e-5, tp.f16: 2e-3, tp.bf16: 2e-2}
SIZES = [(1, 80, 37), (1, 8, 1), (2, 24, 8), (5, 80, 37), (9, 8, 24), (15, 37, 5), (17, 8, 64), (3, 200, 130)]
"""Rows, what is contracted, columns."""


@tp.program
def products(dtype=tp.f32, weights=None, sizes=SIZES):
    """A product of each size, with the right operand by rows and by columns."""
    for number, (m, k, n) in enumerate(sizes):
        a = tp.input(f"a{number}", dtype[m, k])
        b, c = tp.input(f"b{number}", (weights or dtype)[k, n]), tp.input(f"c{number}", (weights or dtype)[n, k])
        if weights is not None:
            b, c = b.cast(dtype), c.cast(dtype)
        tp.output(f"by_rows{number}", a @ b)
        tp.output(f"by_columns{number}", tp.einsum("mk,nk->mn", a, c))


def drawn(dtype, weights) -> dict[str, np.ndarray]:
    """The operands; f16 and bf16 hold them all."""
    random = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}
    for number, (m, k, n) in enumerate(SIZES):
        for name, shape, kind in (("a", (m, k), dtype), ("b", (k, n), weights), ("c", (n, k), weights)):
            found[f"{name}{number}"] = random.integers(-8, 9, shape).astype(NUMPY[kind]) / NUMPY[kind].type(8)
    return found


@pytest.mark.parametrize(("dtype", "weights"), [(tp.f32, None), (tp.f16, None), (tp.bf16, None), (tp.f32, tp.bf16)])
def test_products_of_every_size(dtype, weights):
    module = lower(module_of(products(dtype=dtype, weights=weights)), "triton-interpret").lowered
    arrays = drawn(dtype, weights or dtype)
    found = run_interpreted(module, arrays, {})
    for number in range(len(SIZES)):
        a, b, c = (arrays[f"{name}{number}"].astype(np.float64) for name in "abc")
        for name, expected in ((f"by_rows{number}", a @ b), (f"by_columns{number}", a @ c.T)):
            error = np.abs(found[name].astype(np.float64) - expected).max()
            assert error <= TOLERANCE[dtype] * max(1, np.abs(expected).max()), (name, SIZES[number], error)


@pytest.mark.parametrize(
    ("size", "dtype", "dot"),
    [
        ((1, 256, 64), tp.bf16, False),  # a vector
        ((2, 256, 64), tp.bf16, True),
        ((15, 37, 5), tp.f16, True),
        ((2, 8, 64), tp.bf16, False),  # too little to contract
        ((17, 8, 64), tp.f16, True),
        ((3, 24, 37), tp.f32, False),  # no tensor core without tf32
        ((64, 64, 64), tp.f32, True),
    ],
)
def test_what_is_a_dot(size, dtype, dot):
    module = lower(module_of(products(dtype=dtype, sizes=[size])), "sm_80").lowered
    for source in kernel_sources(module):
        assert ("tl.dot(" in source.text) is dot
        assert source.tensor_cores is (dot and dtype is not tp.f32)
