"""Alternate timing of several systems on one piece of work, what the machine can do, and the report."""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.targets import outcomes
from tempo_ir.runtime.profile import Profile


@dataclass(frozen=True)
class Measurement:
    """Seconds of one run of a system; `excluded` (inside an environment, say) is taken out of those by the clock, not
    out of those of the processor."""

    wall: float
    cpu: float
    excluded: float = 0.0

    @property
    def seconds(self) -> float:
        return self.wall - self.excluded


@dataclass(frozen=True)
class System:
    """One contender: a name, a run of the whole work, and what it cost to prepare it.

    `run` does the work once and returns the seconds to leave out of the time (0.0 mostly). `units` says how many units
    (tokens, iterations) one run is, where that is not as many as of the others. Where `peak_bytes` is None, it is what
    the process grows by in the first run. `profile` gives where the time of a run goes; it is asked for where a target
    is missed.
    """

    name: str
    run: Callable[[], float]
    compile_seconds: float
    peak_bytes: int | None = None
    launches: int | None = None
    profile: Callable[[], Profile] | None = None
    units: int | None = None


@dataclass
class Sheet:
    """A table of numbers of any kind; NaN is none."""

    title: str
    headings: tuple[str, ...]
    lines: list[tuple[str, tuple[float, ...]]] = field(default_factory=list[tuple[str, tuple[float, ...]]])

    def add(self, name: str, *numbers: float) -> None:
        """Add a line."""
        self.lines.append((name, numbers))


HEADINGS = (
    "benchmark", "case", "system", "median", "min", "max", "ratio", "of cpu", "compile", "peak MB", "launches", "bound",
    "of bound",
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
    runs: int


@dataclass
class Report:
    """The rows of all benchmarks of one call and the machine they ran on."""

    rows: list[Row] = field(default_factory=list[Row])
    ratios: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    sheets: list[Sheet] = field(default_factory=list[Sheet])
    notes: list[str] = field(default_factory=list[str])
    profiles: list[tuple[str, dict[str, Any], Profile]] = field(
        default_factory=list[tuple[str, dict[str, Any], Profile]]
    )
    only: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values that a case must have to be run, as text."""
    offered: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The values that cases had, run or not, by key."""

    def wants(self, case: Mapping[str, Any]) -> bool:
        """Whether a case is to be run."""
        for key, value in case.items():
            self.offered.setdefault(key, []).append(str(value))
        return all(key not in case or str(case[key]) == value for key, value in self.only.items())

    @property
    def missing(self) -> list[str]:
        """What was asked for and no case has, a line each with what they have."""
        lines: list[str] = []
        for key, value in self.only.items():
            offered = list(dict.fromkeys(self.offered.get(key, [])))
            if value not in offered:
                others = (
                    f"{key} is {', '.join(offered)}" if offered else f"they have {', '.join(self.offered) or 'none'}"
                )
                lines.append(f"no case has {key}={value}: {others}")
        return lines

    @property
    def document(self) -> dict[str, Any]:
        """`{"machine": {...}, "rows": [...], "ratios": [...], "sheets": [...], "profiles": [...], "notes": [...]}`."""
        return {
            "machine": machine(),
            "rows": [asdict(row) for row in self.rows],
            "ratios": self.ratios,
            "sheets": [asdict(sheet) for sheet in self.sheets],
            "profiles": [{"benchmark": name, "case": case, **asdict(profile)} for name, case, profile in self.profiles],
            "notes": self.notes,
        }

    def write_json(self, path: Path) -> None:
        """Write the document."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.document, indent=2) + "\n")

    def add(
        self,
        benchmark: str,
        case: Mapping[str, Any],
        system: str,
        times: Sequence[Measurement],
        compile_seconds: float = 0.0,
        peak_bytes: int | None = None,
        launches: int | None = None,
        bound: float | None = None,
    ) -> None:
        """A row of the times per unit of work."""
        seconds = [m.seconds for m in times]
        cpu = statistics.median(m.cpu for m in times)
        row = Row(
            benchmark, dict(case), system, statistics.median(seconds), min(seconds), max(seconds), cpu,
            compile_seconds, peak_bytes, launches, bound, len(seconds),
        )  # fmt: skip
        self.rows.append(row)

    def add_ratios(self, benchmark: str, case: Mapping[str, Any], times: Mapping[str, Sequence[Measurement]]) -> None:
        """The ratio of each system's time over tempo_ir's: the median of those of the rounds that it ran in, and of
        their processor time, which says more where the machine has other work (None where some of it is excluded)."""
        ours = times["tempo_ir"]
        for system, theirs in times.items():
            if system == "tempo_ir":
                continue
            pairs = list(zip(theirs, ours, strict=False))
            wall = statistics.median(a.seconds / b.seconds for a, b in pairs)
            whole = not any(a.excluded or b.excluded for a, b in pairs)
            cpu = statistics.median(a.cpu / max(b.cpu, 1e-9) for a, b in pairs) if whole else None
            self.ratios.append(
                {"benchmark": benchmark, "case": dict(case), "system": system, "median_ratio": wall, "cpu_ratio": cpu}
            )

    def add_profile(self, benchmark: str, case: Mapping[str, Any], profile: Profile) -> None:
        """Where the time of tempo_ir goes in a case."""
        self.profiles.append((benchmark, dict(case), profile))

    def print(self) -> None:
        """A table of all rows with the median ratio of every system's time over tempo_ir's, and the other tables."""
        if self.rows:
            self._print_rows()
        for sheet in self.sheets:
            table = Table(title=sheet.title)
            for number, heading in enumerate(sheet.headings):
                table.add_column(heading, justify="right" if number else "left")
            for name, numbers in sheet.lines:
                table.add_row(name, *(format_number(number) for number in numbers))
            Console(width=170).print(table)
        self._print_targets()
        for name, case, profile in self.profiles:
            print(f"\nWhere the time goes: {name} {case_text(case)}\n{profile}")
        for note in self.notes:
            print(note)

    def _print_targets(self) -> None:
        found = list(outcomes(self.document))
        if not found:
            return
        table = Table(title="targets")
        for heading in ("case", "measure", "target", "measured", "", "of bound"):
            table.add_column(heading, justify="left" if heading in ("case", "measure") else "right")
        for outcome in found:
            table.add_row(
                case_text(outcome.case),
                outcome.target.measure,
                str(outcome.target),
                format_number(outcome.measured),
                "met" if outcome.is_met else "MISSED",
                "" if outcome.of_bound is None else f"{outcome.of_bound:.2f}",
            )
        Console(width=170).print(table)

    def _print_rows(self) -> None:
        table = Table(title="seconds per unit of work; ratio = time over tempo_ir's, median of alternate pairs")
        for heading in HEADINGS:
            table.add_column(heading, justify="left" if heading in ("benchmark", "case", "system") else "right")
        ratio_of = {
            (r["benchmark"], str(r["case"]), r["system"]): (r["median_ratio"], r["cpu_ratio"]) for r in self.ratios
        }
        for row in self.rows:
            ratios = ratio_of.get((row.benchmark, str(dict(row.case)), row.system), ())
            table.add_row(
                row.benchmark,
                case_text(row.case),
                row.system,
                *(format_seconds(x) for x in (row.median_s, row.min_s, row.max_s)),
                *(["" if ratio is None else f"{ratio:.2f}x" for ratio in ratios] or ["", ""]),
                f"{row.compile_s:.2f} s",
                "" if row.peak_bytes is None else f"{row.peak_bytes / 1e6:.2f}",
                "" if row.launches is None else str(row.launches),
                "" if row.bound_s is None else format_seconds(row.bound_s),
                "" if row.bound_s is None else f"{row.bound_s / row.median_s:.2f}",
            )
        Console(width=170).print(table)


def case_text(case: Mapping[str, Any]) -> str:
    """The values of a case with their names."""
    return " ".join(f"{key}={value}" for key, value in case.items())


def format_seconds(seconds: float) -> str:
    if seconds >= 1.0:
        return f"{seconds:.3f} s"
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def format_number(number: float) -> str:
    """Four digits; nothing for NaN."""
    if number != number:
        return ""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def finish(_: Any) -> float:
    """The work of a run whose time is all of it."""
    return 0.0


PATIENCE, FEWEST = 900.0, 3
"""Seconds that the rounds of a case may take, and how many there are even so."""


def compare(
    report: Report,
    benchmark: str,
    case: Mapping[str, Any],
    systems: Sequence[System],
    units: int,
    rounds: int,
    bound: float | None = None,
) -> None:
    """Run all systems in turn, `rounds` times after one warm-up each, and add their rows and ratios to the report.

    One run is of `units` units. What would take longer than `PATIENCE` is run fewer times, though `FEWEST`, and its
    warm-up, whose minutes no cold cache changes, is the first of them. A `bound` is that of one thread: with more there
    is none in the report. The order is drawn anew for each round: who follows another finds in the caches what that one
    left there, which changes times by up to a tenth.
    """
    bound = bound if threads() == 1 else None
    times: dict[str, list[Measurement]] = {system.name: [] for system in systems}
    grown: dict[str, int] = {}

    def take_turn(system: System) -> None:
        times[system.name].append(measure(system, system.units or units))

    start = time.perf_counter()
    for system in systems:
        grown[system.name] = grown_bytes(lambda system=system: take_turn(system))
    round_s = time.perf_counter() - start
    if (afforded := max(FEWEST, int(PATIENCE / round_s))) < rounds:
        rounds = afforded - 1
    else:
        for found in times.values():
            found.clear()
    order = random.Random(0)
    for _ in range(rounds):
        for system in order.sample(systems, len(systems)):
            take_turn(system)
    for system in systems:
        peak = grown[system.name] if system.peak_bytes is None else system.peak_bytes
        found = times[system.name]
        report.add(benchmark, case, system.name, found, system.compile_seconds, peak, system.launches, bound)
    report.add_ratios(benchmark, case, times)
    add_profiles(report, benchmark, case, systems)


def add_profiles(report: Report, benchmark: str, case: Mapping[str, Any], systems: Sequence[System]) -> None:
    """Where the time goes in a case that misses a target: its kernels, the slowest first."""
    mine = {"rows": [asdict(row) for row in report.rows if row.case == case], "ratios": report.ratios, "sheets": []}
    if all(outcome.is_met for outcome in outcomes(mine) if outcome.case == case):
        return
    for system in systems:
        if system.profile is not None:
            report.add_profile(benchmark, case, system.profile())


def measure(system: System, units: int) -> Measurement:
    """One run, per unit."""
    wall, cpu = time.perf_counter(), time.process_time()
    excluded = system.run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Measurement(wall / units, cpu / units, excluded / units)


def grown_bytes(run: Callable[[], Any]) -> int:
    """What the resident memory of this process grows by, at most, while it runs; 0 where the system does not say."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not reset.exists():
        run()
        return 0
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free but kept would be used again without growing
    reset.write_text("5")
    before = resident(status, "VmRSS")
    run()
    return max(resident(status, "VmHWM") - before, 0)


def resident(status: Path, field: str) -> int:
    """A size of /proc/self/status, in bytes."""
    (line,) = [line for line in status.read_text().splitlines() if line.startswith(field)]
    return int(line.split()[1]) * 1024


@cache
def read_bandwidth(size: int) -> float:
    """Bytes per second at which one thread reads `size` bytes of f32 over and over (best of 20)."""
    import numpy as np

    data = np.ones(max(size // 4, 1), np.float32)
    return data.nbytes / min(seconds_of(read) for _ in range(10) for read in (data.max, lambda: np.dot(data, data)))


@cache
def peak_flops() -> float:
    """f32 operations per second of one thread in the fastest matrix product at hand (best of 40)."""
    import numpy as np
    import torch

    best, size = 0.0, 384
    a = np.ones((size, size), np.float32)
    b = torch.from_numpy(a)
    for _ in range(20):
        for product in (lambda: a @ a, lambda: b @ b):
            best = max(best, 2.0 * size**3 / seconds_of(product))
    return best


def seconds_of(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def jax_compiled(jitted: Any, *arguments: Any) -> tuple[Any, float, int]:
    """What jax compiles of a jitted function for these arguments, the seconds that took, and the bytes it needs beside
    arguments and results."""
    start = time.perf_counter()
    executable = jitted.lower(*arguments).compile()
    return executable, time.perf_counter() - start, executable.memory_analysis().temp_size_in_bytes


def bound_of(read: float, operations: float, footprint: float | None = None) -> float:
    """Seconds below which no program on one thread can read so many bytes and do so many f32 operations.

    `footprint` is the size of what is read again and again, where that is less than `read`.
    """
    size = rounded(read if footprint is None else footprint)
    return max(read / read_bandwidth(size) if read else 0.0, operations / peak_flops() if operations else 0.0)


def rounded(size: float) -> int:
    """A size or a little less, one of two in an octave: as many measurements of the bandwidth do."""
    return int(2 ** (math.floor(2 * math.log2(max(size, 1024))) / 2))


PACKAGES = ("tempo_ir", "xdsl", "llvmlite", "numpy", "torch", "jax", "gymnasium", "stable-baselines3")
"""Whose versions a report names."""


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
        "threads": threads(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "versions": {name: installed(name) for name in PACKAGES},
    }


def threads() -> int:
    """How many threads each system has."""
    return int(os.environ.get("TEMPO_NUM_THREADS", "1"))


def processor_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
