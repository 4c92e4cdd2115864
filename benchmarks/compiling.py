"""`compiling`: seconds that a Llama decoder of 4 to 64 layers takes to compile, by pass, each in a process of its own.

`python -m benchmarks.compiling LAYERS` compiles once and prints the seconds of each stage as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import Report, Sheet

LAYERS = (4, 8, 16, 28, 64)


def run(report: Report, quick: bool = False) -> None:
    """Add a table of stages by layers to the report."""
    found = {layers: cold(layers, rounds=1 if quick else 3) for layers in (LAYERS[:2] if quick else LAYERS)}
    stages = list(dict.fromkeys(stage for seconds in found.values() for stage in seconds))
    sheet = Sheet("seconds to compile a Llama decoder, cold", ("stage", *(f"{layers} layers" for layers in found)))
    for stage in stages:
        sheet.add(stage, *(seconds.get(stage, 0.0) for seconds in found.values()))
    totals = {
        layers: sum(seconds[stage] for stage in stages if stage not in BEFORE) for layers, seconds in found.items()
    }
    proofs = {
        layers: sum(spent for stage, spent in seconds.items() if stage.endswith(": proof"))
        for layers, seconds in found.items()
    }
    sheet.add("compile in all", *totals.values())
    sheet.add("... per layer", *(total / layers for layers, total in totals.items()))
    sheet.add("... share of the proofs", *(proofs[layers] / total for layers, total in totals.items()))
    report.sheets.append(sheet)


BEFORE = ("import", "program")
"""What a process does before it compiles."""


def cold(layers: int, rounds: int) -> dict[str, float]:
    """The stages of the fastest of some processes."""
    runs: list[dict[str, float]] = []
    for _ in range(rounds):
        command = [sys.executable, "-m", "benchmarks.compiling", str(layers)]
        runs.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    return min(runs, key=lambda seconds: sum(seconds.values()))


def measure(layers: int) -> dict[str, float]:
    """Seconds of each stage, from the import of the library on. The rest of a compile, such as copies, is "other"."""
    start = time.perf_counter()
    import tempo_ir as tp
    from examples import llama
    from tempo_ir import llm

    imported = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        model = llm.write_random_llama(Path(directory), layers=layers, hidden=64, feed_forward=128, vocabulary=100)
        written = time.perf_counter()
        program = llama.decode(model=str(model))
        traced = time.perf_counter()
        executable = tp.compile(program)
        compiled = time.perf_counter() - traced
    stages = dict(executable.stats.compile_seconds)
    other = compiled - sum(stages.values())
    return {"import": imported - start, "program": traced - written, **stages, "other": other}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
