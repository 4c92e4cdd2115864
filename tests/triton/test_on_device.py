"""Target "triton": in a process whose device is Triton's interpreter, in one whose device records, in one without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tempo_ir as tp
from tempo_ir.runtime.errors import CallError, CompileError
from tempo_ir.tools.tempo_run import main
from tests.triton.support import walk

HERE = Path(__file__).parent


def passes(file: str, least: int, **environment: str) -> None:
    """The tests of a file pass in a process of their own, no less than so many."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "TRITON"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / file)]
    done = subprocess.run(command, env={**clean, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (count,) = [int(line.split()[0]) for line in done.stdout.splitlines() if " passed" in line]
    assert count >= least, done.stdout


def test_in_the_interpreter():
    passes("calls_in_the_interpreter.py", 20, TRITON_INTERPRET="1")


def test_steps_as_graphs_in_the_interpreter():
    passes("graphs_in_the_interpreter.py", 17, TRITON_INTERPRET="1")


def test_on_a_device_that_records():
    passes("calls_on_a_recording_device.py", 7)


def test_without_a_gpu_it_says_so_and_the_ways_out(tmp_path, monkeypatch, capsys):
    with pytest.raises(CompileError, match=r"runs on a GPU, and there is none: torch .* sees no GPU") as caught:
        tp.compile(walk(), "triton")
    for way in ('target="cpu"', 'machine="sm_90"', "--emit-triton DIR"):
        assert way in str(caught.value)
    executable = tp.compile(walk(), "triton", machine="sm_90")  # a call needs the device, not a compile
    executable.write_triton(tmp_path / "walked")
    assert (tmp_path / "walked" / "driver.py").exists()
    with pytest.raises(CallError, match=r"compiled for a GPU, and there is none: torch .* sees no GPU"):
        executable(T=2, x=[[0.0] * 4] * 2)
    program = str(HERE.parents[1] / "examples" / "rnn.py")
    assert main([program, "--target", "triton", "--set", "T=3", "--set", "I=1"]) == 1
    assert "error: target 'triton' runs on a GPU, and there is none" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(CompileError, match="there is none: triton is not installed here"):
        tp.compile(walk(), "triton")


def test_what_there_is_not():
    with pytest.raises(CompileError, match="there is no machine 'cray'; use one of sm_80, "):
        tp.compile(walk(), "triton", machine="cray")
    with pytest.raises(CompileError, match="there is no precision 'tf16'; use one of ieee, tf32"):
        tp.compile(walk(), "triton", machine="sm_90", precision="tf16")
    for asked in ({"machine": "sm_90"}, {"precision": "tf32"}, {"autotune": True}):
        with pytest.raises(CompileError, match="autotune are of target 'triton', the target is 'cpu'"):
            tp.compile(walk(), **asked)
