"""Kernels compiled ahead of time for GPUs that need not be there, to know that they compile and what they use.

The compiler is Triton's, in processes of its own. What it found is kept on disk by content, under `$TEMPO_IR_CACHE` or
`~/.cache/tempo_ir`, so that a kernel is compiled once.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tempo_ir.lowering.triton.machines import machine_of
from tempo_ir.lowering.triton.style import KernelSource

PROGRAM = Path(__file__).with_name("compile_process.py")


class TritonCompileError(RuntimeError):
    """Triton could not compile a kernel."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a compiled kernel uses: registers of a thread; bytes spilt, of stack, of shared memory; compile seconds.

    `widest_load` is the most bytes that a thread reads of memory at once.
    """

    registers: int
    spilled: int
    stack: int
    shared: int
    tensor_cores: bool
    widest_load: int
    seconds: float


def cache_directory() -> Path:
    """Where results are kept."""
    chosen = os.environ.get("TEMPO_IR_CACHE")
    root = Path(chosen) if chosen else Path.home() / ".cache" / "tempo_ir"
    return root / "triton"


def compile_kernels(sources: Sequence[KernelSource], target: str = "sm_80", *, processes: int = 2) -> list[Figures]:
    """The figures of kernels compiled for a machine (`machines.py`). Equal kernels are compiled once.

    Raises TritonCompileError, naming the kernel, with Triton's own message; UnknownMachineError.
    """
    machine_of(target)
    places = [cache_directory() / f"{_key(source, target)}.json" for source in sources]
    missing = {place: source for place, source in zip(places, sources, strict=True) if not place.exists()}
    with tempfile.TemporaryDirectory() as scratch:
        jobs = [_job(source, target, Path(scratch) / place.stem) for place, source in missing.items()]
        for (place, source), result in zip(missing.items(), _results(jobs, processes), strict=True):
            _keep(place, _checked(source, target, result))
    return [_read(place) for place in places]


@dataclass(frozen=True, slots=True)
class Binary:
    """A kernel as machine code: its kind, cubin or hsaco, the code, and what Triton says of it, as JSON."""

    kind: str
    code: bytes
    metadata: str


def compile_binaries(sources: Sequence[KernelSource], machine: str, *, processes: int = 2) -> list[Binary]:
    """Kernels as machine code for a machine that need not be here. Raises as `compile_kernels` does."""
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch) / str(number) for number in range(len(sources))]
        jobs = [_job(source, machine, folder) for source, folder in zip(sources, folders, strict=True)]
        for job, source, folder in zip(jobs, sources, folders, strict=True):
            folder.joinpath("kernel.py").write_text(source.alone)  # as it is, under its own name
            job |= {"name": source.name, "place": str(folder / "binary")}
        for source, result in zip(sources, _results(jobs, processes), strict=True):
            _checked(source, machine, result)
        return [_binary(folder) for folder in folders]


def _binary(folder: Path) -> Binary:
    (code,) = [path for path in folder.glob("binary.*") if path.suffix != ".json"]
    return Binary(code.suffix.removeprefix("."), code.read_bytes(), (folder / "binary.json").read_text())


def _results(jobs: Sequence[dict[str, Any]], processes: int) -> list[dict[str, Any]]:
    """The results of jobs, in order, by several processes."""
    count = max(1, min(processes, len(jobs)))
    results: list[dict[str, Any]] = [{} for _ in jobs]
    with ThreadPoolExecutor(count) as threads:
        for start, share in enumerate(threads.map(_run, [jobs[start::count] for start in range(count)])):
            results[start::count] = share
    return results


def _canonical(source: KernelSource) -> str:
    """The text of a kernel called `kernel`, without its comment."""
    lines = [line for line in source.alone.splitlines() if not line.startswith("#")]
    return "\n".join(lines).replace(f"def {source.name}(", "def kernel(") + "\n"


def _key(source: KernelSource, target: str) -> str:
    """What the figures depend on."""
    options = target, source.warps, source.stages, version("triton"), Figures.__slots__
    content = _canonical(source), source.parameters, sorted(source.aligned), options
    return hashlib.sha256(repr(content).encode()).hexdigest()[:24]


def _job(source: KernelSource, target: str, directory: Path) -> dict[str, Any]:
    directory.mkdir()
    path, machine = directory / "kernel.py", machine_of(target)
    path.write_text(_canonical(source))
    return {
        "path": str(path),
        "name": "kernel",
        "signature": dict(source.parameters),
        "aligned": source.divisible,
        "machine": [machine.backend, machine.arch, machine.warp],
        "warps": source.warps,
        "stages": source.stages,
    }


def _run(jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The results of jobs, by one process."""
    if not jobs:
        return []
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    done = subprocess.run([sys.executable, str(PROGRAM)], input=text, capture_output=True, text=True, check=False)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    if len(results) < len(jobs):  # the compiler's own code, in C++, may end the process
        tail = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        results += [{"error": f"the compiler ended: {tail[0]}"}] * (len(jobs) - len(results))
    return results


def _checked(source: KernelSource, target: str, result: dict[str, Any]) -> dict[str, Any]:
    if "error" in result:
        raise TritonCompileError(f"kernel {source.name} does not compile for {target}: {result['error']}")
    return result


def _keep(place: Path, result: dict[str, Any]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    whole = place.with_suffix(f".{os.getpid()}")
    whole.write_text(json.dumps(asdict(Figures(**result))))
    whole.replace(place)


def _read(place: Path) -> Figures:
    return Figures(**json.loads(place.read_text()))
