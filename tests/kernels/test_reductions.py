"""Reductions, softmax and contractions as tile kernels, at odd sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import NO_DIMS
from tempo_ir.dialects.types import Tensor, dtype, tensor
from tempo_ir.index import expr
from tests.kernels.support import check, data

REDUCTIONS = [sdg.SumOp, sdg.ProdOp, sdg.MaxOp, sdg.MinOp, sdg.MeanOp]


def f32(*shape: object) -> Tensor:
    return tensor(dtype("f32"), shape)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_reductions(op: type, axes: tuple[int, ...]) -> None:
    check(lambda a: op(a, axes, domain=NO_DIMS), [f32(3, 5, 7)], [data((3, 5, 7))], tolerance=1e-4)


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("t", [0, 1, 6, 9])
def test_dynamic_axis(op: type, t: int) -> None:
    if t == 0 and op is sdg.MeanOp:
        return
    for shape, axes in (
        ((expr("t"), 3), (0,)),
        ((3, expr("t")), (1,)),
        ((expr("t"),), (0,)),
        ((2, expr("t"), 3), (1,)),
    ):
        x = data([n if isinstance(n, int) else t for n in shape])
        check(lambda a, axes=axes: op(a, axes, domain=NO_DIMS), [f32(*shape)], [x], {"t": t}, tolerance=1e-5)


@pytest.mark.parametrize("name", ["i8", "i64", "u8", "f16", "bf16", "f64"])
@pytest.mark.parametrize("op", [sdg.SumOp, sdg.MaxOp, sdg.MinOp, sdg.ProdOp])
def test_dtypes(op: type, name: str) -> None:
    x = data((3, 9), name)
    tolerance = 2e-2 if "16" in name else 1e-6
    check(lambda a: op(a, (1,), domain=NO_DIMS), [tensor(dtype(name), (3, 9))], [x], tolerance=tolerance)


def test_booleans() -> None:
    x = data((3, 9), "bool")
    for op in (sdg.MaxOp, sdg.MinOp):
        check(lambda a, op=op: op(a, (1,), domain=NO_DIMS), [tensor(dtype("bool"), (3, 9))], [x])
        empty = tensor(dtype("bool"), (3, expr("t")))
        check(lambda a, op=op: op(a, (1,), domain=NO_DIMS), [empty], [x[:, :0]], {"t": 0})


@pytest.mark.parametrize("op", [sdg.ArgmaxOp, sdg.ArgminOp])
def test_positions(op: type) -> None:
    x = np.round(data((4, 9)))
    x[1, 4] = x[1, 6] = np.nan
    x[2] = -np.inf
    for axis in (0, 1):
        check(lambda a, axis=axis: op(a, axis, domain=NO_DIMS), [f32(4, 9)], [x])
    check(lambda a: op(a, 0, domain=NO_DIMS), [f32(9)], [x[0]])
    check(lambda a: op(a, 1, domain=NO_DIMS), [tensor(dtype("bool"), (4, 9))], [x > 0])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax(axis: int) -> None:
    x = data((3, 5, 7)) * 3
    x[1] = -np.inf
    x[0, 2, 3] = -np.inf
    check(lambda a: sdg.SoftmaxOp(a, axis, domain=NO_DIMS), [f32(3, 5, 7)], [x])


@pytest.mark.parametrize("t", [0, 1, 6, 9])
def test_softmax_of_a_dynamic_axis(t: int) -> None:
    x = data((2, 3, t))
    check(lambda a: sdg.SoftmaxOp(a, 2, domain=NO_DIMS), [f32(2, 3, expr("t"))], [x], {"t": t})


SPECS = [
    "bk,kn->bn", "bk,nk->bn", "kb,kn->bn", "bk,kn->nb", "k,kn->n", "k,nk->n", "bk,k->b", "k,k->", "i,j->ij", "i,i->i",
    "hgd,nhd->hgn", "hgn,nhd->hgd", "bij,bjk->bik", "bij,bj->bi", "bcgx,cgxd->bd", "bk,bn->kn", "tbk,tbn->kn",
    "ij->ji", "ij->i", "ii->i", "ii,ij->j", "ab,bc,cd->ad", "mnk,k->mn", "m,n->", "bk,kn->b", "ij,ij->", "b,bkn->kn",
]  # fmt: skip


@pytest.mark.parametrize("spec", SPECS)
def test_contract(spec: str) -> None:
    sizes = dict(zip("abcdghijkmntx", (3, 5, 2, 7, 2, 3, 4, 5, 7, 3, 9, 2, 3), strict=True))
    inputs = spec.split("->")[0].split(",")
    shapes = [tuple(sizes[letter] for letter in letters) for letters in inputs]
    arrays = [data(shape, seed=n) for n, shape in enumerate(shapes)]
    check(
        lambda *a: sdg.ContractOp(spec, *a, domain=NO_DIMS), [f32(*shape) for shape in shapes], arrays, tolerance=2e-5
    )


@pytest.mark.parametrize("t", [0, 1, 6, 9])
def test_dynamic_contractions(t: int) -> None:
    n = expr("t")
    q, k, p = data((2, 3, 5)), data((t, 2, 5), seed=1), data((2, 3, t), seed=2)
    symbols = {"t": t}
    types = [f32(2, 3, 5), f32(n, 2, 5)]
    check(lambda *a: sdg.ContractOp("hgd,nhd->hgn", *a, domain=NO_DIMS), types, [q, k], symbols, tolerance=1e-5)
    types = [f32(2, 3, n), f32(n, 2, 5)]
    check(lambda *a: sdg.ContractOp("hgn,nhd->hgd", *a, domain=NO_DIMS), types, [p, k], symbols, tolerance=1e-5)


@pytest.mark.parametrize("name", ["i64", "i8", "f16", "bf16", "f64"])
def test_contraction_dtypes(name: str) -> None:
    x, y = data((3, 5), name), data((5, 4), name, 1)
    types = [tensor(dtype(name), (3, 5)), tensor(dtype(name), (5, 4))]
    tolerance = 2e-2 if "16" in name else 1e-6
    check(lambda *a: sdg.ContractOp("bk,kn->bn", *a, domain=NO_DIMS), types, [x, y], tolerance=tolerance)
