"""`compile`: seconds to compile, each in a process of its own.

decoder: a Llama of 1 to 64 layers x 256 wide, T = 256, beside jax's jit of the same and torch.compile of one step.
rnn: gradients of a recurrent network through T = 128 to 10^6 steps, the number fixed in the program.
statements: a recurrence of 10 to 1000 operations a step.
cold starts with empty caches, warm is a second process with those of the first. Both compiled another, tiny program
before: so all systems have imported their libraries and made their back ends ready. process is a third one with empty
caches, from its start to the end of the compile: Python, imports, back ends and all. Bytecode of the libraries is there
for all systems. Each compiles in 7 processes, torch.compile in 3. Tables have the stages of tempo_ir's cold compiles.

`python -m benchmarks.compile SYSTEM PROGRAM SIZE [--first]` compiles once and prints the seconds of each stage as JSON;
with `--first` no other program before it, and its seconds are those of the process so far.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import Measurement, Report, Sheet

SIZES = {"decoder": (1, 4, 8, 16, 28, 64), "rnn": (128, 1024, 10**4, 10**5, 10**6), "statements": (10, 100, 1000)}
QUICK = {"decoder": (1, 4), "rnn": (128, 10**6), "statements": (10, 100)}
UNIT = {"decoder": "layers", "rnn": "T", "statements": "statements"}
SYSTEMS = ("tempo_ir", "jax", "torch.compile")
STARTS = ("cold", "warm", "process")
SLOW = {"decoder": 4, "statements": 100, "rnn": 0}
"""The greatest sizes that torch.compile is given: it takes minutes at others, and unrolls loops over T."""
ROUNDS, SLOW_ROUNDS = 7, 3
"""How often a case is compiled, and how often by torch.compile."""


def run(report: Report, quick: bool = False) -> None:
    """Add rows of all programs and sizes, and a table of stages of each program."""
    for program, sizes in (QUICK if quick else SIZES).items():
        cases = {size: {"program": program, UNIT[program]: size} for size in sizes}
        wanted = [Times(case, program, size) for size, case in cases.items() if report.wants(case)]
        for number in range(1 if quick else ROUNDS):
            for times in wanted:  # all sizes in each round, so that what else the machine does falls on all
                times.add_round(number)
        for times in wanted:
            times.add_to(report)
        if wanted:
            report.sheets.append(stage_sheet(program, {times.size: times.least_stages() for times in wanted}))


class Times:
    """What was measured of a program of one size: runs by start and system, and the stages of tempo_ir's cold ones."""

    def __init__(self, case: Mapping[str, Any], program: str, size: int) -> None:
        self._case, self._program, self.size = case, program, size
        self._runs: dict[str, dict[str, list[Measurement]]] = {start: {} for start in STARTS}
        self._stages: list[dict[str, float]] = []

    def add_round(self, number: int) -> None:
        """Compile once in each system, from all starts; torch.compile sits out the later rounds and greater sizes."""
        for system in SYSTEMS:
            if system == "torch.compile" and (number >= SLOW_ROUNDS or self.size > SLOW[self._program]):
                continue
            with tempfile.TemporaryDirectory() as caches, tempfile.TemporaryDirectory() as others:
                for start in STARTS:
                    own = Path(others if start == "process" else caches)
                    found = process(system, self._program, self.size, own, start)
                    runs = self._runs[start].setdefault(system, [])
                    runs.append(Measurement(found.pop("wall"), found.pop("cpu")))
                    if system == "tempo_ir" and start == "cold":
                        self._stages.append(found)

    def add_to(self, report: Report) -> None:
        """Add the rows of all starts."""
        for start, runs in self._runs.items():
            for system, seconds in runs.items():
                report.add("compile", {**self._case, "start": start}, system, seconds)
            report.add_ratios("compile", {**self._case, "start": start}, runs)

    def least_stages(self) -> dict[str, float]:
        """The stages of tempo_ir's quickest cold compile."""
        return min(self._stages, key=lambda seconds: sum(seconds.values()))


def stage_sheet(program: str, stages: Mapping[int, Mapping[str, float]]) -> Sheet:
    """Seconds of each stage of a program by its sizes."""
    names = list(dict.fromkeys(stage for seconds in stages.values() for stage in seconds))
    columns = ("stage", *(f"{UNIT[program]}={size}" for size in stages))
    sheet = Sheet(f"seconds of each stage, {program}, cold", columns)
    for name in names:
        sheet.add(name, *(seconds.get(name, 0.0) for seconds in stages.values()))
    totals = [sum(seconds.values()) for seconds in stages.values()]
    sheet.add("in all", *totals)
    if program != "rnn":  # whose compile does not depend on T
        sheet.add(
            "... of each layer" if program == "decoder" else "... of each statement",
            *(total / size for size, total in zip(stages, totals, strict=True)),
        )
    proofs = [sum(spent for name, spent in seconds.items() if name.endswith(": proof")) for seconds in stages.values()]
    sheet.add("... share of the proofs", *(proof / total for proof, total in zip(proofs, totals, strict=True)))
    return sheet


def process(system: str, program: str, size: int, caches: Path, start: str) -> dict[str, float]:
    """What a process of its own prints. Caches, but for bytecode, are those under `caches`."""
    kept = {"XDG_CACHE_HOME": "xdg", "TEMPO_CACHE_DIR": "tempo", "TORCHINDUCTOR_CACHE_DIR": "torch"}
    environment = {**os.environ, **{name: str(caches / directory) for name, directory in kept.items()}}
    environment |= {"JAX_COMPILATION_CACHE_DIR": str(caches / "jax"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "benchmarks.compile", system, program, str(size)]
    command += ["--first"] if start == "process" else []
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def measure(system: str, program: str, size: int, first: bool) -> dict[str, float]:
    """Seconds of one compile, of which `wall` and `cpu` are all (that of child processes too), and of its stages; where
    it is to be the first of the process, `wall` and `cpu` are those since the process began."""
    prepare: dict[str, Callable[[str, int], Callable[[], Mapping[str, float]]]] = {
        "tempo_ir": tempo, "jax": in_jax, "torch.compile": in_torch
    }  # fmt: skip
    if not first:
        prepare[system]("statements", 1)()
    compile_it = prepare[system](program, size)
    wall, cpu = (began(), 0.0) if first else (time.time(), used_cpu())
    stages = dict(compile_it())
    return {"wall": time.time() - wall, "cpu": used_cpu() - cpu, **stages}


def used_cpu() -> float:
    """Seconds of processors that this process and its children have taken."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)  # os.times counts hundredths of a second


def began() -> float:
    """When this process began, by `time.time`."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")


def checkpoint(layers: int) -> Path:
    from benchmarks.decode import Model

    return Model(f"{layers}x256", {"layers": layers}).checkpoint()


def tempo(program: str, size: int) -> Callable[[], Mapping[str, float]]:
    """A compile by tempo_ir. What records the program is a stage of it."""
    import tempo_ir as tp
    from benchmarks import compile_programs as programs
    from examples import llama

    if program == "decoder":
        model = str(checkpoint(size))
        record = lambda: llama.decode(model=model)  # noqa: E731
    else:
        record = lambda: programs.TEMPO[program](size=size)  # noqa: E731

    def compile_it() -> Mapping[str, float]:
        start = time.perf_counter()
        recorded = record()
        traced = time.perf_counter() - start
        executable = tp.compile(recorded)
        stages = {"program": traced, **executable.stats.compile_seconds}
        return {**stages, "other": time.perf_counter() - start - sum(stages.values())}

    return compile_it


def in_jax(program: str, size: int) -> Callable[[], Mapping[str, float]]:
    import numpy as np

    from benchmarks import compile_programs as programs

    if program == "decoder":
        from benchmarks.llama_jax import JaxLlama

        static = JaxLlama(*weights(size))
        jitted, arguments = static.jit(256), (static.parameters, np.zeros((1, 8), np.int32))
    else:
        jitted, arguments = programs.JAX[program](size)

    def compile_it() -> Mapping[str, float]:
        jitted.lower(*arguments).compile()
        return {}

    return compile_it


def in_torch(program: str, size: int) -> Callable[[], Mapping[str, float]]:
    """torch.compile of one step, which compiles when it is first called."""
    import numpy as np

    from benchmarks import compile_programs as programs

    if program == "decoder":
        from benchmarks.llama_torch import CompiledLlama

        static = CompiledLlama(*weights(size))
        first: Callable[[], Any] = lambda: static.generate(np.zeros((1, 1), np.int64), 256, steps=1)  # noqa: E731
    else:
        first = programs.torch_statements(size)

    def compile_it() -> Mapping[str, float]:
        first()
        return {}

    return compile_it


def weights(layers: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays and the config of the decoder."""
    from safetensors.numpy import load_file

    path = checkpoint(layers)
    return load_file(path / "model.safetensors"), json.loads((path / "config.json").read_text())


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]), "--first" in sys.argv)))
