"""The same text at every level, and the same bits, under ten values of PYTHONHASHSEED: `make test` tries four."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEEDS = ("0", "1", "123", "4294967295", "2", "3", "17", "4711", "65537", "999983")
FEW = 4


def hashes(seed: str, programs: tuple[str, ...]) -> list[str]:
    """The lines of a process with this hash seed."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(Path(__file__).with_name("hash_seed_programs.py")), *programs]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


SHORT = ("window attention", "rnn", "cases", "tiles")


@pytest.mark.parametrize(
    ("programs", "seeds"),
    [
        (SHORT, SEEDS[:FEW]),
        pytest.param(SHORT, (SEEDS[0], *SEEDS[FEW:]), marks=pytest.mark.slow),
        pytest.param(("reinforce",), SEEDS, marks=pytest.mark.slow),
    ],
    ids=len,
)
def test_text_and_bits_do_not_depend_on_the_hash_seed(programs: tuple[str, ...], seeds: tuple[str, ...]) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, *others = pool.map(partial(hashes, programs=programs), seeds)
    assert {line.split(": ")[0] for line in first} == {*programs}
    assert len(first) >= len(programs) * (1 + 8 + 4 + 1)  # as recorded, after each pass, the levels below, an output
    for seed, lines in zip(seeds[1:], others, strict=True):
        different = [line for line, other in zip(first, lines, strict=True) if line != other]
        assert not different, f"under PYTHONHASHSEED={seed} the first of these is another: {different[:3]}"
