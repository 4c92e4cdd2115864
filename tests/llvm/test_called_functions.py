"""Elementary functions of which a kernel has many: written once and called, with the results that they have inline."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, f64

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.llvm.elementwise import CALLED_FROM
from tempo_ir.lowering.llvm.engine import host_target
from tempo_ir.lowering.llvm.jit import aligned, compile_kernel
from tempo_ir.lowering.llvm.kernel import lower_kernel, module_text
from tempo_ir.lowering.llvm.target import AVX2, AVX512, NEON, SSE, Target
from tests.llvm.support import assert_same

FUNCTIONS = (ew.ExpOp, ew.LogOp, ew.Log1pOp, ew.TanhOp, ew.SigmoidOp, ew.ErfOp, ew.SinOp, ew.CosOp, ew.RsqrtOp)


def chain(
    function: type[ew.UnaryOp], count: int, rows: int, columns: int, element=f32, name: str = "chain"
) -> KernelOp:
    """`count` times the function of what the one before gave, and the sum of all."""
    pointer = PointerType(element)
    k = KernelBuilder(name, {"x": pointer, "out": pointer})
    value = total = k.load(k.view(k["x"], [rows, columns]), (0, rows), (0, columns))
    for _ in range(count):
        value = k.apply(function, value * 0.75 + 0.5)
        total = total + value
    k.store(total, k.view(k["out"], [rows, columns]), (0, rows), (0, columns))
    return k.finish()


def for_this_machine(target: Target | None) -> Target:
    host = host_target()
    return host if target is None or target.lanes > host.lanes else target


def results(kernel: KernelOp, x: np.ndarray, target: Target) -> np.ndarray:
    out = aligned(np.zeros_like(x))
    compile_kernel(kernel, target)(aligned(x), out)
    return out


@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_are_those_of_the_reference(function: type[ew.UnaryOp]):
    x = np.random.default_rng(0).uniform(0.1, 2.0, (3, 70)).astype(np.float32)
    kernel = chain(function, CALLED_FROM, 3, 70)
    assert "call { <16 x float>, <16 x float>" in lower_kernel(kernel, AVX512).definition
    assert_same(kernel, [x, np.zeros_like(x)], tolerance=1e-4)


@pytest.mark.parametrize("target", [None, AVX2, SSE], ids=["host", "avx2", "sse"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (1, 64), (2, 77), (5, 33)])
def test_calls_change_no_bit(monkeypatch: pytest.MonkeyPatch, target: Target | None, shape: tuple[int, int]):
    """Of numbers, infinities and NaN, whatever is left over at the end of a row."""
    machine = for_this_machine(target)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    special = np.array([np.nan, np.inf, -np.inf, 0.0], np.float32)[: x.size]
    x.flat[: special.size] = special
    called = results(chain(ew.TanhOp, 12, *shape), x, machine)
    monkeypatch.setattr("tempo_ir.lowering.llvm.elementwise.CALLED_FROM", 1000)
    written = chain(ew.TanhOp, 12, *shape)
    assert "call {" not in lower_kernel(written, machine).definition
    np.testing.assert_array_equal(called.view(np.int32), results(written, x, machine).view(np.int32))


@pytest.mark.parametrize("target", [AVX512, AVX2, SSE, NEON], ids=["avx512", "avx2", "sse", "neon"])
def test_kernels_of_a_module_share_a_function(target: Target):
    codes = [lower_kernel(chain(ew.TanhOp, 30, 4, 64, name=name), target) for name in ("first", "second")]
    text = module_text(codes, target)
    assert text.count("define internal") == len({name for code in codes for name, _ in code.shared_functions})
    assert text.count("fdiv") == sum(int(name.rpartition(".")[2]) for name, _ in codes[0].shared_functions)


@pytest.mark.parametrize(("count", "element"), [(CALLED_FROM - 1, f32), (30, f64)])
def test_what_is_written_out(count: int, element):
    """Few of a function, and those of doubles, which the C library has."""
    assert not lower_kernel(chain(ew.TanhOp, count, 4, 64, element), AVX512).shared_functions
