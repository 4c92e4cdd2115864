"""The check that runs on GPUs: without one it says so; its comparison is tried in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
CHECK = ROOT / "benchmarks" / "gpu" / "check.py"


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    own = {**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment}
    return subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=False)


def test_without_a_gpu_nothing_is_checked_and_that_is_said():
    done = run(CHECK, "--device-only")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gpu-check: there is no GPU that torch and triton could use here; nothing was checked\n"


def test_a_comparison_in_the_interpreter(tmp_path):
    written = run("-m", "benchmarks.gpu.write", tmp_path, "normed product f32", "draws")
    assert written.returncode == 0, written.stderr
    done = run(CHECK, tmp_path, "--interpret", TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    _, heads, _, normed, draws = done.stdout.splitlines()
    assert heads.split(" | ")[0].strip() == "program"
    assert "within" in normed
    assert "equal" in draws
    with np.load(tmp_path / "draws.outputs.npz") as file:
        outputs = dict(file)
    np.savez(tmp_path / "draws.outputs.npz", **{**outputs, "bits": outputs["bits"] + 1})
    done = run(CHECK, tmp_path, "--interpret", TRITON_INTERPRET="1")
    assert done.returncode == 1
    assert "differs: bits" in done.stdout
