"""Every elementwise op, for every element type it takes, against the reference interpreter, at odd sizes."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import UI8, UI32, PointerType, is_float
from tempo_ir.dialects.tile.builder import KernelBuilder, Value
from tempo_ir.reference.tile import numpy_dtype
from tests.llvm.support import Array, assert_same

FLOATS = (f16, bf16, f32, f64)
INTEGERS = (i8, i16, i32, i64, UI8, UI32)
EXTENT = 37
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.inf, -np.inf, np.nan, 1e-3, 700.0])
FLOAT_OPS = (ew.NegOp, ew.AbsOp, ew.SignOp, *ew.FLOAT_UNARY, *ew.BINARY, *ew.COMPARISONS)
INTEGER_OPS = (
    *(ew.NegOp, ew.AbsOp, ew.SignOp, ew.NotOp),
    *(op for op in ew.BINARY if op is not ew.DivOp),
    *ew.COMPARISONS,
    *ew.BITWISE,
)
BOOL_OPS = (ew.NotOp, ew.AndOp, ew.OrOp, ew.XorOp, ew.EqOp, ew.NeOp)


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


def tolerance(element: Attribute) -> float:
    return {f16: 2e-3, bf16: 1.6e-2, f32: 1e-6, f64: 1e-12}.get(element, 0.0)


def check(ops: Sequence[type[ew.UnaryOp | ew.BinaryOp]], element: Attribute, extent: int = EXTENT) -> None:
    """One kernel with all the ops on two vectors, each with an output of its own."""
    pointer = PointerType(element)
    outputs = {op: PointerType(i1) if issubclass(op, ew.ComparisonOp) else pointer for op in ops}
    k = KernelBuilder("kernel", {"x": pointer, "y": pointer, **{op.name: outputs[op] for op in ops}})
    x, y = (k.load(k.view(k[name], [extent]), (0, extent)) for name in "xy")
    for op in ops:
        result = k.apply(op, x) if issubclass(op, ew.UnaryOp) else k.apply(op, x, y)
        k.store(result, k.view(k[op.name], [extent]), (0, extent))
    outs = [np.zeros(extent, numpy_dtype(outputs[op].element)) for op in ops]
    assert_same(k.finish(), [values(element, 0, extent), values(element, 1, extent), *outs], (), tolerance(element))


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_floats(element):
    check(FLOAT_OPS, element)


@pytest.mark.parametrize("element", INTEGERS, ids=str)
def test_integers(element):
    check(INTEGER_OPS, element)


def test_bools():
    check(BOOL_OPS, i1)


@pytest.mark.parametrize("extent", [1, 2, 3, 7, 8, 15, 16, 17, 33, 64, 100])
def test_extents(extent):
    check([ew.AddOp, ew.MaxOp, ew.LtOp], f32, extent)
    check([ew.MaxOp], f64, extent)
    check([ew.MulOp], i64, extent)
    check([ew.XorOp], i8, extent)


def check_one(function, elements: Sequence[Attribute], result: Attribute, inputs: Sequence[Array]) -> None:
    """A kernel that applies a function of the builder's values."""
    names = [f"x{i}" for i in range(len(elements))]
    types = {name: PointerType(element) for name, element in zip(names, elements, strict=True)}
    k = KernelBuilder("kernel", {**types, "out": PointerType(result)})
    extent = len(inputs[0])
    operands = [k.load(k.view(k[name], [extent]), (0, extent)) for name in names]
    k.store(function(k, *operands), k.view(k["out"], [extent]), (0, extent))
    assert_same(k.finish(), [*inputs, np.zeros(extent, numpy_dtype(result))], (), tolerance(result))


@pytest.mark.parametrize("element", [i1, *FLOATS, *INTEGERS], ids=str)
def test_select(element):
    elements = [i1, element, element]
    check_one(KernelBuilder.select, elements, element, [values(e, i) for i, e in enumerate(elements)])


@pytest.mark.parametrize("source", [i1, *FLOATS, *INTEGERS], ids=str)
def test_cast(source):
    targets = [i1, *FLOATS, *INTEGERS]
    k = KernelBuilder("kernel", {"x": PointerType(source), **{str(target): PointerType(target) for target in targets}})
    x = k.load(k.view(k["x"], [EXTENT]), (0, EXTENT))
    for target in targets:
        k.store(x.to(target), k.view(k[str(target)], [EXTENT]), (0, EXTENT))
    x = values(source, 0)
    if is_float(source):
        with np.errstate(over="ignore"):
            x = np.concatenate([x[:-6], np.array([3e9, -3e9, 1e19, -1e19, 127.5, -128.5]).astype(x.dtype)])
    assert_same(k.finish(), [x, *(np.zeros(EXTENT, numpy_dtype(target)) for target in targets)], (), 1e-6)


@pytest.mark.parametrize("exponent", [-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 7.0, 16.0, 2.5])
def test_literal_power(exponent):
    def power(k: KernelBuilder, x: Value) -> Value:
        return x**exponent

    check_one(power, [f32], f32, [values(f32, 3)])


@pytest.mark.parametrize("divisor", [1, -1, 3, -7, 8])
def test_literal_divisor(divisor):
    def divide(k: KernelBuilder, x: Value) -> Value:
        return x // divisor * 1000 + x % divisor

    check_one(divide, [i32], i32, [values(i32, 3)])


def test_bfloat_rounds_to_even_and_keeps_nan():
    x = np.array([1.00390625, 1.01171875, np.nan, np.inf, -np.inf, 3.4e38, 1e-40] * 3, np.float32)
    k = KernelBuilder("kernel", {"x": PointerType(f32), "out": PointerType(bf16), "back": PointerType(f32)})
    loaded = k.load(k.view(k["x"], [21]), (0, 21))
    k.store(loaded.to(bf16), k.view(k["out"], [21]), (0, 21))
    k.store(loaded.to(bf16).to(f32) + 0.0, k.view(k["back"], [21]), (0, 21))
    arguments = [x, np.zeros(21, ml_dtypes.bfloat16), np.zeros(21, np.float32)]
    _, out, back = assert_same(k.finish(), arguments, tolerance=0.0)
    np.testing.assert_array_equal(out.astype(np.float32), back)
