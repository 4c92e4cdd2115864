"""Reshapes of what kernels compute element by element, at odd sizes: of what they read, where axes are split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.ir import SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.types import Tensor, dtype, shape_of, tensor
from tempo_ir.index import expr
from tempo_ir.lowering.kernels.blocks import CPU
from tempo_ir.lowering.kernels.reshaped_reads import reshape_reads
from tests.kernels.support import PADDED, SMALL, body_of, check_body, compare, data, meaning_of, run

Operands = list[tuple[int, ...]]


def f32(*shape: object) -> Tensor:
    return tensor(dtype("f32"), shape)  # pyright: ignore[reportArgumentType]


def body(new: tuple[object, ...], behind: bool = False) -> Callable[..., SSAValue]:
    """`tanh(x * scale) + 0.5` in a new shape, with a sum over the last axis behind it."""

    def make(add: Any, x: SSAValue, scale: SSAValue) -> SSAValue:
        half = add(sdg.ConstantOp, 0.5, f32())
        value = add(sdg.AddOp, add(sdg.TanhOp, add(sdg.MulOp, x, scale)), half)
        value = add(sdg.ReshapeOp, value, new)
        return add(sdg.SumOp, value, [len(new) - 1]) if behind else value

    return make


SPLIT: list[tuple[Operands, tuple[int, ...]]] = [
    ([(3, 12), (12,)], (3, 2, 6)),
    ([(3, 12), (3, 1)], (3, 2, 2, 3)),
    ([(6, 12), (12,)], (2, 3, 4, 3)),
    ([(6, 10), (1, 10)], (2, 3, 1, 5, 2)),
    ([(12,), (1,)], (1, 4, 3, 1)),
    ([(0, 12), (12,)], (0, 2, 6)),
]
KEPT: list[tuple[Operands, tuple[int, ...]]] = [
    ([(3, 12), (12,)], (36,)),
    ([(3, 12), (12,)], (4, 9)),
    ([(3, 12), (12,)], (3, 1, 12)),
    ([(4, 6), (6,)], (8, 3)),
]


def reshaped(block: Any) -> list[bool]:
    """Whether each reshape is one of an argument."""
    return [op.operand in block.args for op in block.ops if isinstance(op, sdg.ReshapeOp)]


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize(("shapes", "new"), [*SPLIT, *KEPT])
def test_numbers(shapes: Operands, new: tuple[int, ...], behind: bool) -> None:
    inputs = [data(shape, seed=seed) for seed, shape in enumerate(shapes)]
    types = [f32(*shape) for shape in shapes]
    check_body(body(new, behind), types, inputs)
    leaf = body_of(body(new, behind), types)
    before = meaning_of(leaf, inputs, {})
    reshape_reads(leaf.body.block)
    leaf.verify()
    assert np.array_equal(meaning_of(leaf, inputs, {}), before)
    for blocks, native in ((SMALL, False), (PADDED, False), (CPU, True)):
        result, _, kernel = run(leaf, inputs, before.shape, {}, blocks, native=native)
        compare(result, before, 1e-5, str(kernel))
    assert all(reshaped(leaf.body.block)) == ((shapes, new) in SPLIT)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_beside_an_extent_of_the_call(n: int) -> None:
    types = [f32(expr("n"), 12), f32(12)]
    leaf = body_of(body((expr("n"), 3, 4)), types)
    reshape_reads(leaf.body.block)
    assert [shape_of(op.results[0].type)[-2:] for op in leaf.body.block.ops if isinstance(op, sdg.ReshapeOp)] == [
        (3, 4),
        (3, 4),
    ]
    check_body(body((expr("n"), 3, 4)), types, [data((n, 12)), data((12,), seed=1)], {"n": n})


def test_what_others_read_stays() -> None:
    def twice(add: Any, x: SSAValue, scale: SSAValue) -> SSAValue:
        value = add(sdg.MulOp, x, scale)
        total = add(sdg.SumOp, value, [0, 1])
        return add(sdg.AddOp, add(sdg.ReshapeOp, value, (3, 2, 6)), total)

    def product(add: Any, x: SSAValue, w: SSAValue) -> SSAValue:
        value = add(sdg.ContractOp, "bk,nk->bn", x, w)
        return add(sdg.ReshapeOp, add(sdg.TanhOp, value), (3, 2, 6))

    for make, shapes in ((twice, [(3, 12), (12,)]), (product, [(3, 5), (12, 5)])):
        types = [f32(*shape) for shape in shapes]
        leaf = body_of(make, types)
        reshape_reads(leaf.body.block)
        assert reshaped(leaf.body.block) == [False]
        check_body(make, types, [data(shape, seed=seed) for seed, shape in enumerate(shapes)])


def test_a_long_chain() -> None:
    def chain(add: Any, x: SSAValue, scale: SSAValue) -> SSAValue:
        value = add(sdg.MulOp, x, scale)
        for _ in range(3000):
            value = add(sdg.NegOp, value)
        return add(sdg.ReshapeOp, value, (3, 2, 6))

    leaf = body_of(chain, [f32(3, 12), f32(12)])
    reshape_reads(leaf.body.block)
    assert reshaped(leaf.body.block) == [True, True]
    assert len(list(leaf.body.block.ops)) == 3000 + 1 + 2 + 1
