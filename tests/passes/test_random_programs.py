"""Random programs through every pass: outputs stay, gradients are those of central differences."""

from __future__ import annotations

import numpy as np
import pytest
from passes_support import apply, check_gradients, draw, outputs, parse, program_of
from random_programs import random_program

from tempo_ir.passes.pipeline import DEFAULT_PIPELINE

BOUNDS = [{"B": 1, "T": 1}, {"B": 2, "T": 3}, {"B": 3, "T": 5}]
PASSES = ("sdg-simplify", "sdg-fold-constants", "sdg-cse", "sdg-dce", "sdg-reduce-domain", "sdg-vectorize")


def check(text: str, *passes: str, **options: object) -> None:
    plain, changed = parse(text), apply(parse(text), *passes, **options)
    for bounds in BOUNDS:
        arrays = draw(program_of(plain), bounds)
        want, have = outputs(plain, arrays, bounds), outputs(changed, arrays, bounds)
        for key in want:
            np.testing.assert_allclose(have[key], want[key], rtol=1e-9, atol=1e-9, err_msg=f"{key} at {bounds}")


@pytest.mark.parametrize("seed", range(12))
def test_every_pass(seed):
    text = random_program(seed)
    check(text, *PASSES)
    check(text, "sdg-vectorize", all=True)
    check(text, "sdg-tile", tile=2)
    check(text, "sdg-tile", tile=2, static=True)


@pytest.mark.parametrize("seed", range(100, 106))
def test_gradients(seed):
    text = random_program(seed, steps=7, gradients=True)
    check_gradients(text, {"B": 2, "T": 3})
    plain, changed = apply(parse(text), "sdg-autodiff"), apply(parse(text), *DEFAULT_PIPELINE)
    for bounds in BOUNDS:
        arrays = draw(program_of(plain), bounds)
        want, have = outputs(plain, arrays, bounds), outputs(changed, arrays, bounds)
        for key in want:
            np.testing.assert_allclose(have[key], want[key], rtol=1e-9, atol=1e-9, err_msg=f"{key} at {bounds}")
