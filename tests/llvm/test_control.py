"""Loops with carried values, branches, grids and scalars, against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f32, i1, i32, i64

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import INDEX, PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.lowering.llvm.engine import compile_object, host_target, load_object
from tempo_ir.lowering.llvm.jit import compile_kernel
from tempo_ir.lowering.llvm.kernel import lower_kernel, module_text
from tests.llvm.support import assert_same

F32 = PointerType(f32)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_carried_tiles_are_exchanged_at_once(trips):
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "n": INDEX})
    x = k.load(k.view(k["x"], [20, 20]), (0, 20), (0, 20))
    with k.loop(0, k["n"], 1, [x, x * 2.0, x + 1.0]) as loop:
        a, b, c = loop.carried
        loop.carry(b, c.t, a + b)
    out = k.view(k["out"], [3, 20, 20])
    for i, value in enumerate(loop.results):
        k.store(value, out, i, (0, 20), (0, 20))
    assert_same(k.finish(), [numbers(20, 20), np.zeros((3, 20, 20), np.float32), trips])


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
    types = {"out": F32, "ints": PointerType(i64), "flags": PointerType(i1), "n": INDEX}
    k = KernelBuilder("kernel", types)
    start = [k.const(1.0, f32), k.value(3), k.const(0, i32), k.const(0, i1), k.const(1.5, bf16)]
    with k.loop(0, k["n"], 1, start) as loop:
        x, i, j, flag, y = loop.carried
        loop.carry(x * 1.5, i + loop.index * 2, j - 1, ~flag, y * 0.5)
    x, i, j, flag, y = loop.results
    out, ints = k.view(k["out"], [2]), k.view(k["ints"], [2])
    k.store(x, out, 0)
    k.store(y.to(f32), out, 1)
    k.store(i.to(i64), ints, 0)
    k.store(j.to(i64), ints, 1)
    k.store(flag, k.view(k["flags"], [1]), 0)
    arrays = [np.zeros(2, np.float32), np.zeros(2, np.int64), np.zeros(1, np.bool_)]
    for n in (0, 1, 5):
        assert_same(k.finish(), [*arrays, n])


def test_nested_loops_with_bounds_from_each_other():
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "n": INDEX})
    view = k.view(k["x"], [k["n"], 20])
    with k.loop(0, k["n"], 1, [k.const(0.0, f32, [20])]) as outer:
        with k.loop(outer.index // 2, outer.index + 1, 3, [outer.carried[0]]) as inner:
            rows = k.load(view, (inner.index, 3), (0, 20))
            inner.carry(inner.carried[0] + k.reduce("sum", rows, 0))
        outer.carry(inner.results[0] * 0.9)
    k.store(outer.results[0], k.view(k["out"], [20]), (0, 20))
    assert_same(k.finish(), [numbers(11, 20), np.zeros(20, np.float32), 11])


@pytest.mark.parametrize("low", [0, 2, 7])
@pytest.mark.parametrize("high", [0, 5, 8, 9, 23])
def test_loop_ranges(low, high):
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "low": INDEX, "high": INDEX})
    view = k.view(k["x"], [k["high"]])
    with k.loop(k["low"], k["high"], 4, [k.const(0.0, f32, [4])]) as loop:
        loop.carry(loop.carried[0] + k.load(view, (loop.index, 4)))
    k.store(loop.results[0], k.view(k["out"], [4]), (0, 4))
    assert_same(k.finish(), [numbers(23), np.zeros(4, np.float32), low, high])


def test_a_length_read_from_memory():
    k = KernelBuilder("kernel", {"x": F32, "length": PointerType(i64), "out": F32})
    length = k.load(k.view(k["length"], [])).to(INDEX)
    view = k.view(k["x"], [length])
    with k.loop(0, length, 16, [k.const(-np.inf, f32, [16])]) as loop:
        loop.carry(k.maximum(loop.carried[0], k.load(view, (loop.index, 16), other=-np.inf)))
    k.store(k.reduce("max", loop.results[0], 0), k.view(k["out"], []))
    for length_value in (1, 16, 37):
        assert_same(k.finish(), [numbers(37), np.array(length_value), np.zeros((), np.float32)])


@pytest.mark.parametrize("n", [-1, 3, 10])
def test_branches(n):
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "n": INDEX}, grid=[2])
    x = k.exp(k.load(k.view(k["x"], [37]), (0, 37)))
    out = k.view(k["out"], [2, 37])
    row = k.program_id(0)
    with k.when(k["n"] < 5):
        y = x + 1.0
        with k.when(row.eq(0)):
            k.store(y * y, out, row, (0, 37))
    with k.otherwise():
        with k.loop(0, k["n"], 1, [x]) as loop:
            loop.carry(loop.carried[0] * 0.5)
        k.store(loop.results[0], out, row, (0, 37))
    assert_same(k.finish(), [numbers(37), np.zeros((2, 37), np.float32), n], grid=(2,))


@pytest.mark.parametrize("op", [ew.AddOp, ew.SubOp, ew.MulOp, ew.FloorDivOp, ew.ModOp, ew.MinOp, ew.MaxOp, ew.PowOp])
@pytest.mark.parametrize(("a", "b"), [(7, 3), (-7, 3), (12, 4), (0, 5)])
def test_index_arithmetic(op, a, b):
    k = KernelBuilder("kernel", {"out": PointerType(i64), "a": INDEX, "b": INDEX})
    out = k.view(k["out"], [6])
    values = [
        k.apply(op, k["a"], k["b"]),
        k.apply(op, k["a"], b),
        k.apply(op, k["a"] * b, b),
        k.apply(op, a, b),
        k.apply(op, k["a"] + 100, k["a"]) if op is not ew.PowOp else k["a"],
        k.select(k["a"] < k["b"], k["a"], abs(-k["b"])),
    ]
    for i, value in enumerate(values):
        k.store(value.to(i64), out, i)
    assert_same(k.finish(), [np.zeros(6, np.int64), a, b])


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
