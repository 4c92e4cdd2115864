"""Run a tile kernel natively and in the reference interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.llvm.jit import aligned, compile_kernel
from tempo_ir.lowering.llvm.target import Target
from tempo_ir.reference.tile import run_kernel
from tests.tile.programs import Array, assert_close


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
            assert_close(got, want, tolerance, argument.name_hint or "", 1e-2)
            results.append(got)
    return results
