"""`python -m tests.fuzz --seconds 600 --seed 1`: random programs until the time is up; each failure, made small, is a
file under build/fuzz/. The exit status is 1 where there is one."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.check import SLOW, Failure
from tests.fuzz.coverage import Coverage
from tests.fuzz.generator import generate, text_of
from tests.fuzz.isolation import isolated_failure
from tests.fuzz.reducing import reduced


def main(args: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=60, help="when to stop (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--programs", type=int, help="how many to try at most")
    parser.add_argument("--steps", type=int, default=12, help="ops per program, about (default: 12)")
    parser.add_argument("--quick", action="store_true", help="do not leave out each pass in turn")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="where reduced programs go")
    parser.add_argument("--no-reduce", action="store_true", help="write failing programs as they are")
    arguments = parser.parse_args(args)
    session = Session(arguments)
    session.run()
    print(session.report())
    return 1 if session.failures else 0


@dataclass
class Session:
    """One run of the command."""

    arguments: argparse.Namespace
    coverage: Coverage = field(default_factory=Coverage)
    failures: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    start: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        number = 0
        while time.monotonic() - self.start < self.arguments.seconds:
            if self.arguments.programs is not None and number >= self.arguments.programs:
                break
            self._program(f"{self.arguments.seed}.{number}")
            number += 1

    def _program(self, seed: str) -> None:
        module = generate(seed, self.arguments.steps)
        self.coverage.add(module)
        text = text_of(module)
        failure = isolated_failure(text, thorough=not self.arguments.quick)
        if failure is None:
            return
        if failure.kind == SLOW:
            print(f"seed {seed}: {failure}", file=sys.stderr)
            self._write(seed, text, failure)
        if failure.is_refusal or failure.kind == SLOW:
            self.refused[failure.kind] += 1
            return
        self.failures[failure.kind] += 1
        print(f"seed {seed}: {failure}", file=sys.stderr)
        # one reduced program of each kind is enough to begin with
        if not self.arguments.no_reduce and self.failures[failure.kind] == 1:
            text = reduced(text, failure)
        self._write(seed, text, failure)

    def _write(self, seed: str, text: str, failure: Failure) -> None:
        folder: Path = self.arguments.out
        folder.mkdir(parents=True, exist_ok=True)
        comment = "\n// ".join(str(failure).splitlines())
        (folder / f"{seed}.mlir").write_text(f"// seed {seed}, {comment}\n{text}\n")

    def report(self) -> str:
        seconds = time.monotonic() - self.start
        counted = [f"{count} {kind}" for kind, count in self.failures.most_common()]
        others = [f"{count} {kind}" for kind, count in self.refused.most_common()]
        lines = [
            self.coverage.table(),
            f"{self.coverage.programs} programs in {seconds:.0f} s, {self.failures.total()} failures, "
            f"{self.refused.total()} refused with a reason or stopped",
        ]
        lines += [f"  failure: {line}" for line in counted]
        lines += [f"  no answer: {line}" for line in others]
        return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
