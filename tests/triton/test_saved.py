"""Programs saved for a GPU that is not here, and run by other processes, which compile nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tempo_ir as tp
from tempo_ir.runtime import gpu
from tempo_ir.runtime.errors import CallError, CompileError
from tempo_ir.tools import programs
from tests.triton.calls_in_the_interpreter import ended, training
from tests.triton.support import walk

ROOT = Path(__file__).parents[2]


def walked():
    """A program for a GPU that is not here, with a launch per step and more."""
    return tp.compile(walk(), "triton", machine="sm_90", without=("loop-persist",))


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A saved program, to be copied."""
    directory = tmp_path_factory.mktemp("saved") / "walked"
    walked().save(directory)
    return directory


def elsewhere(directory: Path, capability: int = 90, **bounds: int) -> dict:
    """What another process says of a call."""
    script = [sys.executable, "-m", "tests.triton.saved_process", str(directory), str(capability), json.dumps(bounds)]
    clean = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    # a process that compiled a kernel would leave it there
    clean["TRITON_CACHE_DIR"] = str(directory.parent / "triton_cache")
    done = subprocess.run(script, cwd=ROOT, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not list((directory.parent / "triton_cache").rglob("*bin"))
    return json.loads(done.stdout)


def test_another_process_launches_what_was_saved(saved):
    found = elsewhere(saved, T=5)
    assert found["error"] is None
    assert found["shapes"] == {"back": [5, 4], "window": [5, 4]}
    assert (found["cached"], found["launches"]) == (True, walked().stats.launches)
    assert len(found["events"]) >= 3 * 5
    kernels = {event[1] for event in found["events"]}
    assert kernels == {path.stem for path in (saved / "binaries").glob("*.cubin")}
    assert (saved / "package" / "driver.py").read_text().startswith('"""The program @walk')


@pytest.mark.parametrize(
    "program",
    [pytest.param(training, id="states", marks=pytest.mark.slow), pytest.param(ended, id="a dim that ends by data")],
)
def test_other_programs(program, tmp_path):
    tp.compile(program(), "triton", machine="sm_90", precision="tf32").save(tmp_path / "it")
    found = elsewhere(tmp_path / "it", **{"I": 3} if program is training else {"T": 3})
    assert found["error"] is None
    assert found["events"]


@pytest.mark.slow
def test_llama(in_temporary_directory):
    program, _ = programs.load_python(ROOT / "examples" / "llama.py", None, {"layers": 1})
    tp.compile(program.source, "triton", machine="sm_90").save(in_temporary_directory / "llama")
    found = elsewhere(in_temporary_directory / "llama", T=5, P=2)
    assert found["error"] is None
    assert found["shapes"] == {"token": [5, 1]}


def test_another_device_is_refused(saved):
    error = elsewhere(saved, 80, T=5)["error"]
    assert error.startswith(f"CompileError: {saved} was saved for sm_90, and cpu is sm_80: compile the program for it")
    assert "recompile=True" in error


def test_another_triton_is_refused(saved, monkeypatch):
    loaded = tp.load(saved)
    monkeypatch.setattr(gpu, "triton_version", lambda: "9.9")
    reasons = {
        machine: str(gpu.misfit(gpu.Device(None, "the device", machine), saved, loaded._saved[1]))
        for machine in ("sm_90", None)
    }
    assert "was saved with triton" in reasons["sm_90"]
    assert "the device runs no machine code" in reasons[None]


def test_without_a_gpu_it_is_loaded_and_a_call_says_so(saved):
    loaded = tp.load(saved)
    assert loaded.ir("triton") == walked().ir("triton")
    with pytest.raises(CallError, match=r"compiled for a GPU, and there is none: torch .* sees no GPU"):
        loaded(x=[[0.0] * 4] * 2)
    with pytest.raises(CallError, match="input 'x' is missing"):
        loaded(T=2)


def damage(path: Path, how: str) -> None:
    match how:
        case "missing":
            path.unlink()
        case "cut":
            path.write_bytes(path.read_bytes()[:-7])
        case _:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 4
            path.write_bytes(data)


@pytest.mark.parametrize("how", ["missing", "cut", "changed"])
@pytest.mark.parametrize(
    "file", ["binaries/mul_add.cubin", "binaries/mul_add.json", "package/driver.py", "program.json"]
)
def test_what_is_damaged_is_refused(saved, tmp_path, file, how):
    copy = tmp_path / "copy"
    shutil.copytree(saved, copy)
    damage(copy / file, how)
    with pytest.raises(CompileError, match=f"{file}.*save it again"):
        tp.load(copy)


def test_other_folders_are_left_alone(saved, tmp_path, monkeypatch):
    with pytest.raises(CompileError, match=r"cannot read .*program.json: No such file or directory: save it again"):
        tp.load(tmp_path)
    (tmp_path / "mine").write_text("")
    executable = walked()
    binaries = list(tp.load(saved)._saved[1].binaries.values())
    monkeypatch.setattr(gpu, "compile_binaries", lambda *arguments: binaries)  # which another test looks at
    with pytest.raises(CallError, match="is no folder of a saved program"):
        executable.save(tmp_path)
    with pytest.raises(CallError, match="is no folder of a saved program"):
        executable.save(tmp_path / "mine")
    executable.save(saved)  # in the place of what was saved before
    assert {path.name for path in saved.parent.iterdir()} <= {"walked", "triton_cache"}
    assert tp.load(saved).signature == executable.signature


def test_what_does_not_compile_is_named(monkeypatch, tmp_path):
    executable = walked()
    broken = gpu.dataclasses.replace(executable.package.kernels[0], text="import triton\nthis is no Python\n")
    executable.package = gpu.dataclasses.replace(executable.package, kernels=(broken,))
    with pytest.raises(CompileError, match=f"kernel {broken.name} does not compile for sm_90: SyntaxError"):
        executable.save(tmp_path / "it")
    assert not (tmp_path / "it").exists()
