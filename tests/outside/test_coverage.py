"""Which torch operator each op of the graph is compared with, so that none is left out unseen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from oracle import record, samples_of, varied
from test_torch_operators import LARGEST, TABLE

import tempo_ir as tp
from tempo_ir.dialects import get_all_dialects
from tempo_ir.tools.programs import load_text

SAME_NAME = (
    "neg abs sign exp log log1p sqrt rsqrt tanh sigmoid erf sin cos floor ceil round add sub mul pow minimum maximum "
    "lt le gt ge eq ne sum prod mean argmax argmin softmax cumsum cumprod reshape transpose sort argsort arange"
).split()
OTHER_NAME = {
    "constant": "full",
    "not": "logical_not",
    "cast": "long",
    "div": "true_divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "select": "where",
    "max": "amax",
    "min": "amin",
    "contract": "matmul",
    "broadcast": "expand",
    "slice": "narrow",
    "pad": "constant_pad_nd",
    "concat": "cat",
    "gather": "index_select",
    "scatter_add": "index_add",
    "one_hot": "nn.functional.one_hot",
    "reverse": "flip",
}
COUNTERPARTS = {**{name: name for name in SAME_NAME}, **OTHER_NAME}
"""The operator of torch's database by op, without `sdg.`"""
WITHOUT = {
    "program": "it is what holds the others",
    "input": "it is an argument",
    "parameter": "it is an argument",
    "output": "it is a result",
    "index": "torch has no dims that count",
    "merge": "torch has no definition by cases: tests/semantics, jax.lax.scan in test_jax_recurrences.py",
    "until": "torch has no loop that ends by data",
    "host_state": "it is the caller's object",
    "host": "it is the caller's function",
    "grad": "torch.autograd is its counterpart, beside every operator here and in test_derivatives.py",
    "stop_gradient": "it computes nothing: torch's detach in test_derivatives.py",
    "keep": "it computes nothing: where rows lie is no matter of torch's",
    "swap": "it computes nothing: where rows lie is no matter of torch's",
    "dealloc": "it computes nothing: how long rows stay is no matter of torch's",
    "custom_gradient": "it computes nothing: torch.autograd.Function in the tests of gradients",
    "cotangent": "it stands inside of a custom gradient only",
    "random": "torch draws other numbers from a seed: tests/reference/test_philox.py has the published ones",
}
"""Ops without an operator in torch's database, and why."""


def names() -> list[str]:
    """All ops of the dialect, without `sdg.`"""
    return [op.name.removeprefix("sdg.") for op in get_all_dialects()["sdg"]().operations]


def recorded(operator: str) -> set[str]:
    """The ops that samples of an operator, and their gradients, become."""
    for dtype in (torch.float64, torch.int64, torch.bool):
        if samples := varied(samples_of(operator, dtype, LARGEST), 4):
            module = record(TABLE[operator], samples).program.module
            return {op.name.removeprefix("sdg.") for op in module.walk()}
    raise AssertionError(f"no samples of {operator}")


def test_every_op_has_a_counterpart_or_a_reason() -> None:
    assert {*COUNTERPARTS} <= {*names()} <= {*COUNTERPARTS, *WITHOUT}
    assert not COUNTERPARTS.keys() & WITHOUT.keys()
    assert {*COUNTERPARTS.values()} <= TABLE.keys()


@pytest.mark.parametrize("name", sorted(COUNTERPARTS.keys() - {"one_hot"}))
def test_samples_of_the_counterpart_become_the_op(name: str) -> None:
    assert name in recorded(COUNTERPARTS[name])


def test_one_hot_beside_torchs(record_property: Callable[[str, object], None]) -> None:
    """The op itself, as text: programs compare with a range instead."""
    samples = list(samples_of("nn.functional.one_hot", torch.int64, LARGEST))
    for sample in samples:
        (ids,) = sample.tensors
        (expected,) = sample.expected([ids])
        shape, depth = "".join(f"{n}x" for n in ids.shape), expected.shape[-1]
        text = f"""
        sdg.program @p {{
          %x = sdg.input "x" : tensor<{shape}i64>
          %y = sdg.one_hot %x depth {depth} : (tensor<{shape}i64>) -> tensor<{shape}{depth}xi64>
          sdg.output "y" %y : tensor<{shape}{depth}xi64>
        }}"""
        for target in ("cpu", "reference"):
            y = tp.compile(load_text(text, "one_hot.mlir").source, target)(x=ids.numpy())["y"]
            np.testing.assert_array_equal(y, expected.numpy(), err_msg=f"{sample} on {target}")
    assert len(samples) >= 3
    record_property("samples: forward", len(samples))
