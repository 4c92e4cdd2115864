"""The first steps of a recurrence computed apart: a language model says the same, whatever the prompt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tempo_ir as tp
from examples.llama import decode
from tempo_ir import llm
from tempo_ir.passes.pipeline import default_pipeline, with_options
from tempo_ir.runtime.compiler import lower, module_of

SPLIT = {"sdg-split": {}}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small model of two layers."""
    path: Path = tmp_path_factory.mktemp("llama")
    sizes = {"layers": 2, "hidden": 32, "heads": 4, "kv_heads": 2, "vocabulary": 50, "feed_forward": 48}
    return str(llm.write_random_llama(path, seed=3, **sizes))


@pytest.mark.parametrize("settings", [{}, {"window": 3}, {"batch": 2}], ids=str)
def test_a_model_says_the_same(model: str, settings: dict[str, int]):
    program = decode(model=model, **settings)
    whole, split = tp.compile(program), tp.compile(program, options=SPLIT)
    state = whole.init()
    for steps, length in [(1, 1), (1, 9), (5, 5), (7, 20), (70, 80)]:
        prompt = np.random.default_rng(steps).integers(0, 50, size=(steps, settings.get("batch", 1)))
        expected = whole(prompt=prompt, T=length, state=state)["token"]
        np.testing.assert_array_equal(split(prompt=prompt, T=length, state=state)["token"], expected)


def test_a_prompt_is_no_loop(model: str):
    """The one loop that is left is that of generation; attention of the prompt stands before it."""
    lowered = str(lower(module_of(decode(model=model)), "cpu", options=SPLIT).lowered)
    assert lowered.count("loop.for") == 1
    assert "_attend(" in lowered[: lowered.index("loop.for")]


def test_it_runs_before_what_it_splits_is_vectorised():
    pipeline = with_options([(name, {}) for name in default_pipeline()], {"sdg-split": {}, "sdg-tile": {}})
    names = [name for name, _ in pipeline]
    assert names.index("sdg-lift") < names.index("sdg-split") < names.index("sdg-tile") < names.index("sdg-accumulate")
