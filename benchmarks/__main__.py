"""`python -m benchmarks NAME [--quick] [--json FILE] [--threads N]`.

`all` runs each in a process, some with two threads as well, and writes a page; `page` writes it of the reports that
there are.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

NAMES = ("first", "decode", "rnn", "rl", "kernels", "compile", "memory", "ablation")
"""A module of this package each, with a function `run(report, quick)`."""
REPORTS = Path("build/benchmarks")
"""Where `all` writes the reports, and `page` finds them."""
THREADED = ("decode", "rnn", "rl", "kernels")
"""Those that `all` runs with two threads as well."""


def main(args: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="tempo_ir beside jax, torch and stable-baselines3 on the same work"
    )
    parser.add_argument("name", choices=(*NAMES, "all", "page"), help="which benchmark")
    parser.add_argument("--quick", action="store_true", help="smaller cases and fewer rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows as JSON (all: a directory)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="all: where the page goes (docs/benchmarks.md)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads for every system (1)")
    parser.add_argument(
        "--only", type=pair, action="append", default=[], metavar="KEY=VALUE",
        help="only cases with this value, as T=1024",
    )  # fmt: skip
    arguments = parser.parse_args(args)
    if arguments.name == "all":
        run_all(arguments)
    if arguments.name in ("all", "page"):
        from benchmarks.page import write_page

        directory = arguments.json or REPORTS
        if not write_page(directory, arguments.page or Path("docs/benchmarks.md"), NAMES):
            parser.error(
                f"{directory} has no reports, the page stays: python -m benchmarks NAME --json FILE writes one"
            )
        return 0
    limit_threads(arguments.threads)
    os.environ["TEMPO_CACHE_DIR"] = ""  # seconds of a compile are those of one, not of a file read
    from benchmarks.harness import Report

    report = Report(only=dict(arguments.only))
    import_module(f"benchmarks.{arguments.name}").run(report, quick=arguments.quick)
    report.print()
    if arguments.json is not None:
        report.write_json(arguments.json)
    for line in report.missing:
        print(f"error: {line}", file=sys.stderr)
    return 1 if report.missing else 0


def pair(text: str) -> tuple[str, str]:
    """The key and the value of `KEY=VALUE`. Raises ArgumentTypeError, which argparse prints."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"'{text}' is no KEY=VALUE, as T=1024")
    return key, value


def limit_threads(count: int) -> None:
    """As many threads for everybody, before torch, jax or numpy start their pools."""
    for name in ("OMP", "MKL", "OPENBLAS", "TEMPO"):
        os.environ[f"{name}_NUM_THREADS"] = str(count)
    several = "true" if count > 1 else "false"
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={several} intra_op_parallelism_threads={count}"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")


def run_all(arguments: argparse.Namespace) -> None:
    """Every benchmark in a process of its own."""
    from benchmarks.page import report_name

    directory = arguments.json or REPORTS
    for name, threads in [*((name, 1) for name in NAMES), *((name, 2) for name in THREADED)]:
        command = [sys.executable, "-m", "benchmarks", name, "--json", str(directory / report_name(name, threads))]
        command += ["--threads", str(threads), *["--quick"] * arguments.quick]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main())
