"""Reductions, scans, dots, moves of axes, positions and random words against the reference, at odd sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i32, i64
from xdsl.ir import Attribute

from tempo_ir.dialects.tile.attributes import UI8, UI32, PointerType, ReduceKind
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.lowering.llvm.engine import host_target
from tempo_ir.lowering.llvm.target import AVX2, SSE, Target
from tempo_ir.reference.tile import numpy_dtype
from tests.llvm.support import Array, assert_same
from tests.tile import programs
from tests.tile.programs import values

SHAPES = [(1, 1), (2, 3), (3, 37), (37, 3), (16, 16), (5, 64), (64, 5), (20, 33)]


def whole(shape: Sequence[int]) -> list[tuple[int, int]]:
    """Places for all of an array."""
    return [(0, extent) for extent in shape]


def tolerance(element: Attribute) -> float:
    return {f16: 3e-3, bf16: 2e-2, f32: 5e-6, f64: 1e-13}.get(element, 0.0)


def check_reduces(
    kinds: Sequence[str], element: Attribute, x: Array, index_element: Attribute = i64, target: Target | None = None
) -> None:
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
    assert_same(k.finish(), [x, *arrays], (), tolerance(element), target)


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


@pytest.mark.parametrize("target", [None, AVX2, SSE], ids=["host", "avx2", "sse"])
@pytest.mark.parametrize("element", [f32, f64, bf16], ids=str)
@pytest.mark.parametrize("extent", [5, 33, 70, 200])
def test_extreme_values_wherever_nan_is(target, element, extent):
    """In the first and the last element, in the last vector, in one of two that are looked at together, in all."""
    x = values(element, (9, extent))
    x[0, 0] = x[1, -1] = x[2, extent // 2] = x[3, min(16, extent - 1)] = np.nan
    x[4], x[5], x[6] = np.nan, -np.inf, np.inf
    check_reduces(["max", "min"], element, x, i64, lesser(target))


def lesser(target: Target | None) -> Target | None:
    """A target that this machine can run: itself where it has no such vectors."""
    return None if target is None or target.lanes > host_target().lanes else target


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


@pytest.mark.parametrize("target", [None, AVX2, SSE], ids=["host", "avx2", "sse"])
@pytest.mark.parametrize("extent", [3, 16, 45, 96])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_along_the_lanes(target, extent, reverse):
    for element, kind in ((f32, "sum"), (f64, "prod"), (i32, "sum"), (i64, "prod"), (i8, "sum")):
        k = KernelBuilder("kernel", {"x": PointerType(element), "out": PointerType(element)})
        x = k.load(k.view(k["x"], [extent]), (0, extent))
        k.store(k.scan(kind, x, 0, reverse), k.view(k["out"], [extent]), (0, extent))
        arrays = [values(element, (extent,)), np.zeros(extent, numpy_dtype(element))]
        assert_same(k.finish(), arrays, (), max(tolerance(element), 1e-12), lesser(target))


@pytest.mark.parametrize(
    "sides", [(1, 1, 1), (1, 3, 37), (2, 37, 1), (3, 16, 16), (7, 33, 20), (40, 5, 3), (17, 64, 48)]
)
@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False), (True, True)], ids=str)
def test_dot(sides, transposed):
    dot(f32, f32, sides, transposed)


@pytest.mark.parametrize(("element", "total"), programs.DOT_ELEMENTS, ids=str)
def test_dot_elements(element, total):
    for sides in ((3, 37, 20), (2, 5, 3), (20, 33, 17)):
        dot(element, total, sides, (False, True))


def dot(element: Attribute, total: Attribute, sides: tuple[int, int, int], transposed: tuple[bool, bool]) -> None:
    case = programs.product(element, total, sides, transposed, whole)
    assert_same(*case, tolerance=2e-6 if total == f32 else 1e-13)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_moves(shape):
    assert_same(*programs.moves(shape, whole), tolerance=1e-6)


@pytest.mark.parametrize("element", [i8, i32, i64], ids=str)
def test_positions(element):
    for n in (0, 5, 30, 100):
        assert_same(*programs.positions(element, n, whole))


def test_philox():
    assert_same(*programs.random_words(-3, whole))
