"""The page of all benchmarks, docs/benchmarks.md, from the JSON of their reports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.harness import case_text, format_number, format_seconds
from benchmarks.targets import outcomes
from tempo_ir.runtime.profile import KernelTime, Profile

HEAD = """# Benchmarks

`make bench` runs all and writes this page; `python -m benchmarks NAME` runs one of them (`--quick`: smaller cases,
`--only T=1024`: those with this value, `--threads 2`).

Every benchmark compares first what all systems compute, then runs them in turn in one process, and gives the median of
the runs. `times` is a system's time over tempo_ir's in the same round (above 1: tempo_ir is faster), `of cpu` the same
of processor time, which says more where the machine had other work. `peak` is memory beside arguments and results: what
is planned, for tempo_ir and jax, what the process grows by in the first run, for the others. `bound` is what no program
on this machine can be faster than: bytes that must be read over the bandwidth that one thread reads as many bytes at,
operations over the rate of the fastest matrix product at hand, both measured in the same run.
A case that misses a target has a table of its kernels, by `tempo_ir.profile`.
"""

KERNELS_SHOWN = 8
"""How many kernels of a profile are shown."""

BUSY = 1.5
"""The load by thread of a benchmark from which on others had the machine too."""


def write_page(directory: Path, page: Path, names: Sequence[str]) -> bool:
    """Write the page from `directory`/NAME.json, and NAME-2.json for two threads; what has no report is left out. Cases
    that were run apart are in NAME.*.json. Where there is none at all, the page stays as it is: whether it was written.
    """
    found = {(name, threads): reports_of(directory, name, threads) for name in names for threads in (1, 2)}
    reports = {key: merged(parts) for key, parts in found.items() if parts}
    if not reports:
        return False
    parts = [HEAD, *machine(list(reports.values())), *targets_of(reports)]
    for (name, threads), report in reports.items():
        parts += section(name, threads, report)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(parts).rstrip() + "\n")
    return True


def report_name(name: str, threads: int) -> str:
    """The file of the report of a benchmark."""
    return f"{name}.json" if threads == 1 else f"{name}-{threads}.json"


def reports_of(directory: Path, name: str, threads: int) -> list[dict[str, Any]]:
    """The reports of a benchmark, those of some cases after that of the others, in the order of their names."""
    whole = directory / report_name(name, threads)
    parts = sorted(directory.glob(f"{whole.stem}.*.json"))
    return [json.loads(path.read_text()) for path in (whole, *parts) if path.exists()]


def merged(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Several reports as one, of the machine as it was in the busiest of them; of a case that stands in two the later
    one counts."""
    first, *others = reports
    for other in others:
        again = {(row["benchmark"], str(row["case"])) for row in other["rows"]}
        for part in ("rows", "ratios", "profiles"):
            first[part] = [x for x in first[part] if (x["benchmark"], str(x["case"])) not in again] + other[part]
        for sheet in other["sheets"]:
            same = [known for known in first["sheets"] if all(known[k] == sheet[k] for k in ("title", "headings"))]
            if same:
                same[0]["lines"] += sheet["lines"]
            else:
                first["sheets"].append(sheet)
        first["notes"] += [note for note in other["notes"] if note not in first["notes"]]
        first["machine"]["load"] = max(first["machine"]["load"], other["machine"]["load"])
    return first


def targets_of(reports: Mapping[tuple[str, int], Mapping[str, Any]]) -> Iterator[str]:
    """The targets that the reports of one thread have cases of: reached or missed."""
    found = [(name, outcome) for (name, threads), one in reports.items() if threads == 1 for outcome in outcomes(one)]
    if not found:
        return
    met = sum(outcome.is_met for _, outcome in found)
    yield "## Targets\n"
    yield f"{met} of {len(found)} are reached, with one thread; `measured` beside `target` is the ratio of `times`.\n"
    lines = [
        [
            name,
            case_text(outcome.case),
            outcome.target.measure,
            str(outcome.target),
            format_number(outcome.measured),
            "" if outcome.of_bound is None else f"{outcome.of_bound:.2f}",
            "reached" if outcome.is_met else "**missed**",
        ]
        for name, outcome in found
    ]
    yield table(("benchmark", "case", "measure", "target", "measured", "of bound", ""), lines)


def machine(reports: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What it ran on, from the first report."""
    for report in reports[:1]:
        about = report["machine"]
        versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items() if version)
        yield f"{about['processor']}, {about['cores']} cores; each system has one thread where nothing else is said."
        yield f"Python {about['python']}, {versions}.\n"


def section(name: str, threads: int, report: Mapping[str, Any]) -> Iterator[str]:
    """A benchmark: what its module says it is, its rows, its tables."""
    if threads == 1:
        yield f"## {name}\n"
        words = (import_module(f"benchmarks.{name}").__doc__ or "").strip().split("\n\n")
        yield "\n\n".join(paragraph for paragraph in words if not paragraph.startswith("`python -m")) + "\n"
    else:
        yield f"### {name} with {threads} threads\n"
    if report["rows"]:
        yield from rows(report)
    for sheet in report["sheets"]:
        yield f"{sheet['title'][:1].upper()}{sheet['title'][1:]}:\n"
        lines = [[line, *(format_number(number) for number in numbers)] for line, numbers in sheet["lines"]]
        yield table(sheet["headings"], lines)
    yield from profiles(report)
    yield from (f"{note}\n" for note in report["notes"])
    if (load := report["machine"]["load"]) > BUSY * report["machine"]["threads"]:
        yield f"The machine had other work (a load of {load:.0f}): of the times only `of cpu` says much.\n"


def rows(report: Mapping[str, Any]) -> Iterator[str]:
    """A table for each benchmark of a report, with a column for each entry of its cases."""
    ratios = {
        (ratio["benchmark"], str(ratio["case"]), ratio["system"]): ratio for ratio in report["ratios"]
    }  # fmt: skip
    for benchmark in dict.fromkeys(row["benchmark"] for row in report["rows"]):
        mine = [row for row in report["rows"] if row["benchmark"] == benchmark]
        keys = list(dict.fromkeys(key for row in mine for key in row["case"]))
        columns = ("system", "runs", "time", "times", "of cpu", "compile", "peak", "bound", "of bound")
        lines: list[list[str]] = []
        for row in mine:
            ratio = ratios.get((benchmark, str(row["case"]), row["system"]))
            lines.append([*(str(row["case"].get(key, "")) for key in keys), *cells(row, ratio)])
        yield table((*keys, *columns), lines)


def profiles(report: Mapping[str, Any]) -> Iterator[str]:
    """The kernels of the cases that miss a target, the slowest first."""
    for one in report["profiles"]:
        found = Profile(one["seconds"], tuple(KernelTime(**kernel) for kernel in one["kernels"]))
        yield f"Where the time goes in {case_text(one['case'])}, {format_seconds(found.seconds)} in all:\n"
        lines = [
            [
                kernel.kernel,
                f"{kernel.launches:,}",
                format_seconds(kernel.seconds),
                f"{100 * kernel.seconds / found.seconds:.0f} %",
                format_seconds(kernel.least),
                *("" if rate is None else f"{rate / 1e9:.1f}" for rate in (kernel.flops, kernel.bandwidth)),
            ]
            for kernel in found.kernels[:KERNELS_SHOWN]
        ]
        others = sum(kernel.seconds for kernel in found.kernels[KERNELS_SHOWN:])
        for name, seconds in (("other kernels", others), ("outside of kernels", found.elsewhere)):
            share = f"{100 * seconds / found.seconds:.0f} %"
            lines += [[name, "", format_seconds(seconds), share, *[""] * 3]] if seconds else []
        yield table(("kernel", "launches", "seconds", "share", "shortest", "GF/s", "GB/s"), lines)


def cells(row: Mapping[str, Any], ratio: Mapping[str, Any] | None) -> list[str]:
    bound, peak = row["bound_s"], row["peak_bytes"]
    return [
        row["system"],
        str(row["runs"]),
        format_seconds(row["median_s"]),
        "" if ratio is None else f"{ratio['median_ratio']:.2f}",
        "" if ratio is None or ratio["cpu_ratio"] is None else f"{ratio['cpu_ratio']:.2f}",
        f"{row['compile_s']:.2f} s" if row["compile_s"] else "",
        "" if peak is None else f"{peak / 1e6:.2f} MB",
        "" if bound is None else format_seconds(bound),
        "" if bound is None else f"{bound / row['median_s']:.2f}",
    ]


def table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    marks = ["---"] + ["---:"] * (len(headings) - 1)
    return "\n".join(f"| {' | '.join(line)} |" for line in (headings, marks, *lines)) + "\n"
