"""Reductions, scans, dots, moves of axes, positions, random words in Triton's interpreter, at odd sizes in blocks."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i32, i64
from xdsl.ir import Attribute

from tempo_ir.dialects.tile.attributes import UI8, UI32, PointerType, ReduceKind, is_float
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.reference.tile import numpy_dtype
from tests.tile import programs
from tests.tile.programs import values
from tests.triton.support import assert_same, block_of

SHAPES = [(1, 1), (2, 3), (3, 8), (8, 3), (5, 16)]


def tolerance(element: Attribute) -> float:
    return {f16: 3e-3, bf16: 2e-2, f32: 2e-6, f64: 1e-13}.get(element, 0.0)


loaded = partial(programs.loaded, block=block_of)
stored = partial(programs.stored, block=block_of)


def identity(kind: str, element: Attribute) -> float:
    if kind in ("sum", "or"):
        return 0
    if kind in ("prod", "and"):
        return 1 if kind == "prod" or element == i1 else -1
    largest = math.inf if is_float(element) else float(np.iinfo(numpy_dtype(element)).max)
    smallest = -math.inf if is_float(element) else float(np.iinfo(numpy_dtype(element)).min)
    return smallest if kind.endswith("max") else largest


def reduce_kernel(kind: str, element: Attribute, shape: tuple[int, ...], axis: int, index_element: Attribute = i64):
    rest = tuple(n for i, n in enumerate(shape) if i != axis)
    result = index_element if kind.startswith("arg") else element
    k = KernelBuilder("kernel", {"x": PointerType(element), "out": PointerType(result)})
    x = loaded(k, "x", shape, other=identity(kind, element))
    stored(k, k.reduce(kind, x, axis, index_element), "out", rest)
    return k.finish(), np.zeros(rest, numpy_dtype(result))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", list(ReduceKind)[:6])
def test_reduce_f32(kind, shape, axis):
    kernel, out = reduce_kernel(kind, f32, shape, axis)
    assert_same(kernel, [values(f32, shape), out], tolerance=2e-6)


@pytest.mark.parametrize("extent", [1, 3, 16, 37])
@pytest.mark.parametrize("kind", ["sum", "prod", "max", "argmin"])
def test_reduce_vector(kind, extent):
    kernel, out = reduce_kernel(kind, f32, (extent,), 0)
    assert_same(kernel, [values(f32, (extent,)), out], tolerance=5e-6)


@pytest.mark.parametrize("element", [f16, bf16, f64, i8, i32, i64, UI8, UI32], ids=str)
@pytest.mark.parametrize("kind", list(ReduceKind)[:6])
def test_reduce_elements(kind, element):
    kernel, out = reduce_kernel(kind, element, (3, 7), 1, i32)
    assert_same(kernel, [values(element, (3, 7)), out], tolerance=tolerance(element))


@pytest.mark.parametrize("element", [i1, i32, UI8], ids=str)
@pytest.mark.parametrize("kind", ["and", "or"])
def test_reduce_bits(kind, element):
    k = KernelBuilder("kernel", {"x": PointerType(element), "out": PointerType(element)})
    stored(k, k.reduce(kind, loaded(k, "x", (4, 8)), 1), "out", (4,))
    assert_same(k.finish(), [values(element, (4, 8)), np.zeros(4, numpy_dtype(element))])


@pytest.mark.parametrize("kind", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_extreme_values_propagate_nan_and_take_the_first_tie(kind, axis):
    x = np.round(values(f32, (8, 8)) * 2)
    x[3, 5] = x[3, 7] = x[6, 5] = np.nan
    x[:, 4] = np.inf
    kernel, out = reduce_kernel(kind, f32, (8, 8), axis)
    assert_same(kernel, [x, out], tolerance=0.0)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["sum", "prod"])
def test_scan(kind, axis, reverse):
    shape = (8, 16)
    k = KernelBuilder("kernel", {"x": PointerType(f32), "out": PointerType(f32)})
    stored(k, k.scan(kind, loaded(k, "x", shape) * 0.5, axis, reverse), "out", shape)
    assert_same(k.finish(), [values(f32, shape), np.zeros(shape, np.float32)], tolerance=2e-6)


@pytest.mark.parametrize("element", [f16, f64, i8, i32, UI8], ids=str)
def test_scan_vector(element):
    k = KernelBuilder("kernel", {"x": PointerType(element), "out": PointerType(element)})
    stored(k, k.scan("sum", loaded(k, "x", (37,)), 0), "out", (37,))
    x = values(element, (37,))
    assert_same(k.finish(), [x, np.zeros_like(x)], tolerance=tolerance(element))


@pytest.mark.parametrize("sides", [(1, 1, 1), (1, 3, 37), (2, 37, 1), (3, 16, 16), (17, 33, 20)])
@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False)], ids=str)
def test_dot(sides, transposed):
    dot(f32, f32, sides, transposed)


@pytest.mark.parametrize(("element", "total"), programs.DOT_ELEMENTS, ids=str)
@pytest.mark.parametrize("sides", [(2, 5, 3), (20, 33, 17)])
def test_dot_elements(element, total, sides):
    dot(element, total, sides, (False, True))


def dot(element: Attribute, total: Attribute, sides: tuple[int, int, int], transposed: tuple[bool, bool]) -> None:
    case = programs.product(element, total, sides, transposed, block_of)
    assert_same(*case, tolerance=2e-6 if total == f32 else 1e-13)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_moves(shape):
    assert_same(*programs.moves(shape, block_of), tolerance=1e-6)


@pytest.mark.parametrize("element", [i8, i32, i64], ids=str)
def test_positions(element):
    for n in (0, 5, 30, 100):
        assert_same(*programs.positions(element, n, block_of))


@pytest.mark.parametrize("seed", [0, 1234, -3])
def test_philox(seed):
    assert_same(*programs.random_words(seed, block_of))


def test_philox_of_two_axes_and_of_scalars():
    k = KernelBuilder("kernel", {"tile": PointerType(UI32), "one": PointerType(UI32), "seed": i32})
    rows, columns, zero = k.iota(0, 4, UI32), k.iota(3, 8, UI32), k.const(0, UI32)
    tile, *_ = k.philox((k["seed"], zero), (zero, rows[:, None], columns[None, :], zero))
    stored(k, tile, "tile", (4, 8))
    _, one, *_ = k.philox((k["seed"], zero), (zero, zero, k.const(2**32 - 1, UI32), zero))
    k.store(one, k.view(k["one"], []))
    assert_same(k.finish(), [np.zeros((4, 8), np.uint32), np.zeros(1, np.uint32), 11])
