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
from pathlib import Path
from typing import TYPE_CHECKING

from tempo_ir.tools.diagnostics import Sources, UserError, diagnostic_of_error, is_user_error

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

PLACE = "{}"
"""Where the path of the program stands in the test."""


def main(args: Sequence[str] | None = None) -> int:
    """The exit status of `tempo-reduce ARGS`: 1 after an error, and where the file itself is not interesting."""
    arguments = argument_parser().parse_args(args)
    sources = Sources()
    try:
        return _run(arguments, sources)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if not is_user_error(error):
            raise
        print(sources.render(diagnostic_of_error(error)), file=sys.stderr)
        return 1


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
    parser.add_argument("--timeout", type=float, default=60, metavar="S", help="a test that takes longer says no")
    parser.add_argument("--tries", type=int, default=5000, metavar="N", help="how many programs are tested at most")
    return parser


def _run(arguments: argparse.Namespace, sources: Sources) -> int:
    from tempo_ir.tools import inputs, shrinking
    from tempo_ir.tools.parsing import own_context, parse_module

    text, name = inputs.read_text(arguments.program)
    sources.texts[name] = text
    module = parse_module(own_context(), text, name)
    if not shrinking.has_program(module):
        raise UserError(f"{name}: tempo-reduce shrinks a module with one sdg.program")
    with tempfile.TemporaryDirectory() as folder:
        test = CommandTest(arguments.test, Path(folder) / "program.mlir", arguments.timeout)
        if not test(module):
            raise UserError(f"{name}: the test says no to the program as it is: `{test.shown}` must exit with 0")
        # a program that the verifier refuses may be what is looked into: then all smaller ones are tested
        shrinker = shrinking.Shrinker(test, shrinking.verifies(module), arguments.tries)
        smaller = shrinker.shrink(module)
    before, after = shrinking.size(module)[1], shrinking.size(smaller)[1]
    print(f"{before - 2} ops, then {after - 2}; {shrinker.tries} programs tested", file=sys.stderr)
    result = str(smaller)
    if arguments.output is None:
        print(result)
    else:
        arguments.output.write_text(result + "\n")
    return 0


@dataclass
class CommandTest:
    """Whether a command exits with 0 on a module, which it finds at a path."""

    command: str
    path: Path
    timeout: float

    @property
    def words(self) -> list[str]:
        """The command with the path in it; without a `not` in front."""
        words = shlex.split(self.command)
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
