"""Running sums and products, and scattered sums, as tile kernels, at odd sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import NO_DIMS
from tempo_ir.dialects.types import dtype, tensor
from tempo_ir.index import expr
from tempo_ir.lowering.kernels.blocks import CPU
from tests.kernels.support import PADDED, SMALL, check, data, leaf_of, run

F32, I64 = dtype("f32"), dtype("i64")


@pytest.mark.parametrize("op", [sdg.CumsumOp, sdg.CumprodOp])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((9,), 0), ((3, 5, 7), 0), ((3, 5, 7), 1), ((3, 5, 7), 2), ((5, 1), 0)])
def test_scan(op: type, reverse: bool, shape: tuple[int, ...], axis: int) -> None:
    make = lambda a: op(a, axis, reverse=reverse, domain=NO_DIMS)  # noqa: E731
    check(make, [tensor(F32, shape)], [data(shape)], tolerance=1e-5)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(3, 5, 70), (2, 2500), (1, 33)])
def test_scan_of_rows(reverse: bool, shape: tuple[int, ...]) -> None:
    """Along the last axis, in vectors, of rows of several blocks too."""
    make = lambda a: sdg.CumsumOp(a, len(shape) - 1, reverse=reverse, domain=NO_DIMS)  # noqa: E731
    check(make, [tensor(F32, shape)], [data(shape)], tolerance=1e-4, all_blocks=(CPU,))


@pytest.mark.parametrize("t", [0, 1, 6, 9])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_of_a_dynamic_axis(t: int, reverse: bool) -> None:
    make = lambda a: sdg.CumsumOp(a, 0, reverse=reverse, domain=NO_DIMS)  # noqa: E731
    check(make, [tensor(F32, (expr("t"),))], [data((t,))], {"t": t}, tolerance=1e-5)
    check(make, [tensor(F32, (expr("t"), 3))], [data((t, 3))], {"t": t}, tolerance=1e-5)


@pytest.mark.parametrize("name", ["i8", "i64", "bf16", "f64"])
def test_scan_dtypes(name: str) -> None:
    make = lambda a: sdg.CumsumOp(a, 1, domain=NO_DIMS)  # noqa: E731
    tolerance = 2e-2 if "16" in name else 1e-9
    check(make, [tensor(dtype(name), (3, 9))], [data((3, 9), name)], tolerance=tolerance)


@pytest.mark.parametrize("ids", [(), (4,), (2, 3)])
@pytest.mark.parametrize("axis", [0, 1])
def test_scatter_add(ids: tuple[int, ...], axis: int) -> None:
    shape = (5, 7)
    chosen = np.random.default_rng(0).integers(0, shape[axis], ids)
    updates = data((*shape[:axis], *ids, *shape[axis + 1 :]))
    make = lambda i, u: sdg.ScatterAddOp(i, u, axis=axis, shape=shape, domain=NO_DIMS)  # noqa: E731
    check(make, [tensor(I64, ids), tensor(F32, updates.shape)], [chosen, updates], tolerance=1e-5)


def test_scatter_add_of_scalars_and_out_of_range() -> None:
    make = lambda i, u: sdg.ScatterAddOp(i, u, axis=0, shape=(5,), domain=NO_DIMS)  # noqa: E731
    types = [tensor(I64, (3,)), tensor(F32, (3,))]
    check(make, types, [np.array([4, 0, 4]), data((3,))])
    for blocks in (CPU, SMALL, PADDED):
        _, status, _ = run(leaf_of(make, types), [np.array([4, 5, 0]), data((3,))], (5,), {}, blocks)
        assert status == [1, 5]
