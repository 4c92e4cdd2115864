"""`python -m tests.fuzz --seconds 600 --seed 1`: random programs until the time is up; each failure, made small, is a
file under build/fuzz/. The exit status is 1 where there is one."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.check import SLOW, Failure, failure_of
from tests.fuzz.coverage import Coverage
from tests.fuzz.generator import FURTHER, generate, text_of
from tests.fuzz.isolation import answers
from tests.fuzz.reducing import reduced

SECONDS = 120.0
"""Of processor time for one program in every way; one that takes longer is a fault of the time that compiling takes."""


def main(args: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=60, help="when to stop (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--programs", type=int, help="how many to try at most")
    parser.add_argument("--steps", type=int, default=12, help="ops per program, about (default: 12)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--quick", action="store_true", help="do not leave out each pass in turn")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="where reduced programs go")
    parser.add_argument("--no-reduce", action="store_true", help="write failing programs as they are")
    arguments = parser.parse_args(args)
    session = Session(arguments)
    session.run()
    print(session.report())
    return 1 if session.failures else 0


@dataclass
class Tried:
    """What became of one program."""

    text: str
    coverage: Coverage
    kind: str = ""
    message: str = ""
    seconds: float = 0

    @property
    def failure(self) -> Failure | None:
        return Failure(self.kind, self.message) if self.kind else None


@dataclass
class Session:
    """One run of the command."""

    arguments: argparse.Namespace
    coverage: Coverage = field(default_factory=Coverage)
    failures: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    first: dict[str, tuple[str, str, Failure]] = field(default_factory=dict[str, tuple[str, str, Failure]])
    longest: tuple[float, str] = (0.0, "")
    start: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        for seed, tried in answers(self.tried, self.seeds(), self.arguments.jobs, SECONDS):
            if isinstance(tried, Failure):
                # the process is gone, and what it made with it
                module = generate(seed, self.arguments.steps, FURTHER)
                coverage = Coverage()
                coverage.add(module)
                tried = Tried(text_of(module), coverage, tried.kind, tried.text, SECONDS)
            self.coverage.merge(tried.coverage)
            self.longest = max(self.longest, (tried.seconds, seed))
            if tried.failure is not None:
                self.note(seed, tried.text, tried.failure)
        if not self.arguments.no_reduce:
            for seed, text, failure in self.first.values():
                self.write(seed, reduced(text, failure), failure)

    def seeds(self) -> Iterator[str]:
        """A seed per program until the time is up."""
        number = 0
        while time.monotonic() - self.start < self.arguments.seconds and number != self.arguments.programs:
            yield f"{self.arguments.seed}.{number}"
            number += 1

    def tried(self, seed: str) -> Tried:
        """Generate a program and check it."""
        begin = time.process_time()
        module = generate(seed, self.arguments.steps, FURTHER)
        tried = Tried(text_of(module), Coverage())
        tried.coverage.add(module)
        failure = failure_of(tried.text, thorough=not self.arguments.quick)
        if failure is not None:
            tried.kind, tried.message = failure.kind, failure.text
        tried.seconds = time.process_time() - begin
        return tried

    def note(self, seed: str, text: str, failure: Failure) -> None:
        """Count and print what a program shows; of each kind of failure the first is made small at the end."""
        print(f"seed {seed}: {failure}", file=sys.stderr)
        if failure.is_refusal:
            self.refused[failure.kind] += 1
            return
        self.failures[failure.kind] += 1
        if failure.kind != SLOW:
            self.first.setdefault(failure.kind, (seed, text, failure))
        self.write(seed, text, failure)

    def write(self, seed: str, text: str, failure: Failure) -> None:
        folder: Path = self.arguments.out
        folder.mkdir(parents=True, exist_ok=True)
        comment = "\n// ".join(str(failure).splitlines())
        (folder / f"{seed}.mlir").write_text(f"// seed {seed}, {comment}\n{text}\n")

    def report(self) -> str:
        seconds = time.monotonic() - self.start
        lines = [
            self.coverage.table(),
            f"{self.coverage.programs} programs in {seconds:.0f} s, {self.failures.total()} failures, "
            f"{self.refused.total()} refused with a reason",
            f"  the longest took {self.longest[0]:.0f} s (seed {self.longest[1]})",
        ]
        lines += [f"  failure: {count} {kind}" for kind, count in self.failures.most_common()]
        lines += [f"  refused: {count} {kind}" for kind, count in self.refused.most_common()]
        return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
