"""Random programs, and the reduced ones that once failed, in every way there is to run them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.check import failure_of
from tests.fuzz.generator import FURTHER, generate, text_of

FOUND = sorted((Path(__file__).parent / "found").glob("*.mlir"))


@pytest.mark.parametrize("path", FOUND, ids=[path.stem for path in FOUND])
def test_found(path):
    """Programs that a fault was found by."""
    failure = failure_of(path.read_text())
    assert failure is None, failure


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_on_the_graph(first):
    """Small programs through every pass and to the loop level, by the interpreters."""
    for number in range(first, first + 20):
        text = text_of(generate(f"graph {number}", 4))
        failure = failure_of(text, thorough=False, native=False)
        assert failure is None or failure.is_refusal, f"{failure}\n{text}"


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_on_the_cpu(first):
    """Programs compiled for the CPU."""
    for number in range(first, first + 10):
        text = text_of(generate(f"cpu {number}", 5))
        failure = failure_of(text, thorough=False)
        assert failure is None or failure.is_refusal, f"{failure}\n{text}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400, 20))
def test_in_every_way(first):
    """Larger programs, each pass left out in turn too."""
    for number in range(first, first + 20):
        text = text_of(generate(f"slow {number}", 12, FURTHER))
        failure = failure_of(text)
        assert failure is None or failure.is_refusal, f"{failure}\n{text}"
