"""Decoding copies the prompt, once, and nothing else: tokens, keys and values are written where they stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tempo_ir as tp
from examples import llama
from tempo_ir import llm

SETTINGS: dict[str, dict[str, Any]] = {
    "causal": {},
    "window": {"window": 3},
    "local and global layers": {"window": 3, "global_every": 2},
    "end of sequence": {"until": 30},
}
SIZES = ((1, 1), (1, 2), (1, 7), (4, 4), (6, 7), (3, 9))
"""Tokens of the prompt and steps: all of them, one, all but one."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("llama")
    return str(llm.write_random_llama(path, seed=0, vocabulary=40, hidden=16, layers=2, heads=4, kv_heads=2))


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", SETTINGS)
def test_no_step_copies(model: str, name: str, batch: int) -> None:
    program = llama.decode(model=model, batch=batch, **SETTINGS[name])
    exe = tp.compile(program)
    assert exe.stats.copies_per_step == {"t": 0}
    assert str(exe.costs.near({"T": 100, "P": 10}).copies) == "P"  # one copy before the steps, of so many rows
    expected = tp.compile(program, target="reference")
    prompt = np.random.default_rng(0).integers(0, 40, (8, batch))
    state = exe.init()
    for length, steps in SIZES:
        arguments: dict[str, Any] = {"prompt": prompt[:length], "T": steps, "state": state}
        np.testing.assert_array_equal(exe(**arguments)["token"], expected(**arguments)["token"])
