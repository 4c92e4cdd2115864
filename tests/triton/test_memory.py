"""Views, masks, gathers, scatters and atomics in Triton's interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i32, i64
from xdsl.utils.exceptions import DiagnosticException

from tempo_ir.dialects.tile.attributes import PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.lowering.triton.printer import print_kernel
from tempo_ir.reference.tile import numpy_dtype
from tests.tile import programs
from tests.tile.programs import F32, numbers
from tests.triton.support import assert_same, block_of


@pytest.mark.parametrize("element", [i1, i8, i64, f16, bf16, f32, f64], ids=str)
@pytest.mark.parametrize("start", [-40, -5, 0, 3, 20, 60])
def test_masks_on_both_ends(element, start):
    for size in (0, 1, 16, 50):
        assert_same(*programs.masked_ends(element, start, size, 32))


@pytest.mark.parametrize("rows", [0, 1, 5, 9])
@pytest.mark.parametrize("columns", [0, 3, 16, 40])
def test_masks_on_two_axes(rows, columns):
    assert_same(*programs.masked_axes(rows, columns, 16))


@pytest.mark.parametrize("strides", programs.STRIDES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_strides(strides, dynamic):
    assert_same(*programs.strided(strides, dynamic, 16, 32))


def test_views_of_rank_0_and_3_and_points():
    assert_same(*programs.ranks_and_points(4, 8, 64))


@pytest.mark.parametrize("positions", [i8, i32, i64], ids=str)
@pytest.mark.parametrize("count", [1, 8, 32])
@pytest.mark.parametrize("axis", [0, 1])
def test_gather(positions, count, axis):
    shape = [50, 21]
    k = KernelBuilder("kernel", {"x": F32, "ids": PointerType(positions), "out": F32, "point": F32})
    ids = k.load(k.view(k["ids"], [count]), (0, count))
    view = k.view(k["x"], shape)
    other = shape[1 - axis]
    whole = block_of((other,))[0]
    result = k.gather(view, ids, whole) if axis == 0 else k.gather(view, whole, ids)
    out = [count, other] if axis == 0 else [other, count]
    k.store(result, k.view(k["out"], out), *block_of(tuple(out)))
    point = k.gather(view, ids, 2, other=5.0) if axis == 0 else k.gather(view, 2, ids, other=5.0)
    k.store(point, k.view(k["point"], [count]), (0, count))
    ids_array = np.random.default_rng(2).integers(-3, shape[axis] + 3, count).astype(numpy_dtype(positions))
    arrays = [numbers(*shape), ids_array, np.zeros(out, np.float32), np.zeros(count, np.float32)]
    assert_same(k.finish(), arrays, tolerance=0.0)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("adds", "element"), [(False, f32), (False, bf16), (False, i8), (True, f32), (True, i32)])
def test_scatter(axis, adds, element):
    count, shape = 32, [20, 21]
    pointer = PointerType(element)
    k = KernelBuilder("kernel", {"x": pointer, "ids": PointerType(i32), "out": pointer})
    ids = k.load(k.view(k["ids"], [count]), (0, count))
    block = [count, shape[1]] if axis == 0 else [shape[0], count]
    x = k.load(k.view(k["x"], block), *block_of(tuple(block)))
    places = (ids, (0, 32)) if axis == 0 else ((0, 32), ids)
    (k.scatter_add if adds else k.scatter)(x, k.view(k["out"], shape), *places)
    ids_array = np.random.default_rng(2).integers(-2, shape[axis] + 2, count).astype(np.int32)
    x = np.random.default_rng(3).integers(-4, 5, block).astype(numpy_dtype(element))
    assert_same(k.finish(), [x, ids_array, np.ones(shape, x.dtype)], tolerance=0.0)


@pytest.mark.parametrize("grid", [(), (1,), (3,)])
@pytest.mark.parametrize("element", [f32, f64, i64], ids=str)
def test_atomic_add(grid, element):
    assert_same(*programs.atomic_sum(grid, element, 32), tolerance=0.0)


@pytest.mark.parametrize("element", [bf16, f16, i8], ids=str)
def test_atomic_add_of_narrow_numbers_is_refused(element):
    k = KernelBuilder("kernel", {"out": PointerType(element)}, grid=[4])
    k.atomic_add(k.const(1, element, [8]), k.view(k["out"], [8]), (0, 8))
    with pytest.raises(DiagnosticException, match=r"tile.atomic_add of \w+: GPUs add numbers of 32 and 64 bits"):
        print_kernel(k.finish())


def test_update_in_place():
    """One barrier lies between what is read and what is written."""
    case = programs.adam_step()
    assert_same(*case)
    assert print_kernel(case.kernel).text.count("tl.debug_barrier()") == 1


def test_reads_come_before_later_writes():
    case = programs.overwritten(16)
    assert_same(*case)
    assert print_kernel(case.kernel).text.count("tl.debug_barrier()") == 2


def test_a_ring_written_and_read_in_a_loop_waits_between():
    case = programs.ring(32)
    assert_same(*case)
    assert print_kernel(case.kernel).text.count("tl.debug_barrier()") == 2  # before the reads, and before the write


def test_positions_of_i64_pass_32_bits():
    assert_same(*programs.wide_positions(16))


def test_sizes_past_32_bits_do_not_wrap():
    assert_same(*programs.wide_size(32))


def test_offsets_that_may_pass_32_bits_are_of_64():
    k = KernelBuilder("kernel", {"x": F32, "out": F32})
    view = k.view(k["x"], [4096, 16, 16], [1 << 20, 1 << 28, 1])
    with k.loop(0, 4096, 16) as loop:
        k.store(k.load(view, (loop.index, 16), 0, 0), k.view(k["out"], [4096]), (loop.index, 16))
        k.store(k.load(view, 0, (0, 16), 0), k.view(k["out"], [16]), (0, 16))
        k.store(k.load(view, 0, (0, 4), loop.index), k.view(k["out"], [8]), (0, 4))
        k.store(k.load(view, loop.index, 0, 0), k.view(k["out"], [8]), 0)
    text = print_kernel(k.finish()).text
    assert "x_ptr + offsets_3.to(tl.int64) * 1048576" in text  # 4095 * 2**20
    assert "x_ptr + offsets.to(tl.int64) * 268435456" in text  # 15 * 2**28
    assert "x_ptr + offsets_start + offsets_2 * 268435456" in text  # 4080, and 3 * 2**28
    assert "x_ptr + tl.cast(offsets_start, tl.int64) * 1048576" in text
    assert "out_ptr + offsets_3," in text
