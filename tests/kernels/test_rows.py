"""Results whose rows are reduced for them: norms, softmax and their like, in blocks of whole rows and of parts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.ir import SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.tile.memory import LoadOp
from tempo_ir.dialects.tile.structure import ForOp
from tempo_ir.dialects.types import Tensor, dtype, tensor
from tempo_ir.index import expr
from tempo_ir.lowering.kernels.blocks import CPU, LONGEST_ROW
from tests.kernels.support import Body, body_of, check_body, compare, data, kernel_of, meaning_of, run


def f32(*shape: object) -> Tensor:
    return tensor(dtype("f32"), shape)  # pyright: ignore[reportArgumentType]


def normed(add: Callable[..., SSAValue], x: SSAValue, w: SSAValue) -> SSAValue:
    scale = add(sdg.RsqrtOp, add(sdg.MeanOp, add(sdg.MulOp, x, x), (1,)))
    return add(sdg.MulOp, add(sdg.MulOp, x, add(sdg.ReshapeOp, scale, (_rows(x), 1))), w)


def centred(add: Callable[..., SSAValue], x: SSAValue, w: SSAValue) -> SSAValue:
    mean = add(sdg.ReshapeOp, add(sdg.MeanOp, x, (1,)), (_rows(x), 1))
    return normed(add, add(sdg.SubOp, x, mean), w)


def logarithms(add: Callable[..., SSAValue], x: SSAValue, w: SSAValue) -> SSAValue:
    greatest = add(sdg.ReshapeOp, add(sdg.MaxOp, x, (1,)), (_rows(x), 1))
    shifted = add(sdg.SubOp, x, greatest)
    total = add(sdg.ReshapeOp, add(sdg.SumOp, add(sdg.ExpOp, shifted), (1,)), (_rows(x), 1))
    return add(sdg.AddOp, add(sdg.SubOp, shifted, add(sdg.LogOp, total)), w)


def weights(add: Callable[..., SSAValue], x: SSAValue, w: SSAValue) -> SSAValue:
    return add(sdg.MulOp, add(sdg.SoftmaxOp, add(sdg.MulOp, x, x), 1), w)


def gradient(add: Callable[..., SSAValue], x: SSAValue, w: SSAValue) -> SSAValue:
    shares = add(sdg.SoftmaxOp, x, 1)
    product = add(sdg.MulOp, shares, w)
    total = add(sdg.ReshapeOp, add(sdg.SumOp, product, (1,)), (_rows(x), 1))
    return add(sdg.SubOp, product, add(sdg.MulOp, shares, total))


def beyond_the_first(add: Callable[..., SSAValue], x: SSAValue, w: SSAValue) -> SSAValue:
    found = add(sdg.CastOp, add(sdg.ArgmaxOp, x, 1), dtype("f32"))
    return add(sdg.AddOp, add(sdg.SubOp, x, add(sdg.ReshapeOp, found, (_rows(x), 1))), w)


def over_both(add: Callable[..., SSAValue], x: SSAValue, w: SSAValue) -> SSAValue:
    return add(sdg.SubOp, add(sdg.MulOp, x, w), add(sdg.MeanOp, x, (0, 1)))


def down_the_columns(add: Callable[..., SSAValue], x: SSAValue, w: SSAValue) -> SSAValue:
    return add(sdg.SubOp, add(sdg.MulOp, x, w), add(sdg.MaxOp, x, (0,)))


BODIES = [normed, centred, logarithms, weights, gradient, beyond_the_first, over_both, down_the_columns]


def _rows(x: SSAValue) -> int:
    return x.type.get_shape()[0]  # pyright: ignore


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 40), (3, 7), (5, 33)])
def test_short_rows(body: Body, rows: int, columns: int) -> None:
    inputs = [data((rows, columns)) * 3, data((columns,), seed=1)]
    check_body(body, [f32(rows, columns), f32(columns)], inputs, tolerance=1e-4)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
@pytest.mark.parametrize(("rows", "columns"), [(7, 1030), (2, 5003), (33, 130)])
def test_long_rows(body: Body, rows: int, columns: int) -> None:
    _check_native(body, rows, columns)


@pytest.mark.parametrize("body", [normed, weights], ids=lambda body: body.__name__)
def test_rows_too_long_to_be_held(body: Body) -> None:
    _check_native(body, 2, LONGEST_ROW + 5)


def _check_native(body: Body, rows: int, columns: int) -> None:
    leaf = body_of(body, [f32(rows, columns), f32(columns)])
    inputs = [data((rows, columns)) * 3, data((columns,), seed=1)]
    result, _, kernel = run(leaf, inputs, (rows, columns), {}, CPU, native=True)
    compare(result, meaning_of(leaf, inputs, {}), 1e-4, str(kernel))


@pytest.mark.parametrize("n", [0, 1, 3, 17])
def test_open_rows(n: int) -> None:
    """Of rows that only a call knows the number of, some are held; of those of open extent parts are."""

    def open_rows(add: Callable[..., SSAValue], x: SSAValue) -> SSAValue:
        return add(sdg.SoftmaxOp, x, 1)

    check_body(open_rows, [f32(expr("n"), 40)], [data((n, 40)) * 3], {"n": n})
    check_body(open_rows, [f32(3, expr("n"))], [data((3, n)) * 3], {"n": n})


@pytest.mark.parametrize("n", [3, 40])
def test_a_table_of_one_axis_twice(n: int) -> None:
    """The axis of the result is that of both sides of the table: what is summed of it has a lane of its own."""

    def body(add: Callable[..., SSAValue], x: SSAValue, y: SSAValue) -> SSAValue:
        table = add(sdg.MulOp, add(sdg.ReshapeOp, x, (n, 1)), add(sdg.ReshapeOp, y, (1, n)))
        table = add(sdg.AddOp, table, add(sdg.ReshapeOp, add(sdg.MulOp, y, y), (1, n)))
        sums = add(sdg.SumOp, table, (1,))
        return add(sdg.AddOp, add(sdg.AddOp, sums, add(sdg.MulOp, x, y)), add(sdg.MeanOp, x, (0,)))

    check_body(body, [f32(n), f32(n)], [data((n,)), data((n,), seed=1)], tolerance=1e-4)

    def triangle(add: Callable[..., SSAValue], x: SSAValue) -> SSAValue:
        """`x[j] - sum_k x[j] x[k]`, the sum over all k for each j of the same axis."""
        table = add(sdg.MulOp, add(sdg.ReshapeOp, x, (n, 1)), x)
        return add(sdg.SubOp, add(sdg.SubOp, x, add(sdg.SumOp, table, (1,))), add(sdg.SumOp, x, (0,)))

    check_body(triangle, [f32(n)], [data((n,))], tolerance=1e-4)


def test_a_row_is_read_once_for_all() -> None:
    """On the CPU a program holds whole rows, few enough for the first cache: no loop over parts of them, one load."""
    kernel = kernel_of(body_of(normed, [f32(64, 1024), f32(1024)])).kernel
    assert kernel.grid.data == (16,)
    assert not [op for op in kernel.walk() if isinstance(op, ForOp)]
    loads = [op.block.data for op in kernel.walk() if isinstance(op, LoadOp)]
    assert sorted(loads) == [(4, 1024), (1024,)]
