"""The same text at every level, and the same bits, under ten values of PYTHONHASHSEED."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEEDS = ("0", "1", "2", "3", "17", "123", "4711", "65537", "999983", "4294967295")


def hashes(seed: str, programs: tuple[str, ...]) -> list[str]:
    """The lines of a process with this hash seed."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(Path(__file__).with_name("hash_seed_programs.py")), *programs]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "programs",
    [("window attention", "rnn", "cases", "tiles"), pytest.param(("reinforce",), marks=pytest.mark.slow)],
    ids=len,
)
def test_text_and_bits_do_not_depend_on_the_hash_seed(programs: tuple[str, ...]) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, *others = pool.map(partial(hashes, programs=programs), SEEDS)
    assert {line.split(": ")[0] for line in first} == {*programs}
    assert len(first) >= len(programs) * (1 + 8 + 4 + 1)  # as recorded, after each pass, the levels below, an output
    for seed, lines in zip(SEEDS[1:], others, strict=True):
        different = [line for line, other in zip(first, lines, strict=True) if line != other]
        assert not different, f"under PYTHONHASHSEED={seed} the first of these is another: {different[:3]}"
