"""Loops with carried values, branches, grids and scalars in Triton's interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f32, i1, i32, i64
from xdsl.utils.exceptions import DiagnosticException

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import INDEX, PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.lowering.triton.printer import print_kernel
from tests.triton.support import assert_same

F32 = PointerType(f32)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_carried_tiles_are_exchanged_at_once(trips):
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "n": INDEX})
    x = k.load(k.view(k["x"], [16, 16]), (0, 16), (0, 16))
    with k.loop(0, k["n"], 1, [x, x * 2.0, x + 1.0]) as loop:
        a, b, c = loop.carried
        loop.carry(b, c.t, a + b)
    out = k.view(k["out"], [3, 16, 16])
    for i, value in enumerate(loop.results):
        k.store(value, out, i, (0, 16), (0, 16))
    assert_same(k.finish(), [numbers(16, 16), np.zeros((3, 16, 16), np.float32), trips])


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


def test_counters_of_constant_loops():
    """In Triton they are of 32 bits, in its interpreter Python numbers."""
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "ids": PointerType(i64)})
    view = k.view(k["x"], [8, 16])
    with k.loop(0, 8, 2, [k.const(0.0, f32, [16]), k.value(0)]) as loop:
        with k.loop(0, loop.index + 2, 1, [loop.carried[0]]) as inner:
            row = k.load(view, k.minimum(inner.index, 7), (0, 16))
            inner.carry(inner.carried[0] + row * loop.index.to(f32))
        with k.when((loop.index % 4).eq(0)):
            k.store(loop.index.to(i64), k.view(k["ids"], [8]), loop.index)
        loop.carry(inner.results[0], loop.index)
    k.store(loop.results[0], k.view(k["out"], [16]), (0, 16))
    k.store(loop.results[1].to(i64), k.view(k["ids"], [8]), 7)
    assert_same(k.finish(), [numbers(8, 16), np.zeros(16, np.float32), np.zeros(8, np.int64)])


def test_nested_loops_with_bounds_from_each_other():
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "n": INDEX})
    view = k.view(k["x"], [k["n"], 20])
    with k.loop(0, k["n"], 1, [k.const(0.0, f32, [32])]) as outer:
        with k.loop(outer.index // 2, outer.index + 1, 3, [outer.carried[0]]) as inner:
            rows = k.load(view, (inner.index, 4), (0, 32))
            inner.carry(inner.carried[0] + k.reduce("sum", rows, 0))
        outer.carry(inner.results[0] * 0.9)
    k.store(outer.results[0], k.view(k["out"], [20]), (0, 32))
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


@pytest.mark.parametrize("length", [1, 16, 37])
def test_a_length_read_from_memory(length):
    k = KernelBuilder("kernel", {"x": F32, "length": PointerType(i64), "out": F32})
    limit = k.load(k.view(k["length"], [])).to(INDEX)
    view = k.view(k["x"], [limit])
    with k.loop(0, limit, 16, [k.const(-np.inf, f32, [16])]) as loop:
        loop.carry(k.maximum(loop.carried[0], k.load(view, (loop.index, 16), other=-np.inf)))
    k.store(k.reduce("max", loop.results[0], 0), k.view(k["out"], []))
    assert_same(k.finish(), [numbers(37), np.array(length), np.zeros((), np.float32)])


@pytest.mark.parametrize("n", [-1, 3, 10])
def test_branches(n):
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "n": INDEX}, grid=[2])
    x = k.exp(k.load(k.view(k["x"], [37]), (0, 64)))
    out = k.view(k["out"], [2, 37])
    row = k.program_id(0)
    with k.when(k["n"] < 5):
        y = x + 1.0
        with k.when(row.eq(0)):
            k.store(y * y, out, row, (0, 64))
    with k.otherwise():
        with k.loop(0, k["n"], 1, [x]) as loop:
            loop.carry(loop.carried[0] * 0.5)
        k.store(loop.results[0], out, row, (0, 64))
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


@pytest.mark.parametrize("flag", [0, 1])
def test_scalar_arguments(flag):
    types = {"out": F32, "rate": f32, "flag": i1, "small": i32}
    k = KernelBuilder("kernel", types)
    value = k.select(k["flag"].ne(0), k["rate"] * 2.0, k["small"].to(f32))
    k.store(value.broadcast(8), k.view(k["out"], [5]), (0, 8))
    assert_same(k.finish(), [np.zeros(5, np.float32), 1.25, flag, -3])


def test_names_are_python_names_of_their_own():
    k = KernelBuilder("tanh", {"tanh": F32, "range": F32, "tl": INDEX, "lambda": INDEX})
    x = k.load(k.view(k["tanh"], [16]), (0, 16)).named("tl.load")
    y = k.tanh(x).named("tanh") + (k["tl"] + k["lambda"]).to(f32)
    k.store(y.named("def"), k.view(k["range"], [16]), (0, 16))
    assert_same(k.finish(), [numbers(16), np.zeros(16, np.float32), 1, 2])


def test_extents_that_are_no_powers_of_two_are_refused():
    k = KernelBuilder("scale", {"x": F32})
    view = k.view(k["x"], [12])
    k.store(k.load(view, (0, 12)) * 2.0, view, (0, 12))
    message = (
        r"kernel @scale: Triton needs tile extents that are powers of two, not 12; lower it for a GPU, as by loop-"
    )
    with pytest.raises(DiagnosticException, match=message):
        print_kernel(k.finish())
