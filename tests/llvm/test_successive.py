"""What kernels do for the launches before and after: weights read backwards in turn, the next rows asked for, and the
memory that a product is written to."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import UnitAttr, f32

from tempo_ir.dialects.tile.attributes import IntegersAttr
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.dialects.tile.structure import ADVANCES, NEAR, TURNS, KernelOp
from tempo_ir.lowering.llvm.kernel import lower_kernel
from tempo_ir.lowering.llvm.target import AVX512
from tests.llvm.support import assert_same
from tests.llvm.test_products import narrower
from tests.tile.programs import F32, INDEX, numbers


def near_product(rows: int, columns: int, depth: int, programs: int) -> KernelOp:
    """x @ w.T, `columns` a program, of which the last goes past the end, with a turn."""
    k = KernelBuilder("near", {"x": F32, "w": F32, "out": F32, "turn": INDEX}, grid=[programs])
    n, whole = k.program_id(0) * columns, programs * columns - 3
    x = k.load(k.view(k["x"], [rows, depth]), (0, rows), (0, depth))
    w = k.load(k.view(k["w"], [whole, depth]), (n, columns), (0, depth))
    product = k.dot(x, w.t, k.const(0.0, f32, [rows, columns]))
    k.store(product, k.view(k["out"], [rows, whole]), (0, rows), (n, columns))
    kernel = k.finish()
    kernel.attributes[NEAR] = kernel.attributes[TURNS] = UnitAttr()
    return kernel


@pytest.mark.parametrize("target", ["widest", "avx2", "sse"])
@pytest.mark.parametrize(("rows", "columns", "programs"), [(1, 64, 3), (1, 37, 2), (4, 64, 2), (16, 40, 1), (1, 5, 1)])
@pytest.mark.parametrize("turn", [0, 1, 6, 7])
def test_products_that_turn(turn: int, rows: int, columns: int, programs: int, target: str):
    kernel, whole = near_product(rows, columns, 70, programs), programs * columns - 3
    out = np.full((rows, whole), 7.0, np.float32)
    arguments = [numbers(rows, 70), numbers(whole, 70), out, turn]
    assert_same(kernel, arguments, (programs,), target=narrower(target))


def test_programs_and_columns_run_backwards():
    """Where the last argument is odd: both loops count from the end then."""
    kernel = near_product(1, 256, 70, 3)
    turning = lower_kernel(kernel, AVX512).definition
    del kernel.attributes[TURNS]
    forwards = lower_kernel(kernel, AVX512).definition
    assert "and i64 %turn.in, 1" in turning
    assert "turn.in, 1" not in forwards
    assert turning.count("select i1") >= forwards.count("select i1") + 2


def row(columns: int, advances: tuple[int, ...], *, heavy: bool = False) -> KernelOp:
    """x[n] + b written to out[m], with what is known of n and m."""
    k = KernelBuilder("kernel", {"x": F32, "b": F32, "out": F32, "n": INDEX, "m": INDEX})
    loaded = k.load(k.view(k["x"], [columns], offset=k["n"]), (0, columns))
    loaded = loaded + k.load(k.view(k["b"], [columns]), (0, columns))
    k.store(k.exp(loaded) if heavy else loaded, k.view(k["out"], [columns], offset=k["m"]), (0, columns))
    kernel = k.finish()
    if advances:
        kernel.attributes[ADVANCES] = IntegersAttr(advances)
    return kernel


def asked(kernel: KernelOp) -> dict[str, int]:
    """How many lines a kernel's text asks for: to be read, at once or by the next launch, and to be written."""
    lines = [
        line for line in lower_kernel(kernel, AVX512).definition.splitlines() if "call void @llvm.prefetch" in line
    ]
    kinds = {"now": "i32 0, i32 3, i32 1)", "next": "i32 0, i32 2, i32 1)", "written": "i32 1,"}
    return {kind: found for kind, end in kinds.items() if (found := sum(end in line for line in lines))}


@pytest.mark.parametrize(
    ("columns", "advances", "heavy", "expected"),
    [
        (256, (256, 256), False, {"next": 16, "written": 16}),
        (256, (-256, 0), False, {"next": 16}),
        (256, (0, 512), False, {"written": 16}),
        (256, (256,), True, {"now": 16, "next": 16}),
        (256, (), False, {}),
        (64, (64, 64), False, {}),  # short rows are foreseen
        (1 << 12, (1 << 12, 1 << 12), False, {}),  # long ones the processor finds the way through
    ],
)
def test_rows_of_the_next_launch_are_asked_for(
    columns: int, advances: tuple[int, ...], heavy: bool, expected: dict[str, int]
):
    kernel = row(columns, advances, heavy=heavy)
    assert asked(kernel) == expected
    assert_same(kernel, [numbers(3, columns), numbers(columns), np.zeros((2, columns), np.float32), 2 * columns, 0])


@pytest.mark.parametrize(
    ("rows", "advance", "shared", "lines"),
    [
        (64, 4096, False, 2 * 24),  # 256 lines by 11 blocks of registers, of which the last one has fewer rows
        (64, -4096, True, 2 * 6),  # by those of four programs
        (64, 0, False, 0),
        (128, 4096, False, 0),  # as many as push out others
        (16, 4096, False, 16),  # 64 lines by four blocks of 8 rows of 2 vectors
    ],
)
def test_blocks_that_products_of_the_next_launch_read_are_asked_for(rows: int, advance: int, shared: bool, lines: int):
    k = KernelBuilder("product", {"x": F32, "w": F32, "out": F32, "n": INDEX}, grid=[4])
    m, own = k.program_id(0) * 64, k.program_id(0) * rows
    x = k.load(k.view(k["x"], [4 * rows, 64], offset=k["n"]), (0 if shared else own, rows), (0, 64))
    w = k.load(k.view(k["w"], [64, 256]), (0, 64), (m, 64))
    product = k.dot(x, w, k.const(0.0, f32, [rows, 64]))
    k.store(product, k.view(k["out"], [rows, 256]), (0, rows), (m, 64))
    kernel = k.finish()
    kernel.attributes[ADVANCES] = IntegersAttr((advance,))
    assert asked(kernel).get("next", 0) == lines
    assert_same(kernel, [numbers(5 * rows, 64), numbers(64, 256), np.zeros((rows, 256), np.float32), 64 * rows], (4,))


@pytest.mark.parametrize(
    ("rows", "depth", "lines"),
    [
        (64, 64, 2 * 40),  # of blocks of 6 and of 4 rows of 4 vectors, in each version
        (64, 8, 0),  # that is done before they are there
        (1, 64, 0),  # where to read the weights takes the time
    ],
)
def test_memory_that_products_are_written_to_is_asked_for(rows: int, depth: int, lines: int):
    k = KernelBuilder("product", {"x": F32, "w": F32, "out": F32, "rows": INDEX}, grid=[None])
    m = k.program_id(0) * rows
    x = k.load(k.view(k["x"], [k["rows"], depth]), (m, rows), (0, depth))
    w = k.load(k.view(k["w"], [depth, 64]), (0, depth), (0, 64))
    product = k.dot(x, w, k.const(0.0, f32, [rows, 64]))
    k.store(product, k.view(k["out"], [k["rows"], 64]), (m, rows), (0, 64))
    kernel = k.finish()
    assert asked(kernel).get("written", 0) == lines
    for count in (rows - 1, rows, 2 * rows + 1):
        arguments = [numbers(count, depth), numbers(depth, 64), np.zeros((count, 64), np.float32), count]
        assert_same(kernel, arguments, (-(-count // rows),))
