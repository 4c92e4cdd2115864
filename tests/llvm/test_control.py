"""Loops with carried values, branches, grids and scalars, against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f32, f64, i1, i32, i64

from tempo_ir.dialects.tile.attributes import INDEX
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.lowering.llvm.engine import compile_object, host_target, load_object
from tempo_ir.lowering.llvm.jit import compile_kernel
from tempo_ir.lowering.llvm.kernel import lower_kernel, module_text
from tempo_ir.lowering.llvm.target import AVX512
from tests.llvm.support import assert_same
from tests.tile import programs
from tests.tile.programs import F32, numbers


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_carried_tiles_are_exchanged_at_once(trips):
    assert_same(*programs.carried_tiles(trips, 20))


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_a_carried_tile_read_across_its_axes(trips):
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "n": INDEX})
    x = k.load(k.view(k["x"], [17, 17]), (0, 17), (0, 17))
    with k.loop(0, k["n"], 1, [x]) as loop:
        h = loop.carried[0]
        loop.carry(h.t * 0.5 + k.reduce("sum", h, 0)[None, :] * 0.01)
    k.store(loop.results[0], k.view(k["out"], [17, 17]), (0, 17), (0, 17))
    assert_same(k.finish(), [numbers(17, 17), np.zeros((17, 17), np.float32), trips])


def test_carried_scalars_of_every_sort():
    for trips in (0, 1, 5):
        assert_same(*programs.carried_scalars(trips))


def test_nested_loops_with_bounds_from_each_other():
    assert_same(*programs.nested_loops(3, 20))


@pytest.mark.parametrize("low", [0, 2, 7])
@pytest.mark.parametrize("high", [0, 5, 8, 9, 23])
def test_loop_ranges(low, high):
    assert_same(*programs.loop_range(low, high))


def test_a_length_read_from_memory():
    for length in (1, 16, 37):
        assert_same(*programs.length_from_memory(length))


@pytest.mark.parametrize("n", [-1, 3, 10])
def test_branches(n):
    assert_same(*programs.branches(n, 37))


@pytest.mark.parametrize("op", programs.INDEX_OPS)
@pytest.mark.parametrize(("a", "b"), programs.INDICES)
def test_index_arithmetic(op, a, b):
    assert_same(*programs.index_arithmetic(op, a, b))


def test_scalar_arguments():
    types = {"out": F32, "rate": f32, "flag": i1, "small": i32, "half": bf16}
    k = KernelBuilder("kernel", types)
    value = k.select(k["flag"], k["rate"] * 2.0, k["small"].to(f32)) + k["half"].to(f32)
    k.store(value.broadcast(5), k.view(k["out"], [5]), (0, 5))
    for flag in (0, 1):
        assert_same(k.finish(), [np.zeros(5, np.float32), 1.25, flag, -3, 0.5])


def test_a_grid_in_parts_and_two_kernels_in_one_module():
    kernels = []
    for name, factor in (("double", 2.0), ("triple", 3.0)):
        k = KernelBuilder(name, {"x": F32, "out": F32}, grid=[3, 2])
        at = k.program_id(1), (k.program_id(0) * 7, 7)
        k.store(k.load(k.view(k["x"], [2, 21]), *at) * factor, k.view(k["out"], [2, 21]), *at)
        kernels.append(k.finish())
    target = host_target()
    codes = [lower_kernel(kernel, target) for kernel in kernels]
    library = load_object(compile_object(module_text(codes, target), target), target)
    x = numbers(2, 21)
    for code, factor in zip(codes, (2.0, 3.0), strict=True):
        out = np.zeros_like(x)
        one = compile_kernel(kernels[codes.index(code)])
        _, values = one.prepare(x, out, grid=(3, 2))
        import ctypes

        kinds = [ctypes.c_void_p if kind == "ptr" else ctypes.c_int64 for _, kind in code.parameters]
        function = library.function(code.name, *kinds)
        function(*values[:2], 1, 3, 0, 2, None)
        assert (out[:, :7] == 0).all()
        np.testing.assert_array_equal(out[:, 7:], (x * np.float32(factor))[:, 7:])


def test_a_long_chain_of_ops():
    k = KernelBuilder("kernel", {"x": F32, "out": F32})
    x = k.load(k.view(k["x"], [37]), (0, 37))
    for i in range(400):
        x = x + k.minimum(x, float(i)) * 1e-3
    k.store(x, k.view(k["out"], [37]), (0, 37))
    assert_same(k.finish(), [numbers(37), np.zeros(37, np.float32)])


def test_numbers_that_take_long_are_computed_once_for_all_programs():
    """The power stands before the loop over programs; a sum, which is no work, need not."""
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "rate": f64, "n": INDEX, "rows": INDEX}, grid=[None])
    at = (k.program_id(0) * 16, 16)
    scale = (1.0 - k["rate"] ** k["n"].to(i64).to(f64)).to(f32)
    x = k.load(k.view(k["x"], [k["rows"]]), at)
    k.store(x * scale, k.view(k["out"], [k["rows"]]), at)
    kernel = k.finish()
    text = lower_kernel(kernel, AVX512).definition
    assert text.index("pow") < text.index("= phi i64")
    for rows in (0, 5, 16, 37):
        assert_same(kernel, [numbers(rows), np.zeros(rows, np.float32), 0.5, 3, rows], (-(-rows // 16),))
