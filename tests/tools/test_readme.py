"""What README.md prints is what the tools print: its program, the IR at each level, the commands."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import NAMES
from tempo_ir.lowering.targets import PIPELINE
from tempo_ir.tools import tempo_opt

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
SDG, LOOP, TILE = re.findall(r"```mlir\n(.*?)```", README, re.DOTALL)
PROGRAM, TRITON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def cell(tmp_path, monkeypatch):
    """The program of README.md, in a file of the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("cell.py").write_text(PROGRAM)
    return "cell.py"


def printed(capsys, *arguments):
    assert tempo_opt.main(arguments) == 0
    return capsys.readouterr().out


def assert_stands_in(excerpt, text):
    """The lines of an excerpt stand in a text in this order; `...` is for what is left out."""
    lines = iter([line.strip() for line in text.splitlines()])
    for line in excerpt.splitlines():
        assert line.strip() in ("", "...") or line.strip() in lines, line


def test_the_program_runs_as_a_file(cell):
    out = runpy.run_path(cell, run_name="__main__")["out"]
    assert out["h"].shape == (16, 4)
    assert np.array_equal(out["h"][0], np.zeros(4))


@pytest.mark.parametrize(
    ("excerpt", "arguments"),
    [
        (SDG, ()),
        (LOOP, ("-p", PIPELINE)),
        (TILE, ("-p", PIPELINE + ",loop-lower-kernels{target=cpu}")),
        (TRITON, ("-p", PIPELINE, "-t", "triton")),
    ],
    ids=["sdg", "loop", "tile", "triton"],
)
def test_the_levels_are_what_is_printed(excerpt, arguments, cell, capsys):
    assert_stands_in(excerpt, printed(capsys, cell, *arguments))
    assert f"(`-p '{PIPELINE}'`)" in README


@pytest.mark.parametrize("target", ["triton", "llvm"])
@pytest.mark.parametrize("program", ["cell.py", str(ROOT / "examples" / "rnn.py")], ids=["cell", "rnn"])
def test_the_advice_for_a_program_without_kernels_is_a_command_that_works(program, target, cell, capsys):
    sizes = () if program == cell else ("--set", "width=4", "--set", "batch=2")
    assert tempo_opt.main([program, *sizes, "-t", target]) == 1
    (advice,) = re.findall(r"run (--pass-pipeline='[^']+') on it", capsys.readouterr().err)
    assert {"triton": "@triton.jit", "llvm": "@host("}[target] in printed(
        capsys, program, *sizes, *shlex.split(advice), "-t", target
    )


def test_commands_name_files_that_are_there():
    commands = re.findall(r"`python (examples/\w+\.py)`", README)
    assert {"examples/bptt.py", "examples/n_step.py"} <= {*commands}
    assert all((ROOT / command).is_file() for command in commands)
    (row,) = re.findall(r"^.*`python -m benchmarks NAME.*$", README, re.MULTILINE)
    assert re.findall(r"`(\w+)` \(", row) == list(NAMES)
    assert all((ROOT / "benchmarks" / f"{name}.py").is_file() for name in NAMES)
