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
    shares = [list(missing)[start::processes] for start in range(min(processes, len(missing)))]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(max(1, len(shares))) as threads:
        jobs = {place: _job(source, target, Path(scratch) / place.stem) for place, source in missing.items()}
        batches = [[jobs[place] for place in share] for share in shares]
        for share, results in zip(shares, threads.map(_run, batches), strict=True):
            for place, result in zip(share, results, strict=True):
                _keep(place, missing[place], target, result)
    return [_read(place) for place in places]


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
    aligned = [n for n, (name, kind) in enumerate(source.parameters) if kind.startswith("*") or name in source.aligned]
    return {
        "path": str(path),
        "name": "kernel",
        "signature": dict(source.parameters),
        "aligned": aligned,
        "machine": [machine.backend, machine.arch, machine.warp],
        "warps": source.warps,
        "stages": source.stages,
    }


def _run(jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The results of jobs, by one process."""
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    done = subprocess.run([sys.executable, str(PROGRAM)], input=text, capture_output=True, text=True, check=False)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    if len(results) < len(jobs):  # the compiler's own code, in C++, may end the process
        tail = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        results += [{"error": f"the compiler ended: {tail[0]}"}] * (len(jobs) - len(results))
    return results


def _keep(place: Path, source: KernelSource, target: str, result: Mapping[str, Any]) -> None:
    if "error" in result:
        raise TritonCompileError(f"kernel {source.name} does not compile for {target}: {result['error']}")
    place.parent.mkdir(parents=True, exist_ok=True)
    whole = place.with_suffix(f".{os.getpid()}")
    whole.write_text(json.dumps(asdict(Figures(**result))))
    whole.replace(place)


def _read(place: Path) -> Figures:
    return Figures(**json.loads(place.read_text()))
