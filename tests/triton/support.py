"""Run a tile kernel in Triton's interpreter and in the reference interpreter; a program for its driver."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import tempo_ir as tp
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.triton.interpreter import run_interpreted_kernel
from tempo_ir.lowering.triton.printer import print_kernel
from tempo_ir.lowering.triton.style import Style
from tempo_ir.reference.tile import run_kernel
from tests.tile.programs import Array, assert_close

CHECKED = Style(checked=True)


def assert_same(
    kernel: KernelOp, arguments: Sequence[Array | int | float], grid: Sequence[int] = (), tolerance: float = 1e-5
) -> list[Array]:
    """
    Both ways of running the kernel write the same into its arrays: integers and bools equal, floats within `tolerance`
    relative to the largest finite value (NaN and infinities in the same places). Gives Triton's results.
    """
    expected = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
    run_kernel(kernel, expected, grid)
    source = print_kernel(kernel, CHECKED)
    actual = run_interpreted_kernel(source.alone, source.name, arguments, grid)
    results: list[Array] = []
    for got, want in zip(actual, expected, strict=True):
        if isinstance(got, np.ndarray) and isinstance(want, np.ndarray):
            assert_close(got, want, tolerance)
            results.append(got)
    return results


def block_of(shape: Sequence[int]) -> list[tuple[int, int]]:
    """Places for all of an array, in blocks of powers of two."""
    return [(0, 1 << (extent - 1).bit_length()) for extent in shape]


@tp.program
def walk(n=4):
    """A recurrence, a loop that runs backwards, a window of a ring, draws."""
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[n], over=t)
    h = tp.tensor("h", tp.f32[n], over=t)
    h[0] = x[0]
    h[t] = h[t - 1] * 0.5 + x[t]
    back = tp.tensor("back", tp.f32[n], over=t)
    back[T - 1] = h[T - 1]
    back[t] = back[t + 1] * 0.25 + h[t] + tp.random.uniform(0.0, 1.0, tp.f32[n], over=t)
    tp.output("back", back)
    tp.output("window", tp.sum(h[tp.maximum(0, t - 2) : t + 1], axis=0))
