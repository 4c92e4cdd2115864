"""Ops that move, select or place elements, and random draws, as tile kernels, at odd sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import NO_DIMS
from tempo_ir.dialects.types import Tensor, dtype, tensor
from tempo_ir.index import Const, Slice, entry, expr, index
from tempo_ir.lowering.kernels.blocks import CPU
from tests.kernels.support import PADDED, SMALL, check, data, leaf_of, run


def f32(*shape: object) -> Tensor:
    return tensor(dtype("f32"), shape)  # pyright: ignore[reportArgumentType]


I64 = dtype("i64")


@pytest.mark.parametrize("permutation", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_transpose(permutation: tuple[int, ...]) -> None:
    check(lambda a: sdg.TransposeOp(a, permutation, domain=NO_DIMS), [f32(3, 5, 7)], [data((3, 5, 7))])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ((6,), (2, 3)),
        ((2, 3), (6,)),
        ((4, 6), (8, 3)),
        ((2, 3, 4), (6, 4)),
        ((6, 4), (2, 3, 4)),
        ((1,), ()),
        ((5, 1), (5,)),
    ],
)
def test_reshape(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    check(lambda a: sdg.ReshapeOp(a, new, domain=NO_DIMS), [f32(*old)], [data(old)])


def test_reshape_of_dynamic_extents() -> None:
    n = expr("t + 1")
    for t in (0, 2, 5):
        symbols = {"t": t}
        check(lambda a: sdg.ReshapeOp(a, (n * 4,), domain=NO_DIMS), [f32(n, 4)], [data((t + 1, 4))], symbols)
        check(lambda a: sdg.ReshapeOp(a, (n, 4), domain=NO_DIMS), [f32(n * 4)], [data(((t + 1) * 4,))], symbols)


def test_broadcast() -> None:
    check(lambda a: sdg.BroadcastOp(a, (4, 3, 5), domain=NO_DIMS), [f32(3, 1)], [data((3, 1))])


@pytest.mark.parametrize(
    "take", ["[0:3, 1:7]", "[2:5:2, 3]", "[1, 2:3]", "[t:t + 2, 6 - t]", "[0:5, t:t]", "[0:t, 1:7:3]"]
)
def test_slice(take: str) -> None:
    check(lambda a: sdg.SliceOp(a, index(take), domain=NO_DIMS), [f32(5, 7)], [data((5, 7))], {"t": 2})


@pytest.mark.parametrize("axis", [0, 1])
def test_reverse(axis: int) -> None:
    check(lambda a: sdg.ReverseOp(a, axis, domain=NO_DIMS), [f32(5, 7)], [data((5, 7))])


@pytest.mark.parametrize("axis", [0, 1])
def test_concat(axis: int) -> None:
    shapes = [(3, 5), (3, 5), (3, 5)]
    shapes[1] = (1, 5) if axis == 0 else (3, 2)
    arrays = [data(shape, seed=n) for n, shape in enumerate(shapes)]
    check(lambda *a: sdg.ConcatOp(*a, axis=axis, domain=NO_DIMS), [f32(*shape) for shape in shapes], arrays)


def test_concat_of_dynamic_extents() -> None:
    types = [f32(expr("t"), 3), f32(2, 3), f32(expr("t + 1"), 3)]
    for t in (0, 1, 5):
        arrays = [data((n, 3), seed=n) for n in (t, 2, t + 1)]
        check(lambda *a: sdg.ConcatOp(*a, axis=0, domain=NO_DIMS), types, arrays, {"t": t})


@pytest.mark.parametrize(("low", "high"), [((1, 0), (0, 2)), ((2, 3), (1, 1)), (("t", 0), ("2", "t"))])
def test_pad(low: tuple[object, ...], high: tuple[object, ...]) -> None:
    lows, highs = ([expr(str(n)) for n in amounts] for amounts in (low, high))
    check(lambda a: sdg.PadOp(a, lows, highs, 1.5, domain=NO_DIMS), [f32(3, 5)], [data((3, 5))], {"t": 2})


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("ids", [(), (1,), (4,), (2, 3)])
def test_gather(axis: int, ids: tuple[int, ...]) -> None:
    rows = (5, 7)[axis]
    chosen = np.random.default_rng(0).integers(0, rows, ids)
    types = [f32(5, 7), tensor(I64, ids)]
    check(lambda a, i: sdg.GatherOp(a, i, axis=axis, domain=NO_DIMS), types, [data((5, 7)), chosen])


def test_gather_out_of_range() -> None:
    types = [f32(5, 7), tensor(I64, (4,))]
    for wrong in (-1, 5, 2**40, -(2**63)):
        for blocks in (CPU, SMALL, PADDED):
            leaf = leaf_of(lambda a, i: sdg.GatherOp(a, i, axis=0, domain=NO_DIMS), types)
            _, status, _ = run(leaf, [data((5, 7)), np.array([0, 1, wrong, 4])], (4, 7), {}, blocks)
            assert status == [1, wrong]


def test_one_hot() -> None:
    ids = np.array([[0, 2], [4, 5], [-1, 1]])
    check(lambda i: sdg.OneHotOp(i, 5, domain=NO_DIMS), [tensor(I64, (3, 2))], [ids])


@pytest.mark.parametrize("shape", [(), (5,), (3, 7), (2, 3, 4)])
@pytest.mark.parametrize("kind", ["bits", "uniform", "normal"])
def test_random(kind: str, shape: tuple[int, ...]) -> None:
    for name in ("i64",) if kind == "bits" else ("f32", "f64", "f16", "bf16"):
        tolerance = 0 if kind != "normal" else 1e-2 if "16" in name else 1e-6
        check(
            lambda n=name: sdg.RandomOp(kind, 3, tensor(dtype(n), shape), domain=NO_DIMS), [], [], tolerance=tolerance
        )


__all__ = ["Const", "Slice", "entry"]
