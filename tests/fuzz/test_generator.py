"""The generator: the same program for a seed, whatever the hash seed, and all kinds of programs."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.fuzz.__main__ import main
from tests.fuzz.check import SLOW, Failure, parse, program_of
from tests.fuzz.coverage import Coverage
from tests.fuzz.generator import FURTHER, generate, needs_itself, text_of
from tests.fuzz.isolation import answers

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = """
import hashlib
from tests.fuzz.generator import generate, text_of
text = "".join(text_of(generate(seed)) for seed in range(3))
print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_a_seed_is_a_program():
    text = "".join(text_of(generate(seed)) for seed in range(3))
    expected = hashlib.sha256(text.encode()).hexdigest()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected


POINTS = {
    "current", "shift back", "shift forward", "reversed", "modular", "floordiv", "scaled", "clamped by min or max",
    "constant", "last, or by bounds alone", "point of another dim", "points of several dims",
}  # fmt: skip
RANGES = {
    "prefix", "suffix", "window on both sides", "window of one size", "range with a step",
    "whole range (across a dim)", "range by bounds alone", "range by another dim", "empty range",
    "ranges of several dims",
}  # fmt: skip
FORMS = {
    "1 dims", "2 dims", "3 dims", "conditions on bounds", "narrowed domains", "domains with conditions",
    "dynamic extents", "cases", "cases with 'and'", "cases with 'or'", "host calls", "vectorised host calls", "states",
    "states that change places", "outputs that leave rows out", "ranges of two letters",
    "recurrences", "recurrences forwards", "recurrences backwards", "recurrences both ways",
    "recurrences of several values", "recurrences over several dims",
    "gradients", "gradients by several", "gradients of gradients",
    "f16", "bf16", "f32", "f64", "i64", "bool",
}  # fmt: skip
REDUCTIONS = {"sum", "prod", "max", "min", "mean", "argmax", "argmin", "cumsum", "cumprod", "softmax", "contract"}


def test_all_kinds_of_programs():
    coverage = Coverage()
    for seed in range(150):
        coverage.add(generate(f"kinds {seed}", table=FURTHER))
    assert coverage.programs == 150
    assert POINTS | RANGES <= set(coverage.entries)
    assert FORMS <= set(coverage.forms)
    assert {f"sdg.{name}" for name in REDUCTIONS} <= set(coverage.ops)
    assert len(coverage.ops) > 55


HALF = """
builtin.module {{
  sdg.program @half dims(t: T) {{
    %x = sdg.input "x" in (t) : tensor<f32>
    %s = sdg.merge {{t + {0} < T : %h[t + {0}], t >= {1} : %h[t - {1}], true : %x[t]}} in (t) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %h = sdg.neg %s[t] in (t) : (tensor<f32>) -> tensor<f32>
    sdg.output "y" %h[t] in (t) : tensor<f32>
  }}
}}
"""  # noqa: E501


def test_no_value_needs_itself_at_a_size_that_is_tried():
    # reads forwards win where there are any; 4 back and 4 on meet at T = 8 first, 9 back and 9 on at T = 18
    assert needs_itself(program_of(parse(HALF.format(4, 4))))
    assert not needs_itself(program_of(parse(HALF.format(9, 9))))
    assert not needs_itself(program_of(parse(HALF.format(1, 40))))


def test_a_run_of_the_command_says_what_it_tried(capsys, tmp_path):
    seed_that_passes = "3"
    arguments = ["--programs", "2", "--seed", seed_that_passes, "--steps", "2", "--quick", "--out", str(tmp_path)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "2 programs in" in printed
    assert "0 failures, 0 refused" in printed
    assert "index entries, programs with each:" in printed
    assert not list(tmp_path.iterdir())


def answer(name: str) -> str:
    """What a process answers, or how it ends."""
    if name == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    while name == "endless":
        pass
    return name.upper()


def test_processes_that_end_without_an_answer_are_failures():
    found = dict(answers(answer, ["a", "crash", "endless", "b"], jobs=2, seconds=1))
    assert found["a"] == "A"
    assert found["b"] == "B"
    assert isinstance(found["crash"], Failure)
    assert found["crash"].kind == "crash SIGSEGV"
    assert isinstance(found["endless"], Failure)
    assert found["endless"].kind == SLOW
