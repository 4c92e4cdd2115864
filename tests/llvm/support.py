"""Run a tile kernel natively and in the reference interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.llvm.jit import aligned, compile_kernel
from tempo_ir.lowering.llvm.target import Target
from tempo_ir.reference.tile import run_kernel

Array = np.ndarray[Any, Any]


def assert_same(
    kernel: KernelOp,
    arguments: Sequence[Array | int | float],
    grid: Sequence[int] = (),
    tolerance: float = 1e-5,
    target: Target | None = None,
) -> list[Array]:
    """
    Both ways of running the kernel write the same into its arrays: integers and bools equal, floats within `tolerance`
    relative to the largest finite value (NaN and infinities in the same places). Gives the native results.
    """
    expected = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
    run_kernel(kernel, expected, grid)
    actual = [aligned(x) if isinstance(x, np.ndarray) else x for x in arguments]
    compile_kernel(kernel, target)(*actual, grid=grid)
    results: list[Array] = []
    for argument, got, want in zip(kernel.body.block.args, actual, expected, strict=True):
        if isinstance(got, np.ndarray) and isinstance(want, np.ndarray):
            assert_close(got, want, tolerance, argument.name_hint or "")
            results.append(got)
    return results


def assert_close(got: Array, want: Array, tolerance: float, name: str) -> None:
    """As `assert_same` says."""
    if want.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want, name)
        return
    wide_got, wide_want = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(wide_want)
    np.testing.assert_array_equal(wide_got[~finite], wide_want[~finite], name)
    scale = np.abs(wide_want[finite]).max(initial=1e-2)
    error = np.abs(wide_got[finite] - wide_want[finite]).max(initial=0.0) / scale
    assert error <= tolerance, f"{name}: error {error:.1e} of the largest value {scale:.3g}"
