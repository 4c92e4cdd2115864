"""Random programs of which data ends a dim."""

from __future__ import annotations

import random

import pytest

from tempo_ir.dialects.sdg import GradOp
from tests.fuzz.check import apply, failure_of
from tests.fuzz.endings import check_meaning, ended
from tests.fuzz.generator import generate


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_programs_that_end_by_data(first: int) -> None:
    """They give what the program without the end gives for as many steps, and do so at every level."""
    ends, counts = 0, set[int]()
    for number in range(first, first + 10):
        module = generate(f"end {number}", 5)
        if any(isinstance(op, GradOp) for op in module.walk()):
            apply(module, "sdg-autodiff")
        other = ended(module, random.Random(number))
        if other is None:
            continue
        counts.update(check_meaning(module, other))
        ends += 1
        failure = failure_of(str(other), thorough=False, native=number % 5 == 0)
        assert failure is None or failure.is_refusal, f"{failure}\n{other}"
    assert ends > 3
    assert len(counts) > 3
