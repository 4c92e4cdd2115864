"""Numbers of 16 bits on processors with instructions for them and without: the same bits as numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f16, f32, f64
from xdsl.ir import Attribute

from tempo_ir.dialects.tile.attributes import PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.llvm.jit import aligned, compile_kernel
from tests.llvm.test_products import narrower

BLOCK = 1000
TARGETS = ["widest", "avx2", "sse"]


def cast(source: Attribute, result: Attribute, count: int) -> KernelOp:
    """Blocks of whole vectors and a rest."""
    k = KernelBuilder("cast", {"x": PointerType(source), "out": PointerType(result)}, grid=[-(-count // BLOCK)])
    block = k.program_id(0) * BLOCK, BLOCK
    k.store(k.load(k.view(k["x"], [count]), block).to(result), k.view(k["out"], [count]), block)
    return k.finish()


def native(kernel: KernelOp, x: np.ndarray, dtype: type, target: str) -> np.ndarray:
    out = aligned(np.zeros(x.size, dtype))
    compile_kernel(kernel, narrower(target))(aligned(x), out, grid=(-(-x.size // BLOCK),))
    return out


HALVES = np.arange(1 << 16).astype(np.uint16).view(np.float16)


@pytest.mark.parametrize("target", TARGETS)
def test_all_halves_as_floats(target: str):
    np.testing.assert_array_equal(
        native(cast(f16, f32, 1 << 16), HALVES, np.float32, target), HALVES.astype(np.float32)
    )


@pytest.mark.parametrize("target", TARGETS)
def test_floats_as_the_nearest_halves(target: str):
    """Halves, what is exactly between two and next to it, subnormal ones, too large ones, infinities and NaN."""
    halves = HALVES.astype(np.float32)
    halves = np.sort(halves[np.isfinite(halves)])
    between = (halves[1:] + halves[:-1]) / 2
    special = np.array([65519.99, 65520, -65520, 1e10, 1e-10, -0.0, np.inf, -np.inf, np.nan], np.float32)
    x = np.concatenate([halves, between, np.nextafter(between, 0), np.nextafter(between, between * 2), special])
    x = x.astype(np.float32)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    out = native(cast(f32, f16, x.size), x, np.float16, target)
    np.testing.assert_array_equal(out, expected)
    numbers = ~np.isnan(x)
    np.testing.assert_array_equal(np.signbit(out[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("target", TARGETS)
def test_doubles_are_rounded_once(target: str):
    """What is so near to the middle of two halves that the nearest float is the middle."""
    halves = HALVES.astype(np.float64)
    halves = np.sort(halves[np.isfinite(halves)])
    between = (halves[1:] + halves[:-1]) / 2
    near = [between * (1 + sign * 2.0**-power) for sign in (-1, 1) for power in (26, 40, 52)]
    special = np.array(
        [65519.999999, 65520, 1e300, -1e300, 1e-300, 2.0**-25, 2.0**-25 * (1 + 2.0**-40), np.inf, np.nan]
    )
    x = np.concatenate([halves, between, *near, special])
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    np.testing.assert_array_equal(native(cast(f64, f16, x.size), x, np.float16, target), expected)
