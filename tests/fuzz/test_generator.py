"""The generator: the same program for a seed, whatever the hash seed, and all kinds of programs."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from tests.fuzz.coverage import Coverage
from tests.fuzz.generator import generate, text_of

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = """
import hashlib
from tests.fuzz.generator import generate, text_of
text = "".join(text_of(generate(seed)) for seed in range(6))
print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_a_seed_is_a_program():
    text = "".join(text_of(generate(seed)) for seed in range(6))
    expected = hashlib.sha256(text.encode()).hexdigest()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected


def test_all_kinds_of_programs():
    coverage = Coverage()
    for seed in range(60):
        coverage.add(generate(f"kinds {seed}"))
    assert {"1 dims", "2 dims", "3 dims", "recurrences", "gradients", "cases", "dynamic extents"} <= set(coverage.forms)
    assert {"f32", "f64", "i64", "bool"} <= set(coverage.forms)
    wanted = {"shift back", "shift forward", "reversed", "modular", "floordiv", "clamped by min or max", "constant"}
    ranges = {"prefix", "suffix", "window on both sides", "range with a step", "whole range (across a dim)"}
    assert wanted | ranges <= set(coverage.entries)
    assert len(coverage.ops) > 40
    assert coverage.programs == 60
