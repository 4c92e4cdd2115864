"""Rows taken block by block in a loop: weights are turned round once, and the next rows are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i64

from tempo_ir.dialects.tile.attributes import PointerType
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


def turned(rows: int, columns: int) -> KernelOp:
    """The sum of x over iterations, stored with its axes swapped."""
    k = KernelBuilder("turned", {"x": F32, "out": F32, "trips": INDEX})
    x = k.view(k["x"], [3, rows, columns])
    with k.loop(0, k["trips"], 1, [k.const(0.0, f32, [rows, columns])]) as loop:
        loop.carry(loop.carried[0] + k.load(x, loop.index, (0, rows), (0, columns)))
    k.store(loop.results[0].t, k.view(k["out"], [columns, rows]), (0, columns), (0, rows))
    return k.finish()


@pytest.mark.parametrize("target", ["widest", "avx2", "sse"])
@pytest.mark.parametrize(("rows", "columns", "trips"), [(64, 64, 3), (37, 19, 3), (64, 64, 1), (64, 64, 0), (5, 64, 2)])
def test_what_a_loop_carried_is_turned_round_in_registers(rows: int, columns: int, trips: int, target: str):
    kernel = turned(rows, columns)
    out = np.full((columns, rows), 7.0, np.float32)
    assert_same(kernel, [numbers(3, rows, columns), out, trips], target=narrower(target))
    if min(rows, columns) >= AVX512.lanes:
        assert "scatter" not in lower_kernel(kernel, AVX512).definition


def asked(kernel: KernelOp) -> int:
    """How many lines a kernel's text asks for into the nearest cache."""
    lines = lower_kernel(kernel, AVX512).definition.splitlines()
    return sum("@llvm.prefetch" in line and line.endswith("i32 0, i32 3, i32 1)") for line in lines)


def test_products_ask_for_the_rows_of_the_next_iteration():
    """Each block of 8 rows and 2 vectors asks for 16 lines, a sixteenth of 64 rows of 64 columns."""
    found = asked(backward(64, 64, 64))
    assert found > 0
    assert found % 16 == 0


def test_products_of_one_block_of_registers_do_not_ask_for_all_of_a_block():
    """Thousands of lines fit no cache near by, and take LLVM half a minute."""
    k = KernelBuilder("wide", {"x": F32, "y": F32, "out": F32})
    with k.loop(0, 4096, 1024, [k.const(0.0, f32, [64, 4])]) as loop:
        x = k.load(k.view(k["x"], [4096, 64]), (loop.index, 1024), (0, 64))
        y = k.load(k.view(k["y"], [4096, 4]), (loop.index, 1024), (0, 4))
        loop.carry(k.dot(x.t, y, loop.carried[0]))
    k.store(loop.results[0], k.view(k["out"], [64, 4]), (0, 64), (0, 4))
    kernel = k.finish()
    assert asked(kernel) == 0
    assert len(lower_kernel(kernel, AVX512).definition.splitlines()) < 1000


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


def test_rows_whose_place_is_computed_are_not_asked_for():
    k = KernelBuilder("kernel", {"x": F32, "places": PointerType(i64), "out": F32, "n": INDEX}, grid=[2])
    place = k.load(k.view(k["places"], [2]), k.program_id(0)).to(INDEX)
    row = k.load(k.view(k["x"], [3, 256], offset=k["n"]), place, (0, 256))
    k.store(k.exp(row), k.view(k["out"], [2, 256]), k.program_id(0), (0, 256))
    kernel = k.finish()
    assert "llvm.prefetch" not in lower_kernel(kernel, AVX512).definition
    assert_same(kernel, [numbers(4, 256), np.array([2, 0]), np.zeros((2, 256), np.float32), 256], (2,))


def rows_found_later(block: int, inner_loop: bool) -> KernelOp:
    """Products of some rows, then other rows, whose place an inner loop counts, or memory has."""
    arguments = {"g": F32, "w": F32, "out": F32, "twice": F32, "places": PointerType(i64), "rows": INDEX}
    k = KernelBuilder("later", arguments)
    w = k.load(k.view(k["w"], [64, 64]), (0, 64), (0, 64))
    g, out, twice = (k.view(k[name], [k["rows"], 64]) for name in ("g", "out", "twice"))
    with k.loop(0, k["rows"] // block, 1) as loop:
        rows = loop.index * block, block
        product = k.dot(k.load(g, rows, (0, 64)), w, k.const(0.0, f32, [block, 64]))
        k.store(product, out, rows, (0, 64))
        if inner_loop:
            with k.loop(0, loop.index, 1, [k.value(0)]) as inner:
                inner.carry(inner.carried[0] + block)
            start = inner.results[0]
        else:
            start = k.load(k.view(k["places"], [k["rows"]]), loop.index).to(INDEX) * block
        k.store(k.load(g, (start + loop.index - loop.index, block), (0, 64)) * 2.0, twice, rows, (0, 64))
        loop.carry()
    return k.finish()


@pytest.mark.parametrize("target", ["widest", "avx2", "sse"])
@pytest.mark.parametrize("inner_loop", [True, False])
def test_rows_whose_place_comes_after_a_product_are_not_asked_for(inner_loop: bool, target: str):
    kernel, rows = rows_found_later(32, inner_loop), 128
    places = np.array([2, 0, 3, 1] + [0] * (rows - 4))
    zeros = np.zeros((rows, 64), np.float32)
    arguments = [numbers(rows, 64), numbers(64, 64), zeros, zeros.copy(), places, rows]
    assert_same(kernel, arguments, (), 1e-4, narrower(target))
    assert asked(kernel) == asked(rows_alone(32))


def rows_alone(block: int) -> KernelOp:
    """The products without the other rows."""
    k = KernelBuilder("alone", {"g": F32, "w": F32, "out": F32, "rows": INDEX})
    w = k.load(k.view(k["w"], [64, 64]), (0, 64), (0, 64))
    g, out = (k.view(k[name], [k["rows"], 64]) for name in ("g", "out"))
    with k.loop(0, k["rows"] // block, 1) as loop:
        rows = loop.index * block, block
        k.store(k.dot(k.load(g, rows, (0, 64)), w, k.const(0.0, f32, [block, 64])), out, rows, (0, 64))
        loop.carry()
    return k.finish()


def summed(rows: int, columns: int) -> KernelOp:
    """The sum over some rows of each of several blocks, as the gradient of a bias is."""
    k = KernelBuilder("summed", {"x": F32, "out": F32, "blocks": INDEX})
    x = k.view(k["x"], [k["blocks"], rows, columns])
    with k.loop(0, k["blocks"], 1, [k.const(0.0, f32, [columns])]) as loop:
        loop.carry(loop.carried[0] + k.reduce("sum", k.load(x, loop.index, (0, rows), (0, columns)), 0))
    k.store(loop.results[0], k.view(k["out"], [columns]), (0, columns))
    return k.finish()


@pytest.mark.parametrize("target", ["widest", "avx2", "sse"])
@pytest.mark.parametrize(("rows", "columns"), [(64, 192), (37, 300), (3, 19), (1, 64), (64, 1)])
@pytest.mark.parametrize("blocks", [0, 1, 3])
def test_rows_that_are_summed(blocks: int, rows: int, columns: int, target: str):
    arguments = [numbers(blocks, rows, columns), np.full(columns, 7.0, np.float32), blocks]
    assert_same(summed(rows, columns), arguments, target=narrower(target))


def test_rows_that_are_summed_are_read_whole():
    """All columns of a row in one loop over the rows, 12 vectors each with its sum; other loops take 4 at a time."""
    lines = lower_kernel(summed(64, 192), AVX512).definition.splitlines()
    body = "".join("L" if "load <16 x float>, ptr %" in line else "|" if line.endswith(":") else "" for line in lines)
    assert max(map(len, body.split("|"))) == 2 * 12
