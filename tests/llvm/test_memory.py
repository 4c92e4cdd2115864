"""Views, masks, gathers, scatters, atomics and memory that is written while it is read, against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i32, i64

from tempo_ir.dialects.tile.attributes import IntegersAttr, PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.dialects.tile.structure import SHARES
from tempo_ir.lowering.llvm.errors import UnsupportedKernel
from tempo_ir.lowering.llvm.jit import aligned, compile_kernel
from tempo_ir.lowering.llvm.kernel import lower_kernel
from tempo_ir.reference.tile import numpy_dtype
from tests.llvm.support import assert_same
from tests.tile import programs
from tests.tile.programs import F32, numbers


@pytest.mark.parametrize("element", [i1, i8, i64, f16, bf16, f32, f64], ids=str)
@pytest.mark.parametrize("start", [-40, -5, 0, 3, 20, 60])
def test_masks_on_both_ends(element, start):
    for size in (0, 1, 16, 50):
        assert_same(*programs.masked_ends(element, start, size, 37))


@pytest.mark.parametrize("source", [i8, i32, i64, f32], ids=str)
@pytest.mark.parametrize("element", [i1, i8, i32, bf16, f16], ids=str)
@pytest.mark.parametrize("start", [-16, -8, 0, 15, 16])
def test_a_store_of_one_lane_leaves_its_neighbours(element, source, start):
    """LLVM 22 stores one lane of a truncated vector in the wide type (llvm/llvm-project#179489)."""
    k = KernelBuilder("kernel", {"x": PointerType(source), "out": PointerType(element)})
    block = k.load(k.view(k["x"], [17]), (0, 17))
    k.store(block if element == source else block.to(element), k.view(k["out"], [17]), (start, 17))
    x = np.arange(1, 18).astype(numpy_dtype(source))
    assert_same(k.finish(), [x, np.ones(40, numpy_dtype(element))])


@pytest.mark.parametrize("rows", [0, 1, 5, 9, 100])
@pytest.mark.parametrize("columns", [0, 3, 16, 40])
def test_masks_on_two_axes(rows, columns):
    assert_same(*programs.masked_axes(rows, columns, 20))


@pytest.mark.parametrize("strides", programs.STRIDES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_strides(strides, dynamic):
    assert_same(*programs.strided(strides, dynamic, 9, 21))


def test_strided_store():
    k = KernelBuilder("kernel", {"x": F32, "out": F32})
    x = k.load(k.view(k["x"], [9, 21]), (0, 9), (0, 21))
    k.store(x, k.view(k["out"], [9, 21], [2, 18]), (0, 9), (0, 21))
    assert_same(k.finish(), [numbers(9, 21), np.zeros(9 * 42, np.float32)])


def test_views_of_rank_0_and_3_and_points():
    assert_same(*programs.ranks_and_points(3, 5, 40))


@pytest.mark.parametrize("positions", [i8, i32, i64], ids=str)
@pytest.mark.parametrize("count", [1, 7, 40])
@pytest.mark.parametrize("axis", [0, 1])
def test_gather(positions, count, axis):
    shape = [50, 21]
    k = KernelBuilder("kernel", {"x": F32, "ids": PointerType(positions), "out": F32, "point": F32})
    ids = k.load(k.view(k["ids"], [count]), (0, count))
    view = k.view(k["x"], shape)
    other = shape[1 - axis]
    result = k.gather(view, ids, (0, other)) if axis == 0 else k.gather(view, (0, other), ids)
    out = [count, other] if axis == 0 else [other, count]
    k.store(result, k.view(k["out"], out), *((0, n) for n in out))
    point = k.gather(view, ids, 2, other=5.0) if axis == 0 else k.gather(view, 2, ids, other=5.0)
    k.store(point, k.view(k["point"], [count]), (0, count))
    ids_array = np.random.default_rng(2).integers(-3, shape[axis] + 3, count).astype(numpy_dtype(positions))
    arrays = [numbers(*shape), ids_array, np.zeros(out, np.float32), np.zeros(count, np.float32)]
    assert_same(k.finish(), arrays, tolerance=0.0)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("element", [f32, bf16, i32], ids=str)
def test_scatter(axis, adds, element):
    count, shape = 37, [20, 21]
    pointer = PointerType(element)
    k = KernelBuilder("kernel", {"x": pointer, "ids": PointerType(i32), "out": pointer})
    ids = k.load(k.view(k["ids"], [count]), (0, count))
    block = [count, shape[1]] if axis == 0 else [shape[0], count]
    x = k.load(k.view(k["x"], block), *((0, n) for n in block))
    places = (ids, (0, shape[1])) if axis == 0 else ((0, shape[0]), ids)
    (k.scatter_add if adds else k.scatter)(x, k.view(k["out"], shape), *places)
    ids_array = np.random.default_rng(2).integers(-2, shape[axis] + 2, count).astype(np.int32)
    x = np.random.default_rng(3).integers(-4, 5, block).astype(numpy_dtype(element))
    assert_same(k.finish(), [x, ids_array, np.ones(shape, x.dtype)], tolerance=0.0)


@pytest.mark.parametrize("grid", [(), (1,), (3,)])
@pytest.mark.parametrize("element", [f32, f64, i64], ids=str)
def test_atomic_add(grid, element):
    assert_same(*programs.atomic_sum(grid, element, 37), tolerance=0.0)


def test_concurrent_atomic_add_of_bfloats_is_refused():
    k = KernelBuilder("kernel", {"out": PointerType(bf16)}, grid=[4])
    k.atomic_add(k.const(1.0, bf16, [8]), k.view(k["out"], [8]), (0, 8))
    with pytest.raises(UnsupportedKernel, match="adding to bf16 in memory from several programs; use f32 memory"):
        lower_kernel(k.finish())


def test_update_in_place():
    case = programs.adam_step()
    assert_same(*case)
    assert "llvm.masked" in lower_kernel(case.kernel).definition


def test_reads_come_before_later_writes():
    assert_same(*programs.overwritten(40))


def test_shift_in_place():
    k = KernelBuilder("kernel", {"x": F32})
    view = k.view(k["x"], [100])
    k.store(k.load(view, (0, 90)) + 1.0, view, (5, 90))
    assert_same(k.finish(), [numbers(100)])


def test_a_sum_over_what_is_then_overwritten():
    k = KernelBuilder("kernel", {"x": F32})
    view = k.view(k["x"], [8, 40])
    x = k.load(view, (0, 8), (0, 40))
    k.store(x - k.reduce("max", x, 1)[:, None], view, (0, 8), (0, 40))
    assert_same(k.finish(), [numbers(8, 40)])


def test_what_a_pointer_shares_with_another_is_read_before_that_is_written():
    k = KernelBuilder("kernel", {"x": F32, "x_next": F32, "y": F32, "more": F32})
    x = k.load(k.view(k["x"], [40]), (0, 40)) * 0.5
    k.store(x, k.view(k["x_next"], [40]), (0, 40))
    k.store(k.load(k.view(k["more"], [40]), (0, 40)) + x, k.view(k["y"], [40]), (0, 40))
    kernel = k.finish()
    kernel.attributes[SHARES] = IntegersAttr((0, 1))
    given, more = numbers(40), numbers(2, 40)[1]
    x, y = aligned(given), aligned(np.zeros(40, np.float32))
    compile_kernel(kernel)(x, x, y, aligned(more))
    np.testing.assert_array_equal(x, given * np.float32(0.5))
    np.testing.assert_array_equal(y, more + x)


def test_ring_written_and_read_in_a_loop():
    assert_same(*programs.ring(21))


def test_large_tiles_use_the_arena():
    k = KernelBuilder("kernel", {"x": F32, "out": F32})
    x = k.exp(k.load(k.view(k["x"], [128, 200]), (0, 128), (0, 200)))
    k.store(x - k.reduce("sum", x, 1)[:, None], k.view(k["out"], [128, 200]), (0, 128), (0, 200))
    kernel = k.finish()
    assert lower_kernel(kernel).scratch_bytes >= 128 * 200 * 4
    assert_same(kernel, [numbers(128, 200), np.zeros((128, 200), np.float32)])


def test_positions_of_i64_pass_32_bits():
    assert_same(*programs.wide_positions(20))


def test_sizes_past_32_bits_do_not_wrap():
    assert_same(*programs.wide_size(37))
