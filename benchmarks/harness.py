"""Alternate timing of several systems on one piece of work, and the report in text and JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Measurement:
    """Seconds of one run of a system; `excluded` (time inside an environment, say) is taken out."""

    wall: float
    cpu: float
    excluded: float = 0.0

    @property
    def seconds(self) -> float:
        return self.wall - self.excluded


@dataclass(frozen=True)
class System:
    """One contender: a name, a run of the whole work, and what it cost to prepare it.

    `run` does the work once and returns the seconds to leave out of the time (0.0 mostly). `units` in `compare` says
    how many units (tokens, iterations) one run is.
    """

    name: str
    run: Callable[[], float]
    compile_seconds: float
    peak_bytes: int | None = None
    launches: int | None = None


@dataclass
class Sheet:
    """A table of numbers of any kind."""

    title: str
    headings: tuple[str, ...]
    lines: list[tuple[str, tuple[float, ...]]] = field(default_factory=list[tuple[str, tuple[float, ...]]])

    def add(self, name: str, *numbers: float) -> None:
        """Add a line."""
        self.lines.append((name, numbers))


HEADINGS = (
    "benchmark", "case", "system", "median", "min", "max", "ratio", "compile", "peak MB", "launches", "bound",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One line of the report; times are seconds per unit of work."""

    benchmark: str
    case: Mapping[str, Any]
    system: str
    median_s: float
    min_s: float
    max_s: float
    cpu_s: float
    compile_s: float
    peak_bytes: int | None
    launches: int | None
    bound_s: float | None


@dataclass
class Report:
    """The rows of all benchmarks of one call and the machine they ran on."""

    rows: list[Row] = field(default_factory=list[Row])
    ratios: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    sheets: list[Sheet] = field(default_factory=list[Sheet])

    def write_json(self, path: Path) -> None:
        """Write `{"machine": {...}, "rows": [...], "ratios": [...], "sheets": [...]}`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {
            "machine": machine(),
            "rows": [asdict(row) for row in self.rows],
            "ratios": self.ratios,
            "sheets": [asdict(sheet) for sheet in self.sheets],
        }
        path.write_text(json.dumps(document, indent=2) + "\n")

    def print(self) -> None:
        """A table of all rows with the median ratio of every system's time over tempo_ir's, and the other tables."""
        if self.rows:
            self._print_rows()
        for sheet in self.sheets:
            table = Table(title=sheet.title)
            for number, heading in enumerate(sheet.headings):
                table.add_column(heading, justify="right" if number else "left")
            for name, numbers in sheet.lines:
                table.add_row(name, *(f"{number:.3f}" for number in numbers))
            Console(width=160).print(table)

    def _print_rows(self) -> None:
        table = Table(title="seconds per unit of work; ratio = time over tempo_ir's, median of alternate pairs")
        for heading in HEADINGS:
            table.add_column(heading, justify="left" if heading in ("benchmark", "case", "system") else "right")
        ratio_of = {(r["benchmark"], str(r["case"]), r["system"]): r["median_ratio"] for r in self.ratios}
        for row in self.rows:
            ratio = ratio_of.get((row.benchmark, str(dict(row.case)), row.system))
            table.add_row(
                row.benchmark,
                " ".join(f"{key}={value}" for key, value in row.case.items()),
                row.system,
                *(format_seconds(x) for x in (row.median_s, row.min_s, row.max_s)),
                "" if ratio is None else f"{ratio:.2f}x",
                f"{row.compile_s:.2f} s",
                "" if row.peak_bytes is None else f"{row.peak_bytes / 1e6:.2f}",
                "" if row.launches is None else str(row.launches),
                "" if row.bound_s is None else format_seconds(row.bound_s),
            )
        Console(width=160).print(table)


def format_seconds(seconds: float) -> str:
    if seconds >= 1.0:
        return f"{seconds:.3f} s"
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def compare(
    report: Report,
    benchmark: str,
    case: Mapping[str, Any],
    systems: Sequence[System],
    units: int,
    rounds: int,
    bound: float | None = None,
) -> None:
    """Run all systems in turn, `rounds` times after one warm-up each, and add their rows and ratios to the report."""
    times: dict[str, list[Measurement]] = {system.name: [] for system in systems}
    for system in systems:
        measure(system)
    for _ in range(rounds):
        for system in systems:
            times[system.name].append(measure(system))
    ours = [m.seconds for m in times["tempo_ir"]]
    for system in systems:
        seconds = [m.seconds / units for m in times[system.name]]
        cpu = statistics.median((m.cpu - m.excluded) / units for m in times[system.name])
        report.rows.append(
            Row(benchmark, dict(case), system.name, statistics.median(seconds), min(seconds), max(seconds), cpu,
                system.compile_seconds, system.peak_bytes, system.launches, bound)
        )  # fmt: skip
        if system.name != "tempo_ir":
            pairs = [theirs.seconds / mine for theirs, mine in zip(times[system.name], ours, strict=True)]
            report.ratios.append(
                {
                    "benchmark": benchmark,
                    "case": dict(case),
                    "system": system.name,
                    "median_ratio": statistics.median(pairs),
                }
            )


def measure(system: System) -> Measurement:
    wall, cpu = time.perf_counter(), time.process_time()
    excluded = system.run()
    return Measurement(time.perf_counter() - wall, time.process_time() - cpu, excluded)


def read_bandwidth(size: int) -> float:
    """Bytes per second at which one thread reads `size` bytes of f32 over and over (best of 10)."""
    import numpy as np

    data = np.ones(max(size // 4, 1), np.float32)
    best = 0.0
    for _ in range(10):
        start = time.perf_counter()
        data.max()
        best = max(best, data.nbytes / (time.perf_counter() - start))
    return best


def machine() -> dict[str, Any]:
    """What the figures were measured on."""

    def installed(package: str) -> str | None:
        try:
            return version(package)
        except PackageNotFoundError:
            return None

    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "threads": 1,
        "python": platform.python_version(),
        "versions": {
            name: installed(name) for name in ("tempo_ir", "xdsl", "llvmlite", "numpy", "torch", "jax", "gymnasium")
        },
    }


def processor_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
