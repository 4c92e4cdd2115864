"""Views, masks, gathers, scatters and atomics in Triton's interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i32, i64
from xdsl.utils.exceptions import DiagnosticException

from tempo_ir.dialects.tile.attributes import INDEX, PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.lowering.triton.printer import print_kernel
from tempo_ir.reference.tile import numpy_dtype
from tests.triton.support import assert_same, block_of

F32 = PointerType(f32)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("element", [i1, i8, i64, f16, bf16, f32, f64], ids=str)
@pytest.mark.parametrize("start", [-40, -5, 0, 3, 20, 60])
def test_masks_on_both_ends(element, start):
    pointer = PointerType(element)
    k = KernelBuilder("kernel", {"x": pointer, "out": pointer, "back": pointer, "start": INDEX, "size": INDEX})
    block = k.load(k.view(k["x"], [k["size"]]), (k["start"], 32), other=1)
    k.store(block, k.view(k["out"], [32]), (0, 32))
    k.store(block, k.view(k["back"], [k["size"]]), (k["start"], 32))
    x = (numbers(50) * 3).astype(numpy_dtype(element))
    for size in (0, 1, 16, 50):
        assert_same(k.finish(), [x, np.zeros(32, x.dtype), np.zeros(50, x.dtype), start, size])


@pytest.mark.parametrize("rows", [0, 1, 5, 9])
@pytest.mark.parametrize("columns", [0, 3, 16, 40])
def test_masks_on_two_axes(rows, columns):
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "rows": INDEX, "columns": INDEX}, grid=[None, None])
    view, out = (k.view(k[name], [k["rows"], k["columns"]]) for name in ("x", "out"))
    at = (k.program_id(0) * 4, 4), (k.program_id(1) * 16, 16)
    k.store(k.load(view, *at) * 2.0, out, *at)
    x = numbers(rows, columns)
    assert_same(k.finish(), [x, np.zeros_like(x), rows, columns], grid=(-(-rows // 4) + 1, -(-columns // 16) + 1))


@pytest.mark.parametrize("strides", [(40, 1), (1, 40), (3, 41), (0, 1), (1, 0), (-1, -40), (80, 2)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_strides(strides, dynamic):
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "s0": INDEX, "s1": INDEX, "offset": INDEX})
    steps = [k["s0"], k["s1"]] if dynamic else list(strides)
    x = k.load(k.view(k["x"], [9, 21], steps, k["offset"]), (0, 16), (0, 32))
    k.store(x + 1.0, k.view(k["out"], [9, 21]), (0, 16), (0, 32))
    assert_same(k.finish(), [numbers(4000), np.zeros((9, 21), np.float32), *strides, 2000])


def test_views_of_rank_0_and_3_and_points():
    k = KernelBuilder("kernel", {"x": F32, "scale": F32, "out": F32, "i": INDEX})
    scale = k.load(k.view(k["scale"], []))
    view, out = (k.view(k[name], [3, 5, 40]) for name in ("x", "out"))
    k.store(k.load(view, k["i"], (0, 8), (0, 64)) * scale, out, k["i"], (0, 8), (0, 64))
    k.store(k.load(view, (0, 4), k["i"], (0, 64)) * scale, out, (0, 4), k["i"], (0, 64))
    k.store(k.load(view, 0, 0, k["i"]), out, 0, 0, k["i"])
    k.store(k.load(view, (0, 4), (0, 8), k["i"]), out, (0, 4), (0, 8), k["i"] + 1)
    assert_same(k.finish(), [numbers(3, 5, 40), numbers(1), np.zeros((3, 5, 40), np.float32), 2])


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
    pointer = PointerType(element)
    k = KernelBuilder("kernel", {"x": pointer, "out": pointer, "size": INDEX}, grid=list(grid))
    view = k.view(k["x"], [k["size"]])
    k.atomic_add(k.load(view, (0, 32)) * 3, k.view(k["out"], [k["size"]]), (0, 32))
    x = np.arange(30).astype(numpy_dtype(element))
    assert_same(k.finish(), [x, np.ones_like(x), 30], grid, tolerance=0.0)


@pytest.mark.parametrize("element", [bf16, f16, i8], ids=str)
def test_atomic_add_of_narrow_numbers_is_refused(element):
    k = KernelBuilder("kernel", {"out": PointerType(element)}, grid=[4])
    k.atomic_add(k.const(1, element, [8]), k.view(k["out"], [8]), (0, 8))
    with pytest.raises(DiagnosticException, match=r"tile.atomic_add of \w+: GPUs add numbers of 32 and 64 bits"):
        print_kernel(k.finish())


def test_update_in_place():
    """Adam's step: three buffers read and written at the same block; one barrier lies between."""
    k = KernelBuilder("kernel", {"w": F32, "m": F32, "v": F32, "g": F32, "n": INDEX}, grid=[None])
    at = (k.program_id(0) * 64, 64)
    views = {name: k.view(k[name], [k["n"]]) for name in "wmvg"}
    w, m, v, g = (k.load(views[name], at) for name in "wmvg")
    m, v = m * 0.9 + g * 0.1, v * 0.99 + g * g * 0.01
    k.store(m, views["m"], at)
    k.store(v, views["v"], at)
    k.store(w - m / (k.sqrt(v) + 1e-8) * 0.001, views["w"], at)
    kernel = k.finish()
    assert_same(kernel, [numbers(150), numbers(150), numbers(150) ** 2, numbers(150), 150], grid=(3,))
    assert print_kernel(kernel).text.count("tl.debug_barrier()") == 1


def test_reads_come_before_later_writes():
    k = KernelBuilder("kernel", {"x": F32, "out": F32})
    view, out = k.view(k["x"], [16, 16]), k.view(k["out"], [16, 16])
    before = k.load(view, (0, 16), (0, 16))
    k.store(before.t * 2.0, view, (0, 16), (0, 16))
    after = k.load(view, (0, 16), (0, 16))
    k.store(before + after, out, (0, 16), (0, 16))
    kernel = k.finish()
    assert_same(kernel, [numbers(16, 16), np.zeros((16, 16), np.float32)])
    assert print_kernel(kernel).text.count("tl.debug_barrier()") == 2


def test_a_ring_written_and_read_in_a_loop_waits_between():
    k = KernelBuilder("kernel", {"ring": F32, "out": F32, "steps": INDEX})
    ring, out = k.view(k["ring"], [4, 21]), k.view(k["out"], [k["steps"], 21])
    with k.loop(0, k["steps"]) as loop:
        slot = loop.index % 4
        window = k.load(ring, (0, 4), (0, 32))
        k.store(k.reduce("sum", window, 0), out, loop.index, (0, 32))
        k.store(k.load(ring, slot, (0, 32)) * 0.5 + 1.0, ring, slot, (0, 32))
    kernel = k.finish()
    assert_same(kernel, [numbers(4, 21), np.zeros((10, 21), np.float32), 10])
    assert print_kernel(kernel).text.count("tl.debug_barrier()") == 2  # before the reads, and before the write


def test_positions_of_i64_pass_32_bits():
    k = KernelBuilder("kernel", {"x": F32, "ids": PointerType(i64), "out": F32})
    ids = k.load(k.view(k["ids"], [16]), (0, 16))
    k.store(k.gather(k.view(k["x"], [20]), ids, other=-1.0), k.view(k["out"], [16]), (0, 16))
    ids_array = np.array([1 << 33, (1 << 32) + 3, -(1 << 32) + 5, 5] * 4)
    assert_same(k.finish(), [numbers(20), ids_array, np.zeros(16, np.float32)])


def test_sizes_past_32_bits_do_not_wrap():
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "size": INDEX})
    k.store(k.load(k.view(k["x"], [k["size"]]), (0, 32)), k.view(k["out"], [32]), (0, 32))
    assert_same(k.finish(), [numbers(40), np.zeros(32, np.float32), (1 << 32) + 5])


def test_offsets_that_may_pass_32_bits_are_of_64():
    k = KernelBuilder("kernel", {"x": F32, "out": F32})
    view = k.view(k["x"], [4096, 8, 16], [1 << 20, 1 << 28, 1])
    with k.loop(0, 4096, 16) as loop:
        k.store(k.load(view, (loop.index, 16), 0, 0), k.view(k["out"], [4096]), (loop.index, 16))
        k.store(k.load(view, 0, (0, 8), 0), k.view(k["out"], [8]), (0, 8))
        k.store(k.load(view, 0, (0, 4), loop.index), k.view(k["out"], [8]), (0, 4))
    text = print_kernel(k.finish()).text
    assert "x_ptr + tl.cast(i, tl.int64) * 1048576 + range_16 * 1048576" in text  # 4095 * 2**20
    assert "x_ptr + range_8.to(tl.int64) * 268435456" in text  # 8 * 2**28
    assert "x_ptr + i + range_4 * 268435456" in text  # 4080 + 3 * 2**28
    assert "out_ptr + i + range_16," in text
