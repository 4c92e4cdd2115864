"""Elementwise ops as tile kernels, at odd sizes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import NO_DIMS
from tempo_ir.dialects.types import dtype, tensor
from tempo_ir.index import entry, expr
from tempo_ir.lowering.kernels.elementwise import BINARY, UNARY
from tests.kernels.support import check, data

SHAPES = [(), (1,), (5,), (3, 7), (2, 3, 5), (2, 1, 3, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_add(shape: tuple[int, ...]) -> None:
    types = [tensor(dtype("f32"), shape)] * 2
    check(lambda a, b: sdg.AddOp(a, b, domain=NO_DIMS), types, [data(shape), data(shape, seed=1)])


@pytest.mark.parametrize("op", UNARY)
def test_unary(op: type) -> None:
    name = "bool" if op is sdg.NotOp else "f32"
    x = np.abs(data((3, 5), name)) + 1 if name == "f32" else data((3, 5), name)
    check(lambda a: op(a, domain=NO_DIMS), [tensor(dtype(name), (3, 5))], [x])


@pytest.mark.parametrize("op", BINARY)
def test_binary_broadcasts(op: type) -> None:
    name = "bool" if issubclass(op, sdg.LogicOp) else "f32"
    x, y = data((3, 1, 5), name), data((4, 1), name, 1)
    if op is sdg.PowOp:
        x = np.abs(x)
    types = [tensor(dtype(name), x.shape), tensor(dtype(name), y.shape)]
    check(lambda a, b: op(a, b, domain=NO_DIMS), types, [x, y], tolerance=1e-5)


@pytest.mark.parametrize("wide", [(2, 1, 4, 5), (4, 1, 5), (1, 3, 1), (1, 1, 6)])
def test_axes_of_one_element_beside_stretched_ones(wide: tuple[int, ...]) -> None:
    narrow = {wide[start:] for start in range(len(wide) + 1)}
    narrow |= {tuple(1 if number in dropped else extent for number, extent in enumerate(shape))
               for shape in list(narrow) for count in range(len(shape) + 1)
               for dropped in combinations(range(len(shape)), count)}  # fmt: skip
    for shape in sorted(narrow):
        types = [tensor(dtype("f32"), wide), tensor(dtype("f32"), shape)]
        check(lambda a, b: sdg.SubOp(a, b, domain=NO_DIMS), types, [data(wide), data(shape, seed=1)])


@pytest.mark.parametrize("name", ["i8", "i32", "i64", "u8", "f64", "f16", "bf16"])
def test_dtypes(name: str) -> None:
    x, y = data((3, 5), name), data((3, 5), name, 1)
    types = [tensor(dtype(name), x.shape)] * 2
    check(lambda a, b: sdg.MulOp(a, b, domain=NO_DIMS), types, [x, y], tolerance=1e-2 if "16" in name else 1e-6)


@pytest.mark.parametrize("op", [sdg.FloordivOp, sdg.ModOp])
def test_division(op: type) -> None:
    x, y = data((9,), "i64"), np.array([1, -1, 2, -2, 3, 7, -7, 5, -5])
    check(lambda a, b: op(a, b, domain=NO_DIMS), [tensor(dtype("i64"), (9,))] * 2, [x, y])


def test_select_and_cast() -> None:
    c, x, y = data((3, 5), "bool"), data((5,)), data((3, 1))
    types = [tensor(dtype("bool"), (3, 5)), tensor(dtype("f32"), (5,)), tensor(dtype("f32"), (3, 1))]
    check(lambda c, a, b: sdg.SelectOp(c, a, b, domain=NO_DIMS), types, [c, x, y])
    for name in ("i32", "f64", "bool", "bf16"):
        check(lambda a, n=name: sdg.CastOp(a, dtype(n), domain=NO_DIMS), types[1:2], [x * 3])


@pytest.mark.parametrize("t", [0, 1, 6, 9])
def test_dynamic_extents(t: int) -> None:
    shape = (3, t + 1)
    dynamic = tensor(dtype("f32"), (3, expr("t + 1")))
    check(lambda a, b: sdg.AddOp(a, b, domain=NO_DIMS), [dynamic] * 2, [data(shape), data(shape, seed=1)], {"t": t})
    columns = tensor(dtype("f32"), (expr("t + 1"), 3))
    check(lambda a, b: sdg.AddOp(a, b, domain=NO_DIMS), [columns] * 2, [data(shape[::-1])] * 2, {"t": t})


def test_values_of_the_program() -> None:
    check(lambda: sdg.ConstantOp(1.5, tensor(dtype("f32"), (3, 5))), [], [])
    symbols = {"t": 3, "call.start.t": 0}
    check(lambda: sdg.IndexOp(expr("2 * t - 1"), domain=NO_DIMS), [], [], symbols)
    check(lambda: sdg.ArangeOp(entry("t - 1:2 * t + 3:2"), domain=NO_DIMS), [], [], symbols)
