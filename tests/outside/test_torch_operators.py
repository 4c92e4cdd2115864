"""Every operation beside torch's operator of its name, on the samples of torch's operator database."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from elementwise_table import BINARY, UNARY
from oracle import Batch, record, samples_of, varied
from reduction_table import CONTRACTIONS, REDUCTIONS
from shape_table import SHAPES

import tempo_ir as tp

TABLE = UNARY | BINARY | REDUCTIONS | CONTRACTIONS | SHAPES
LARGEST = 3000  # elements of a sample
FEW = 4  # samples of an operator, of different kinds
OTHER_TYPES = [torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.int32, torch.float16, torch.uint8]

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, of samples that are wrong on purpose


def check(batch: Batch, what: str, targets: tuple[str, ...], count: Callable[[str, object], None]) -> None:
    """The batch gives torch's numbers on each target."""
    arguments = batch.arguments()
    for target in targets:
        batch.check(tp.compile(batch.program, target)(**arguments), f"{what} on {target}")
    count("samples: forward", len(batch.recorded))
    count("samples: gradients", batch.gradients)
    count("samples: without a counterpart", len(batch.absent))


@pytest.mark.parametrize("name", TABLE)
def test_operator(name: str, record_property: Callable[[str, object], None]) -> None:
    """In f64, forward and gradients, compiled and interpreted."""
    few = varied(samples_of(name, torch.float64, LARGEST), FEW) or varied(samples_of(name, torch.int64, LARGEST), FEW)
    check(record(TABLE[name], few, gradients=True), name, ("cpu", "reference"), record_property)


@pytest.mark.parametrize("name", TABLE)
def test_operator_in_other_types(name: str, record_property: Callable[[str, object], None]) -> None:
    """f32 over a dim whose steps have different numbers, integers and booleans, bf16."""
    allowed = TABLE[name].dtypes
    for dtype, most in zip(OTHER_TYPES, (2, 1, 1, 1), strict=False):
        if allowed is None or dtype in allowed:
            few = varied(samples_of(name, dtype, LARGEST), most)
            batch = record(TABLE[name], few, spread=dtype == torch.float32)
            check(batch, f"{name} in {dtype}", ("cpu",), record_property)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_all_samples_of_an_operator(name: str, record_property: Callable[[str, object], None]) -> None:
    """All samples, in all types."""
    every = samples_of(name, torch.float64, LARGEST)
    check(record(TABLE[name], every, gradients=True), name, ("cpu", "reference"), record_property)
    allowed = TABLE[name].dtypes
    for dtype in OTHER_TYPES:
        if allowed is None or dtype in allowed:
            for spread in (False, True):
                batch = record(TABLE[name], samples_of(name, dtype, LARGEST), spread=spread)
                check(batch, f"{name} in {dtype}", ("cpu",), record_property)
