"""tempo-reduce: shrink a program that shows a fault.

tempo-reduce FILE.mlir --test 'tempo-run --check' -o small.mlir

The test is a command that is run on each smaller program, whose path is its last argument (or stands where the command
says `{}`). It exits with 0 while the program is still interesting, which is the contract of xDSL's `--shrink` and of
test-case reducers in general: to look for a command that fails, write `--test 'not tempo-run --check'`.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tempo_ir.tools.diagnostics import Sources, UserError, exit_status

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

PLACE = "{}"
"""Where the path of the program stands in the test."""


def main(args: Sequence[str] | None = None) -> int:
    """The exit status of `tempo-reduce ARGS`: 1 after an error, and where the file itself is not interesting."""
    arguments = argument_parser().parse_args(args)
    return exit_status(partial(_run, arguments))


def argument_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="tempo-reduce",
        usage="%(prog)s FILE.mlir --test COMMAND [options]",
        description="Shrink an sdg program while a command finds it interesting.",
        allow_abbrev=False,
    )
    parser.add_argument("program", metavar="FILE.mlir", help="a module with one sdg.program; `-` is standard input")
    parser.add_argument(
        "--test",
        required=True,
        metavar="COMMAND",
        help="exits with 0 while the program, the last argument (or where it says {}), is interesting; `not COMMAND` "
        "turns the answer round",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where the result goes (default: output)")
    parser.add_argument("--timeout", type=_positive, default=60, metavar="S", help="a test that takes longer says no")
    parser.add_argument("--tries", type=_count, default=5000, metavar="N", help="how many programs are tested at most")
    return parser


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"seconds expected, more than 0, not {text}")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"a number of programs expected, 1 or more, not {text}")
    return value


def _run(arguments: argparse.Namespace, sources: Sources) -> int:
    from tempo_ir.tools import inputs, shrinking
    from tempo_ir.tools.parsing import own_context, parse_module

    if inputs.python_input(arguments.program) is not None:
        raise UserError(
            f"{arguments.program}: tempo-reduce reads IR text: `tempo-opt {arguments.program} -o FILE.mlir`"
        )
    text, name = inputs.read_text(arguments.program)
    sources.texts[name] = text
    module = parse_module(own_context(), text, name)
    if not shrinking.has_program(module):
        raise UserError(f"{name}: tempo-reduce shrinks a module with one sdg.program")
    progress = Progress(arguments.output, module)
    with tempfile.TemporaryDirectory() as folder:
        test = CommandTest(arguments.test, Path(folder) / "program.mlir", arguments.timeout)
        if not test(module):
            raise UserError(f"{name}: the test says no to the program as it is: `{test.shown}` must exit with 0")
        # a program that the verifier refuses may be what is looked into: then all smaller ones are tested
        shrinker = shrinking.Shrinker(test, shrinking.verifies(module), arguments.tries, progress.take)
        try:
            shrinker.shrink(module)
        except KeyboardInterrupt:
            print("interrupted; the smallest program so far:", file=sys.stderr)
            progress.finish(shrinker.tries)
            return 130
    progress.finish(shrinker.tries)
    return 0


@dataclass
class Progress:
    """Shows how small the program has become, and keeps the smallest one: in the output file too, at each step."""

    output: Path | None
    smallest: ModuleOp

    def __post_init__(self) -> None:
        self.first = self.shown = self.ops

    @property
    def ops(self) -> int:
        """The ops inside of the program."""
        return sum(1 for _ in self.smallest.walk()) - 2

    def take(self, smaller: ModuleOp) -> None:
        """A smaller program was found. Raises OSError where the output cannot be written."""
        self.smallest = smaller
        if self.output is not None:
            self.output.write_text(str(smaller) + "\n")
        if self.ops < self.shown:
            self.shown = self.ops
            print(f"{self.first} ops, now {self.ops}", file=sys.stderr, flush=True)

    def finish(self, tries: int) -> None:
        """Write the result."""
        print(f"{self.first} ops, then {self.ops}; {tries} programs tested", file=sys.stderr)
        if self.output is None:
            print(self.smallest)
        else:
            self.output.write_text(str(self.smallest) + "\n")


@dataclass
class CommandTest:
    """Whether a command exits with 0 on a module, which it finds at a path."""

    command: str
    path: Path
    timeout: float

    @property
    def words(self) -> list[str]:
        """The command with the path in it; without a `not` in front."""
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise UserError(f"--test {self.command}: {error}") from None
        if words in ([], ["not"]):
            raise UserError(f"--test '{self.command}': no command")
        if PLACE in self.command:
            return [word.replace(PLACE, str(self.path)) for word in words]
        return [*words, str(self.path)]

    @property
    def shown(self) -> str:
        """The command as a user would type it."""
        return shlex.join(self.words)

    def __call__(self, module: ModuleOp) -> bool:
        """Run the command. Raises UserError where there is no such command."""
        self.path.write_text(str(module) + "\n")
        words = self.words
        turned = words[:1] == ["not"]
        try:
            done = subprocess.run(words[turned:], capture_output=True, timeout=self.timeout, check=False)
        except subprocess.TimeoutExpired:
            return False
        except OSError as error:
            raise UserError(f"--test {self.command}: {error.strerror}: {words[turned]}") from None
        return (done.returncode != 0) == turned


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        sys.exit(main())
