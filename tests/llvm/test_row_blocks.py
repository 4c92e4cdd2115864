"""Rows taken block by block in a loop: weights are turned round once, and the next rows are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f32

from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.dialects.tile.shape import DotOp
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.llvm.kernel import lower_kernel
from tempo_ir.lowering.llvm.plan import Plan, Storage
from tempo_ir.lowering.llvm.target import AVX2, AVX512, SSE, Target
from tests.llvm.support import assert_same
from tests.llvm.test_products import narrower
from tests.tile.programs import F32, INDEX, numbers

PROGRAMS = 2


def backward(block: int, depth: int, columns: int) -> KernelOp:
    """
    out = (g @ w.T) * (1 - h * h) and its product with h summed over the rows, `block` rows at a time in turn of two
    programs: what back-propagation through a layer is.
    """
    arguments = {"g": F32, "h": F32, "w": F32, "out": F32, "sums": F32, "rows": INDEX, "trips": INDEX}
    k = KernelBuilder("backward", arguments, grid=[PROGRAMS])
    program = k.program_id(0)
    w = k.load(k.view(k["w"], [columns, depth]), (0, columns), (0, depth))
    g, h, out = (k.view(k[name], [k["rows"], n]) for name, n in (("g", depth), ("h", columns), ("out", columns)))
    with k.loop(0, k["trips"], 1, [k.const(0.0, f32, [columns, columns])]) as loop:
        rows = ((loop.index * PROGRAMS + program) * block, block)
        kept = k.load(h, rows, (0, columns))
        product = k.dot(k.load(g, rows, (0, depth)), w.t, k.const(0.0, f32, [block, columns]))
        product = product * (1.0 - kept * kept)
        k.store(product, out, rows, (0, columns))
        loop.carry(loop.carried[0] + k.dot(kept.t, product, k.const(0.0, f32, [columns, columns])))
    k.store(loop.results[0], k.view(k["sums"], [PROGRAMS, columns, columns]), program, (0, columns), (0, columns))
    return k.finish()


@pytest.mark.parametrize("target", ["widest", "avx2", "sse"])
@pytest.mark.parametrize(
    ("block", "depth", "columns", "rows"),
    [(64, 64, 64, 256), (64, 64, 64, 200), (64, 64, 64, 0), (64, 64, 64, 1), (40, 33, 50, 173), (64, 20, 64, 128)],
)
def test_values(block: int, depth: int, columns: int, rows: int, target: str):
    """Whole blocks, a rest, none, and blocks whose lines are no multiple of the blocks of registers."""
    trips = -(-rows // (block * PROGRAMS))
    arguments = [
        numbers(rows, depth),
        numbers(rows, columns),
        numbers(columns, depth),
        np.zeros((rows, columns), np.float32),
        np.zeros((PROGRAMS, columns, columns), np.float32),
        rows,
        trips,
    ]
    assert_same(backward(block, depth, columns), arguments, (PROGRAMS,), 1e-4, narrower(target))


@pytest.mark.parametrize("target", [AVX512, AVX2, SSE])
def test_weights_of_all_iterations_are_turned_round_once(target: Target):
    kernel = backward(64, 64, 64)
    plan = Plan(kernel, target)
    dot = next(op for op in kernel.walk() if isinstance(op, DotOp))
    assert plan.of(dot.rhs) is Storage.COLUMNS
    assert plan.of(dot.lhs) is Storage.INLINE


def asked(kernel: KernelOp) -> int:
    """How many lines a kernel's text asks for into the nearest cache."""
    lines = lower_kernel(kernel, AVX512).definition.splitlines()
    return sum("@llvm.prefetch" in line and line.endswith("i32 0, i32 3, i32 1)") for line in lines)


def test_products_ask_for_the_rows_of_the_next_iteration():
    """Each block of 8 rows and 2 vectors asks for 16 lines, a sixteenth of 64 rows of 64 columns."""
    found = asked(backward(64, 64, 64))
    assert found > 0
    assert found % 16 == 0


def test_small_products_ask_for_nothing():
    assert asked(backward(16, 16, 16)) == 0


@pytest.mark.parametrize(
    ("columns", "heavy", "asked"), [(200, True, 12), (256, True, 16), (64, True, 0), (256, False, 0)]
)
def test_rows_of_a_launch_are_asked_for(columns: int, heavy: bool, asked: int):
    """Where a launch says which row it is, the row is long, and much is computed of it."""
    k = KernelBuilder("kernel", {"x": F32, "b": F32, "out": F32, "n": INDEX})
    row = k.load(k.view(k["x"], [columns], offset=k["n"]), (0, columns))
    row = row + k.load(k.view(k["b"], [columns]), (0, columns))
    k.store(k.exp(row) if heavy else row * row, k.view(k["out"], [columns]), (0, columns))
    kernel = k.finish()
    assert lower_kernel(kernel, AVX512).definition.count("call void @llvm.prefetch") == asked
    assert_same(kernel, [numbers(3, columns), numbers(columns), np.zeros(columns, np.float32), columns])
