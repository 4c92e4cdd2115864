"""Reshapes of what kernels compute element by element, at odd sizes: of what they read, where axes are split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

import tempo_ir as tp
from tempo_ir.dialects import sdg
from tempo_ir.dialects.types import Tensor, dtype, shape_of, tensor
from tempo_ir.index import expr
from tempo_ir.lowering.kernels.blocks import CPU
from tempo_ir.lowering.kernels.reshaped_reads import reshape_reads
from tempo_ir.reference.sdg import run as run_graph
from tests.kernels.support import PADDED, SMALL, body_of, check_body, compare, data, meaning_of, run
from tests.schedule.schedule_support import arguments, parse

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


WRITTEN_OTHERWISE = {
    "open beside static": """
sdg.program @p dims(t: T) where T = 5 {
  %a = sdg.input "a" in (t) : tensor<12xf32>
  %b = sdg.input "b" in () : tensor<5x12xf32>
  %y = sdg.mul %a[0:T], %b in () : (tensor<12xf32>, tensor<5x12xf32>) -> tensor<5x12xf32>
  %z = sdg.reshape %y in () : (tensor<5x12xf32>) -> tensor<5x3x4xf32>
  sdg.output "z" %z in () : tensor<5x3x4xf32>
}
""",
    "two names": """
sdg.program @p dims(t: T, s: S) where S = T {
  %a = sdg.input "a" in (t) : tensor<12xf32>
  %b = sdg.input "b" in (s) : tensor<12xf32>
  %y = sdg.mul %a[0:T], %b[0:S] in () : (tensor<12xf32>, tensor<12xf32>) -> tensor<?x12xf32, #sdg.size<T>>
  %z = sdg.reshape %y in () : (tensor<?x12xf32, #sdg.size<T>>) -> tensor<?x3x4xf32, #sdg.size<T>>
  sdg.output "z" %z in () : tensor<?x3x4xf32, #sdg.size<T>>
}
""",
    "a window": """
sdg.program @p dims(t: T) where T >= 4 {
  %a = sdg.input "a" in (t) : tensor<12xf32>
  %b = sdg.input "b" in () : tensor<4x12xf32>
  %y = sdg.mul %a[max(0, t - 3):t + 1], %b in (t: 3 to T) : (tensor<12xf32>, tensor<4x12xf32>) -> tensor<4x12xf32>
  %z = sdg.reshape %y[t] in (t: 3 to T) : (tensor<4x12xf32>) -> tensor<4x3x4xf32>
  %o = sdg.sum %z[t] axes [0] in (t: 3 to T) : (tensor<4x3x4xf32>) -> tensor<3x4xf32>
  sdg.output "z" %o[t] in (t: 3 to T) : tensor<3x4xf32>
}
""",
    "split where open": """
sdg.program @p dims(t: T) where T = 12 {
  %a = sdg.input "a" in (t) : tensor<f32>
  %b = sdg.input "b" in () : tensor<5x12xf32>
  %y = sdg.mul %b, %a[0:T] in () : (tensor<5x12xf32>, tensor<f32>) -> tensor<5x12xf32>
  %z = sdg.reshape %y in () : (tensor<5x12xf32>) -> tensor<5x3x4xf32>
  sdg.output "z" %z in () : tensor<5x3x4xf32>
}
""",
}


@pytest.mark.parametrize(("name", "steps"), [
    ("open beside static", 5), ("two names", 0), ("two names", 1), ("two names", 5), ("a window", 4), ("a window", 9),
    ("split where open", 12),
])  # fmt: skip
def test_extents_that_are_equal_and_written_otherwise(name: str, steps: int) -> None:
    """They are no axes of one element."""
    graph = parse(WRITTEN_OTHERWISE[name])
    sizes = {"T": steps, "S": steps} if name == "two names" else {"T": steps}
    given = arguments(graph, sizes)
    expected = run_graph(graph, given, sizes)["z"]
    found = tp.compile(ModuleOp([graph]), cache=False)(**given, **sizes)["z"]
    first = 3 if name == "a window" else 0  # rows of no point have no value
    np.testing.assert_allclose(found[first:], expected[first:], rtol=1e-5, atol=1e-6)


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
