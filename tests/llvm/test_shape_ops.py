"""Reductions, scans, dots, moves of axes, positions and random words against the reference, at odd sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i32, i64
from xdsl.ir import Attribute

from tempo_ir.dialects.tile.attributes import INDEX, UI8, UI32, PointerType, ReduceKind, is_float
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.reference.tile import numpy_dtype
from tests.llvm.support import Array, assert_same

SHAPES = [(1, 1), (2, 3), (3, 37), (37, 3), (16, 16), (5, 64), (64, 5), (20, 33)]


def values(element: Attribute, shape: tuple[int, ...], seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    dtype = numpy_dtype(element)
    if element == i1:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if is_float(element):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(-5 if dtype.kind == "i" else 0, 6, shape).astype(dtype)


def tolerance(element: Attribute) -> float:
    return {f16: 3e-3, bf16: 2e-2, f32: 5e-6, f64: 1e-13}.get(element, 0.0)


def check_reduces(kinds: Sequence[str], element: Attribute, x: Array, index_element: Attribute = i64) -> None:
    """One kernel with reductions along every axis, each with an output of its own."""
    shape, axes = x.shape, range(x.ndim)
    results = {kind: index_element if kind.startswith("arg") else element for kind in kinds}
    outputs = {f"{kind}{axis}": PointerType(results[kind]) for kind in kinds for axis in axes}
    k = KernelBuilder("kernel", {"x": PointerType(element), **outputs})
    loaded = k.load(k.view(k["x"], list(shape)), *((0, n) for n in shape))
    arrays: list[Array] = []
    for kind in kinds:
        for axis in axes:
            rest = [n for i, n in enumerate(shape) if i != axis]
            reduced = k.reduce(kind, loaded, axis, index_element)
            k.store(reduced, k.view(k[f"{kind}{axis}"], rest), *((0, n) for n in rest))
            arrays.append(np.zeros(rest, numpy_dtype(results[kind])))
    assert_same(k.finish(), [x, *arrays], (), tolerance(element))


@pytest.mark.parametrize("shape", [*SHAPES, (1,), (3,), (16,), (37,), (1000,)], ids=str)
def test_reduce(shape):
    check_reduces(list(ReduceKind)[:6], f32, values(f32, shape))


@pytest.mark.parametrize("element", [f16, bf16, f64, i8, i32, i64, UI8, UI32], ids=str)
def test_reduce_elements(element):
    check_reduces(list(ReduceKind)[:6], element, values(element, (7, 37)), i32)


@pytest.mark.parametrize("element", [i1, i32, UI8], ids=str)
def test_reduce_bits(element):
    check_reduces(["and", "or"], element, values(element, (3, 37)))


def test_extreme_values_propagate_nan_and_take_the_first_tie():
    x = np.round(values(f32, (40, 40)) * 2)
    x[3, 5] = x[3, 30] = x[35, 5] = np.nan
    x[:, 7] = np.inf
    check_reduces(["max", "min", "argmax", "argmin"], f32, x)


@pytest.mark.parametrize("shape", [*SHAPES, (37,)], ids=str)
@pytest.mark.parametrize("element", [f32, i32], ids=str)
def test_scan(shape, element):
    names = [f"{kind}{axis}{reverse}" for kind in ("sum", "prod") for axis in range(len(shape)) for reverse in (0, 1)]
    k = KernelBuilder("kernel", {"x": PointerType(element), **{name: PointerType(element) for name in names}})
    places = [(0, n) for n in shape]
    x = k.load(k.view(k["x"], list(shape)), *places)
    x = x * 0.5 if element == f32 else x
    for name in names:
        result = k.scan(name[:-2], x, int(name[-2]), bool(int(name[-1])))
        k.store(result, k.view(k[name], list(shape)), *places)
    outputs = [np.zeros(shape, numpy_dtype(element)) for _ in names]
    assert_same(k.finish(), [values(element, shape), *outputs], (), tolerance(element))


@pytest.mark.parametrize("element", [f16, f64, UI8], ids=str)
def test_scan_vector(element):
    k = KernelBuilder("kernel", {"x": PointerType(element), "out": PointerType(element)})
    x = k.load(k.view(k["x"], [37]), (0, 37))
    k.store(k.scan("sum", x, 0), k.view(k["out"], [37]), (0, 37))
    assert_same(k.finish(), [values(element, (37,)), np.zeros(37, numpy_dtype(element))], (), tolerance(element))


@pytest.mark.parametrize(
    "sides", [(1, 1, 1), (1, 3, 37), (2, 37, 1), (3, 16, 16), (7, 33, 20), (40, 5, 3), (17, 64, 48)]
)
@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False), (True, True)], ids=str)
def test_dot(sides, transposed):
    dot(f32, f32, sides, transposed)


@pytest.mark.parametrize(
    ("element", "total"), [(f16, f32), (bf16, f32), (f64, f64), (i8, i32), (UI8, i32), (i32, i32), (i64, i64)], ids=str
)
def test_dot_elements(element, total):
    for sides in ((3, 37, 20), (2, 5, 3), (20, 33, 17)):
        dot(element, total, sides, (False, True))


def dot(element: Attribute, total: Attribute, sides: tuple[int, int, int], transposed: tuple[bool, bool]) -> None:
    rows, depth, columns = sides
    shapes = [(rows, depth), (depth, columns)]
    shapes = [shape[::-1] if swap else shape for shape, swap in zip(shapes, transposed, strict=True)]
    k = KernelBuilder("kernel", {"a": PointerType(element), "b": PointerType(element), "c": PointerType(total)})
    a, b = (
        k.load(k.view(k[name], list(shape)), *((0, n) for n in shape)) for name, shape in zip("ab", shapes, strict=True)
    )
    a, b = (x.t if swap else x for x, swap in zip((a, b), transposed, strict=True))
    k.store(k.dot(a, b, k.const(1, total, [rows, columns])), k.view(k["c"], [rows, columns]), (0, rows), (0, columns))
    arguments = [
        values(element, shapes[0], 1),
        values(element, shapes[1], 2),
        np.zeros((rows, columns), numpy_dtype(total)),
    ]
    assert_same(k.finish(), arguments, tolerance=2e-6 if total == f32 else 1e-13)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_moves(shape):
    rows, columns = shape
    pointers = {name: PointerType(f32) for name in ("x", "row", "column", "out", "swapped")}
    k = KernelBuilder("kernel", pointers)
    x = k.load(k.view(k["x"], [rows, columns]), (0, rows), (0, columns))
    row, column = k.load(k.view(k["row"], [columns]), (0, columns)), k.load(k.view(k["column"], [rows]), (0, rows))
    k.store(
        (x + row[None, :]).t + column[None, :].broadcast(columns, rows),
        k.view(k["out"], [columns, rows]),
        (0, columns),
        (0, rows),
    )
    k.store(k.exp(x).t, k.view(k["swapped"], [columns, rows]), (0, columns), (0, rows))
    out = np.zeros((columns, rows), np.float32)
    arguments = [values(f32, shape), values(f32, (columns,), 1), values(f32, (rows,), 2), out, out.copy()]
    assert_same(k.finish(), arguments, tolerance=1e-6)


@pytest.mark.parametrize("element", [i8, i32, i64], ids=str)
def test_positions(element):
    k = KernelBuilder("kernel", {"out": PointerType(element), "inside": PointerType(i1), "n": INDEX})
    k.store(k.iota(k["n"], 37, element), k.view(k["out"], [37]), (0, 37))
    k.store(k.in_range(3, 37, k["n"]), k.view(k["inside"], [37]), (0, 37))
    for n in (0, 5, 30, 100):
        assert_same(k.finish(), [np.zeros(37, numpy_dtype(element)), np.zeros(37, np.bool_), n])


def test_philox():
    names = ("w0", "w1", "w2", "w3")
    k = KernelBuilder("kernel", {**{name: PointerType(UI32) for name in names}, "seed": i32})
    counter = k.iota(0, 37, UI32)
    zero = k.const(0, UI32)
    words = k.philox((k["seed"], k.const(7, UI32)), (counter, zero, counter + 5, zero))
    for name, word in zip(names, words, strict=True):
        k.store(word, k.view(k[name], [37]), (0, 37))
    assert_same(k.finish(), [*(np.zeros(37, np.uint32) for _ in names), -3])
