"""Views, masks, gathers, scatters, atomics and memory that is written while it is read, against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i32, i64

from tempo_ir.dialects.tile.attributes import INDEX, PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.lowering.llvm.errors import UnsupportedKernel
from tempo_ir.lowering.llvm.kernel import lower_kernel
from tempo_ir.reference.tile import numpy_dtype
from tests.llvm.support import assert_same

F32 = PointerType(f32)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("element", [i1, i8, i64, f16, bf16, f32, f64], ids=str)
@pytest.mark.parametrize("start", [-40, -5, 0, 3, 20, 60])
def test_masks_on_both_ends(element, start):
    pointer = PointerType(element)
    k = KernelBuilder("kernel", {"x": pointer, "out": pointer, "back": pointer, "start": INDEX, "size": INDEX})
    block = k.load(k.view(k["x"], [k["size"]]), (k["start"], 37), other=1)
    k.store(block, k.view(k["out"], [37]), (0, 37))
    k.store(block, k.view(k["back"], [k["size"]]), (k["start"], 37))
    x = (numbers(50) * 3).astype(numpy_dtype(element))
    for size in (0, 1, 16, 50):
        assert_same(k.finish(), [x, np.zeros(37, x.dtype), np.zeros(50, x.dtype), start, size])


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
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "rows": INDEX, "columns": INDEX}, grid=[None, None])
    view, out = (k.view(k[name], [k["rows"], k["columns"]]) for name in ("x", "out"))
    at = (k.program_id(0) * 4, 4), (k.program_id(1) * 20, 20)
    k.store(k.load(view, *at) * 2.0, out, *at)
    x = numbers(rows, columns)
    assert_same(k.finish(), [x, np.zeros_like(x), rows, columns], grid=(-(-rows // 4) + 1, -(-columns // 20) + 1))


@pytest.mark.parametrize("strides", [(40, 1), (1, 40), (3, 41), (0, 1), (1, 0), (-1, -40), (80, 2)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_strides(strides, dynamic):
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "s0": INDEX, "s1": INDEX, "offset": INDEX})
    steps = [k["s0"], k["s1"]] if dynamic else list(strides)
    x = k.load(k.view(k["x"], [9, 21], steps, k["offset"]), (0, 9), (0, 21))
    k.store(x + 1.0, k.view(k["out"], [9, 21]), (0, 9), (0, 21))
    assert_same(k.finish(), [numbers(4000), np.zeros((9, 21), np.float32), *strides, 2000])


def test_strided_store():
    k = KernelBuilder("kernel", {"x": F32, "out": F32})
    x = k.load(k.view(k["x"], [9, 21]), (0, 9), (0, 21))
    k.store(x, k.view(k["out"], [9, 21], [2, 18]), (0, 9), (0, 21))
    assert_same(k.finish(), [numbers(9, 21), np.zeros(9 * 42, np.float32)])


def test_views_of_rank_0_and_3_and_points():
    k = KernelBuilder("kernel", {"x": F32, "scale": F32, "out": F32, "i": INDEX})
    scale = k.load(k.view(k["scale"], []))
    view, out = (k.view(k[name], [3, 5, 40]) for name in ("x", "out"))
    k.store(k.load(view, k["i"], (0, 5), (0, 40)) * scale, out, k["i"], (0, 5), (0, 40))
    k.store(k.load(view, (0, 3), k["i"], (0, 40)) * scale, out, (0, 3), k["i"], (0, 40))
    k.store(k.load(view, 0, 0, k["i"]), out, 0, 0, k["i"])
    k.store(k.load(view, (0, 3), (0, 5), k["i"]), out, (0, 3), (0, 5), k["i"] + 1)
    assert_same(k.finish(), [numbers(3, 5, 40), numbers(1), np.zeros((3, 5, 40), np.float32), 2])


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
    pointer = PointerType(element)
    k = KernelBuilder("kernel", {"x": pointer, "out": pointer, "size": INDEX}, grid=list(grid))
    view = k.view(k["x"], [k["size"]])
    k.atomic_add(k.load(view, (0, 37)) * 3, k.view(k["out"], [k["size"]]), (0, 37))
    x = np.arange(30).astype(numpy_dtype(element))
    assert_same(k.finish(), [x, np.ones_like(x), 30], grid, tolerance=0.0)


def test_concurrent_atomic_add_of_bfloats_is_refused():
    k = KernelBuilder("kernel", {"out": PointerType(bf16)}, grid=[4])
    k.atomic_add(k.const(1.0, bf16, [8]), k.view(k["out"], [8]), (0, 8))
    with pytest.raises(UnsupportedKernel, match="adding to bf16 in memory from several programs; use f32 memory"):
        lower_kernel(k.finish())


def test_update_in_place():
    """Adam's step: three buffers read and written at the same block."""
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
    assert "llvm.masked" in lower_kernel(kernel).definition


def test_reads_come_before_later_writes():
    k = KernelBuilder("kernel", {"x": F32, "out": F32})
    view, out = k.view(k["x"], [40, 40]), k.view(k["out"], [40, 40])
    before = k.load(view, (0, 40), (0, 40))
    k.store(before.t * 2.0, view, (0, 40), (0, 40))
    after = k.load(view, (0, 40), (0, 40))
    k.store(before + after, out, (0, 40), (0, 40))
    assert_same(k.finish(), [numbers(40, 40), np.zeros((40, 40), np.float32)])


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


def test_ring_written_and_read_in_a_loop():
    k = KernelBuilder("kernel", {"ring": F32, "out": F32, "steps": INDEX})
    ring, out = k.view(k["ring"], [4, 21]), k.view(k["out"], [k["steps"], 21])
    with k.loop(0, k["steps"]) as loop:
        slot = loop.index % 4
        window = k.load(ring, (0, 4), (0, 21))
        k.store(k.reduce("sum", window, 0), out, loop.index, (0, 21))
        k.store(k.load(ring, slot, (0, 21)) * 0.5 + 1.0, ring, slot, (0, 21))
    assert_same(k.finish(), [numbers(4, 21), np.zeros((10, 21), np.float32), 10])


def test_large_tiles_use_the_arena():
    k = KernelBuilder("kernel", {"x": F32, "out": F32})
    x = k.exp(k.load(k.view(k["x"], [128, 200]), (0, 128), (0, 200)))
    k.store(x - k.reduce("sum", x, 1)[:, None], k.view(k["out"], [128, 200]), (0, 128), (0, 200))
    kernel = k.finish()
    assert lower_kernel(kernel).scratch_bytes >= 128 * 200 * 4
    assert_same(kernel, [numbers(128, 200), np.zeros((128, 200), np.float32)])


def test_positions_of_i64_pass_32_bits():
    k = KernelBuilder("kernel", {"x": F32, "ids": PointerType(i64), "out": F32})
    ids = k.load(k.view(k["ids"], [20]), (0, 20))
    k.store(k.gather(k.view(k["x"], [20]), ids, other=-1.0), k.view(k["out"], [20]), (0, 20))
    ids_array = np.array([1 << 33, (1 << 32) + 3, -(1 << 32) + 5, 5] * 5)
    assert_same(k.finish(), [numbers(20), ids_array, np.zeros(20, np.float32)])


def test_sizes_past_32_bits_do_not_wrap():
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "size": INDEX})
    k.store(k.load(k.view(k["x"], [k["size"]]), (0, 37)), k.view(k["out"], [37]), (0, 37))
    assert_same(k.finish(), [numbers(40), np.zeros(37, np.float32), (1 << 32) + 5])
