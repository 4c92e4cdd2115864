"""Every elementwise op, for every element type it takes, against the reference interpreter, at odd sizes."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import UI8, UI32, PointerType, is_float
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.reference.tile import numpy_dtype
from tests.triton.support import Array, assert_same

FLOATS = (f16, bf16, f32, f64)
INTEGERS = (i8, i16, i32, i64, UI8, UI32)
EXTENT = 64
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.inf, -np.inf, np.nan, 1e-3, 700.0])


def values(element: Attribute, seed: int, count: int = EXTENT) -> Array:
    """Numbers of an element type, special ones first."""
    rng = np.random.default_rng(seed)
    dtype = numpy_dtype(element)
    if element == i1:
        return rng.integers(0, 2, count).astype(np.bool_)
    if is_float(element):
        return np.concatenate([rng.permutation(SPECIAL), rng.standard_normal(count) * 3])[:count].astype(dtype)
    info = np.iinfo(dtype)
    special = np.array([0, 1, info.max, info.min, 2, 3, info.max - 1, 7], dtype)
    return np.concatenate([rng.permutation(special), rng.integers(info.min, info.max, count, dtype)])[:count]


def build(op: type[ew.UnaryOp | ew.BinaryOp | ew.SelectOp], elements: list[Attribute], extent: int):
    """A kernel that applies the op to vectors of the element types."""
    names = [f"x{i}" for i in range(len(elements))]
    probe = KernelBuilder("probe", dict(zip(names, elements, strict=True)))
    result = probe.apply(op, *(probe[name] for name in names)).element
    pointers = {name: PointerType(element) for name, element in zip(names, elements, strict=True)}
    k = KernelBuilder("kernel", {**pointers, "out": PointerType(result)})
    operands = [k.load(k.view(k[name], [extent]), (0, extent)) for name in names]
    k.store(k.apply(op, *operands), k.view(k["out"], [extent]), (0, extent))
    return k.finish(), result


def tolerance(element: Attribute) -> float:
    return {f16: 2e-3, bf16: 1.6e-2, f32: 1e-6, f64: 1e-12}.get(element, 0.0)


def check(op, elements: list[Attribute], extent: int = EXTENT) -> None:
    kernel, result = build(op, elements, extent)
    inputs = [values(element, i, extent) for i, element in enumerate(elements)]
    assert_same(kernel, [*inputs, np.zeros(extent, numpy_dtype(result))], tolerance=tolerance(result))


@pytest.mark.parametrize("element", FLOATS, ids=str)
@pytest.mark.parametrize("op", [ew.NegOp, ew.AbsOp, ew.SignOp, *ew.FLOAT_UNARY], ids=lambda op: op.name)
def test_float_unary(op, element):
    check(op, [element])


@pytest.mark.parametrize("element", INTEGERS, ids=str)
@pytest.mark.parametrize("op", [ew.NegOp, ew.AbsOp, ew.SignOp, ew.NotOp], ids=lambda op: op.name)
def test_integer_unary(op, element):
    check(op, [element])


@pytest.mark.parametrize("element", FLOATS, ids=str)
@pytest.mark.parametrize("op", [*ew.BINARY, *ew.COMPARISONS], ids=lambda op: op.name)
def test_float_binary(op, element):
    check(op, [element, element])


@pytest.mark.parametrize("element", INTEGERS, ids=str)
@pytest.mark.parametrize(
    "op",
    [op for op in (*ew.BINARY, *ew.COMPARISONS, *ew.BITWISE) if op is not ew.DivOp],
    ids=lambda op: op.name,
)
def test_integer_binary(op, element):
    check(op, [element, element])


@pytest.mark.parametrize("op", [ew.AndOp, ew.OrOp, ew.XorOp, ew.EqOp, ew.NeOp], ids=lambda op: op.name)
def test_bool_binary(op):
    check(op, [i1, i1])


def test_bool_not():
    check(ew.NotOp, [i1])


@pytest.mark.parametrize("element", [i1, *FLOATS, *INTEGERS], ids=str)
def test_select(element):
    check(ew.SelectOp, [i1, element, element])


@pytest.mark.parametrize("target", [i1, *FLOATS, *INTEGERS], ids=str)
@pytest.mark.parametrize("source", [i1, *FLOATS, *INTEGERS], ids=str)
def test_cast(source, target):
    k = KernelBuilder("kernel", {"x": PointerType(source), "out": PointerType(target)})
    x = k.load(k.view(k["x"], [EXTENT]), (0, EXTENT))
    k.store(x.to(target), k.view(k["out"], [EXTENT]), (0, EXTENT))
    x = values(source, 0)
    if is_float(source):
        with np.errstate(over="ignore"):
            x = np.concatenate([x[:-6], np.array([3e9, -3e9, 1e19, -1e19, 127.5, -128.5]).astype(x.dtype)])
    assert_same(k.finish(), [x, np.zeros(EXTENT, numpy_dtype(target))], tolerance=tolerance(target))


@pytest.mark.parametrize("extent", [1, 2, 8, 64, 128])
def test_extents(extent):
    check(ew.AddOp, [f32, f32], extent)
    check(ew.MaxOp, [f64, f64], extent)
    check(ew.MulOp, [i64, i64], extent)


@pytest.mark.parametrize("exponent", [-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 7.0, 16.0, 2.5])
def test_literal_power(exponent):
    k = KernelBuilder("kernel", {"x": PointerType(f32), "out": PointerType(f32)})
    x = k.load(k.view(k["x"], [EXTENT]), (0, EXTENT))
    k.store(x**exponent, k.view(k["out"], [EXTENT]), (0, EXTENT))
    assert_same(k.finish(), [values(f32, 3), np.zeros(EXTENT, np.float32)], tolerance=1e-6)


@pytest.mark.parametrize("divisor", [1, -1, 3, -7, 8])
def test_literal_divisor(divisor):
    k = KernelBuilder("kernel", {"x": PointerType(i32), "quotient": PointerType(i32), "rest": PointerType(i32)})
    x = k.load(k.view(k["x"], [EXTENT]), (0, EXTENT))
    k.store(x // divisor, k.view(k["quotient"], [EXTENT]), (0, EXTENT))
    k.store(x % divisor, k.view(k["rest"], [EXTENT]), (0, EXTENT))
    assert_same(k.finish(), [values(i32, 3), np.zeros(EXTENT, np.int32), np.zeros(EXTENT, np.int32)])
