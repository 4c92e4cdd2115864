"""Loops of which one launch runs all iterations compute what the reference does, and what the loop of launches does."""

from __future__ import annotations

from pathlib import Path

import pytest

import tempo_ir as tp
from tempo_ir.tools import programs
from tempo_ir.tools.running import Call, compare, run

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
NAMES = ("rnn", "gru", "lstm", "windows", "of_all_rows", "heads")


def agree(program: programs.LoadedProgram, *without: str, **bounds: int) -> None:
    """The program in Triton's interpreter, without some passes, beside the reference."""
    inputs = programs.complete_inputs(program, {}, bounds, 0)
    call = Call(program, inputs, bounds, program.initial(0), {}, 7)
    expected = run(tp.compile(program.source, "reference"), call)
    comparison = compare(run(tp.compile(program.source, "triton-interpret", without=without), call), expected)
    assert comparison.equal, comparison.text


def load(name: str, file: Path = HERE / "recurrences.py", **settings) -> programs.LoadedProgram:
    program, _ = programs.load_python(file, name, settings)
    return program


@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("name", NAMES)
def test_rows_that_are_no_multiple_of_a_block(name, steps):
    program = load(name)
    bounds = {"T": steps, "I": 2} if name == "windows" else {"T": steps}
    if name == "windows" and not steps:
        bounds["T"] = 2  # the last of no steps is refused
    agree(program, **bounds)


@pytest.mark.parametrize("steps", [1, 4])
def test_a_loop_that_runs_backwards(steps):
    agree(load("back_through_time"), T=steps)


def test_launches_of_each_iteration_give_the_same():
    for name in NAMES:
        agree(load(name), "loop-persist", T=3, **({"I": 2} if name == "windows" else {}))


def test_the_rollout():
    for steps in (1, 6):
        agree(load("rollout", EXAMPLES / "rollout.py", envs=37, hidden=16), T=steps)
