"""Kernels of several ops, at odd sizes: attention in one pass, rows whose statistics are kept, joined axes."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import AllocOp, BodyOperation, BufferAccess, BufferDim, BufferType
from tempo_ir.dialects.types import Tensor, dtype, shape_of, tensor
from tempo_ir.index import Space, expr, index
from tempo_ir.lowering.kernels.collapse import collapsed
from tempo_ir.lowering.kernels.layout import Layout, array_of
from tempo_ir.lowering.kernels.orders import outer_axes
from tests.kernels.support import body_of, check_body, data

SIZES = [0, 1, 2, 3, 5, 17]


def f32(*shape: object) -> Tensor:
    return tensor(dtype("f32"), shape)  # pyright: ignore[reportArgumentType]


def attention(add, q: SSAValue, k: SSAValue, v: SSAValue) -> SSAValue:
    scores = add(sdg.ContractOp, "bhgd,nbhd->bhgn", q, k)
    return add(sdg.ContractOp, "bhgn,nbhd->bhgd", add(sdg.SoftmaxOp, scores, 3), v)


def test_a_body_of_many_ops_that_share_operands() -> None:
    """The paths through it double with every op, what is looked for along them is not looked for twice."""

    def chain(add, x: SSAValue, w: SSAValue) -> SSAValue:
        value = add(sdg.ContractOp, "nk,kd->nd", x, w)
        for _ in range(60):
            value = add(sdg.TanhOp, add(sdg.AddOp, value, value))
        return value

    check_body(chain, [f32(3, 4), f32(4, 5)], [data((3, 4)), data((4, 5), seed=1)])

    def without(add, x: SSAValue) -> SSAValue:
        for _ in range(60):
            x = add(sdg.TanhOp, add(sdg.AddOp, x, x))
        return x

    check_body(without, [f32(3, 4)], [data((3, 4))])


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("group", [1, 2])
def test_attention_in_one_pass(n: int, group: int) -> None:
    types = [f32(2, 3, group, 5), f32(expr("n"), 2, 3, 5), f32(expr("n"), 2, 3, 5)]
    inputs = [data((2, 3, group, 5)), data((n, 2, 3, 5), seed=1), data((n, 2, 3, 5), seed=2)]
    check_body(attention, types, inputs, {"n": n})


@pytest.mark.parametrize("n", [70])
def test_attention_over_several_blocks(n: int) -> None:
    types = [f32(1, 2, 2, 20), f32(expr("n"), 1, 2, 20), f32(expr("n"), 1, 2, 20)]
    inputs = [data((1, 2, 2, 20)) * 5, data((n, 1, 2, 20), seed=1), data((n, 1, 2, 20), seed=2)]
    check_body(attention, types, inputs, {"n": n})


@pytest.mark.parametrize("n", [1, 5, 17])
def test_masked_attention(n: int) -> None:
    """Scores that are -inf, in the last row all of them."""

    def masked(add, x: SSAValue, keep: SSAValue, v: SSAValue) -> SSAValue:
        nothing = add(sdg.ConstantOp, -np.inf, tensor(dtype("f32"), ()))
        scores = add(sdg.SelectOp, keep, x, nothing)
        return add(sdg.ContractOp, "bn,nd->bd", add(sdg.SoftmaxOp, scores, 1), v)

    keep = data((3, n), "bool", seed=3)
    keep[2] = False
    types = [f32(3, expr("n")), tensor(dtype("bool"), (3, expr("n"))), f32(expr("n"), 6)]
    check_body(masked, types, [data((3, n)), keep, data((n, 6), seed=1)], {"n": n})


@pytest.mark.parametrize("n", SIZES)
def test_weights_on_either_side(n: int) -> None:
    """The softmax is the right operand; the result has rows only, columns only, or neither."""

    def right(add, v: SSAValue, x: SSAValue) -> SSAValue:
        return add(sdg.ContractOp, "nd,nb->db", v, add(sdg.SoftmaxOp, x, 0))

    def vector(add, v: SSAValue, x: SSAValue) -> SSAValue:
        return add(sdg.ContractOp, "nd,n->d", v, add(sdg.SoftmaxOp, x, 0))

    def number(add, v: SSAValue, x: SSAValue) -> SSAValue:
        return add(sdg.ContractOp, "n,n->", v, add(sdg.SoftmaxOp, x, 0))

    t = expr("n")
    check_body(right, [f32(t, 5), f32(t, 3)], [data((n, 5)), data((n, 3), seed=1)], {"n": n})
    check_body(vector, [f32(t, 5), f32(t)], [data((n, 5)), data((n,), seed=1)], {"n": n})
    check_body(number, [f32(t), f32(t)], [data((n,)), data((n,), seed=1)], {"n": n})


@pytest.mark.parametrize("n", SIZES)
def test_softmax_rows(n: int) -> None:
    def twice(add, x: SSAValue, y: SSAValue) -> SSAValue:
        return add(sdg.MulOp, add(sdg.SoftmaxOp, add(sdg.AddOp, x, y), 2), y)

    types = [f32(2, 3, expr("n")), f32(2, 3, expr("n"))]
    check_body(twice, types, [data((2, 3, n)) * 9, data((2, 3, n), seed=1)], {"n": n})


# Joined axes


@pytest.mark.parametrize("t", SIZES)
def test_sums_over_steps_and_rows(t: int) -> None:
    def weights(add, x: SSAValue, y: SSAValue) -> SSAValue:
        return add(sdg.ContractOp, "tbk,tbn->kn", add(sdg.TanhOp, x), y)

    def total(add, x: SSAValue) -> SSAValue:
        return add(sdg.SumOp, add(sdg.MulOp, x, x), (0, 1, 2))

    def columns(add, x: SSAValue) -> SSAValue:
        return add(sdg.SumOp, x, (0, 1))

    for rows in (3, 8):
        x, y = f32(expr("t"), rows, 5), f32(expr("t"), rows, 7)
        inputs = [data((t, rows, 5)), data((t, rows, 7), seed=1)]
        check_body(weights, [x, y], inputs, {"t": t}, 1e-4)
        check_body(total, [x], inputs[:1], {"t": t}, 1e-4)
        check_body(columns, [x], inputs[:1], {"t": t}, 1e-4)


@pytest.mark.parametrize("t", SIZES)
def test_broadcasts_keep_axes_apart(t: int) -> None:
    def body(add, x: SSAValue, column: SSAValue, row: SSAValue, step: SSAValue) -> SSAValue:
        return add(sdg.AddOp, add(sdg.MulOp, x, column), add(sdg.SubOp, row, step))

    types = [f32(expr("t"), 4, 6), f32(expr("t"), 4, 1), f32(6), f32(expr("t"), 1, 1)]
    inputs = [data((t, 4, 6)), data((t, 4, 1), seed=1), data((6,), seed=2), data((t, 1, 1), seed=3)]
    check_body(body, types, inputs, {"t": t})


def shapes(leaf: BodyOperation) -> list[tuple[object, ...]]:
    """The shapes of the values of a body whose axes are joined."""
    layouts = [Layout.of(access.buffer.type, Space()) for access in (*leaf.reads, *leaf.writes)]  # pyright: ignore
    arrays = [array_of(access, layout) for access, layout in zip((*leaf.reads, *leaf.writes), layouts, strict=True)]
    block = collapsed(leaf, arrays[: len(leaf.reads)], arrays[len(leaf.reads) :]).block
    return [shape_of(value.type) for value in (*block.args, *(r for op in block.ops for r in op.results))]


def test_which_axes_are_joined() -> None:
    add_up = body_of(lambda add, x, y: add(sdg.AddOp, x, y), [f32(2, 3, 4), f32(2, 3, 4)])
    assert shapes(add_up) == [(24,)] * 3
    bias = body_of(lambda add, x, y: add(sdg.AddOp, x, y), [f32(2, 3, 4), f32(4)])
    assert shapes(bias) == [(6, 4), (4,), (6, 4)]
    column = body_of(lambda add, x, y: add(sdg.AddOp, x, y), [f32(2, 3, 4), f32(2, 1, 1)])
    assert shapes(column) == [(2, 12), (2, 1), (2, 12)]
    total = body_of(lambda add, x: add(sdg.SumOp, x, (0, 1)), [f32(2, 3, 4)])
    assert shapes(total) == [(6, 4), (4,)]
    heads = body_of(attention, [f32(2, 3, 4, 5), f32(7, 2, 3, 5), f32(7, 2, 3, 5)])
    assert shapes(heads)[:3] == [(6, 4, 5), (7, 6, 5), (7, 6, 5)]
    turned = body_of(lambda add, x: add(sdg.TransposeOp, x, (1, 0, 2)), [f32(2, 3, 4)])
    assert shapes(turned) == [(2, 3, 4), (3, 2, 4)]


def test_open_axes_are_joined_to_short_ones() -> None:
    t = expr("t")
    short = body_of(lambda add, x: add(sdg.ExpOp, x), [f32(t, 8)])
    assert shapes(short) == [(t * 8,)] * 2
    long = body_of(lambda add, x: add(sdg.ExpOp, x), [f32(t, 8, 64)])
    assert shapes(long) == [(t, 512)] * 2


# Orders


def test_windows_of_heads_lie_in_one_stretch() -> None:
    """Batch and heads lie outside of the steps; where something else reads the window, nothing does."""
    leaf = body_of(attention, [f32(2, 3, 4, 5), f32(expr("t"), 2, 3, 5), f32(expr("t"), 2, 3, 5)])
    buffer = AllocOp(BufferType.of((BufferDim("t"),), f32(2, 3, 5))).buffer
    window = BufferAccess.of(buffer, index("[0:t]"))
    others = leaf.reads[0], leaf.reads[2]
    type(leaf)([others[0], window, others[1]], leaf.writes, leaf.detach_region(leaf.body), ())
    assert outer_axes(buffer) == 2
    layout = Layout.of(BufferType.of((BufferDim("t", inside=2),), f32(2, 3, 5)), Space((("t", expr("T")),)))
    assert [str(axis.stride) for axis in array_of(window, layout).axes] == ["5", "15 * T", "5 * T", "1"]
    assert str(layout.size) == "30 * T"
