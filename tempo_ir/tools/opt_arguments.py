"""The command line of tempo-opt. Flags of mlir-opt keep their names; the `mlir-` prefix may be left out."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from xdsl.xdsl_opt_main import VersionAction

from tempo_ir.tools.instrumentation import EVERY_PASS

_TRUTH = {"true": True, "1": True, "false": False, "0": False}

# flags whose value may be left out, and what they then mean; argparse would take the file that follows for it
_OPTIONAL_VALUES = {
    "--print-ir-before": EVERY_PASS,
    "--print-ir-after": EVERY_PASS,
    "--mlir-print-ir-before": EVERY_PASS,
    "--mlir-print-ir-after": EVERY_PASS,
    "--check-each": "interp",
    "--verify-each": "true",
}


def spelled_out(args: Sequence[str]) -> list[str]:
    """The arguments with the values that were left out: `--print-ir-after` is `--print-ir-after=*`."""
    return [f"{arg}={_OPTIONAL_VALUES[arg]}" if arg in _OPTIONAL_VALUES else arg for arg in args]


def add_arguments(
    parser: argparse.ArgumentParser, targets: Iterable[str], frontends: Iterable[str], version: str
) -> None:
    """Add every argument of tempo-opt, and those that xDSL's driver expects to find."""
    parser.prog = "tempo-opt"
    parser.usage = "%(prog)s [options] [INPUT]"
    parser.allow_abbrev = False
    parser.add_argument(
        "input_file",
        nargs="?",
        metavar="INPUT",
        help="IR text, or FILE.py[:name] with a @tp.program; standard input if it is missing or '-'",
    )
    _add_input(parser, frontends)
    _add_passes(parser)
    _add_output(parser, targets)
    _add_observation(parser)
    parser.add_argument("-v", "--version", action=VersionAction, version_format=version, help="print the version")
    # xDSL's driver would switch class-wide flags on for these two; ours does without them
    parser.set_defaults(disable_verify=False, syntax_highlight=False)


def _add_input(parser: argparse.ArgumentParser, frontends: Iterable[str]) -> None:
    group = parser.add_argument_group("input")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the Python program; may be given several times",
    )
    group.add_argument("--split-input-file", action="store_true", help="process parts between '// -----' lines alone")
    group.add_argument("--allow-unregistered-dialect", action="store_true", help="parse ops of unknown dialects")
    group.add_argument("--no-implicit-module", action="store_true", help="do not wrap the input in builtin.module")
    group.add_argument("-f", "--frontend", metavar="NAME", help=f"parser of the input: {', '.join(frontends)}")
    group.add_argument(
        "--load-pass-plugin",
        action="append",
        default=[],
        metavar="FILE.py",
        help="add the dialects, passes and targets of a file",
    )


def _add_passes(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("passes")
    group.add_argument(
        "--pass-pipeline",
        "-p",
        "--passes",
        dest="passes",
        default="",
        metavar="PIPELINE",
        help="'a,b{size=4}', plain or inside 'builtin.module(...)'; see --list-passes",
    )
    group.add_argument("--list-passes", action="store_true", help="list the passes with their options")
    group.add_argument("--show-dialects", action="store_true", help="list the dialects")
    group.add_argument(
        "--verify-each", type=_boolean, default=True, metavar="BOOL", help="verify after every pass (default: true)"
    )
    group.add_argument(
        "--check-each",
        choices=["interp"],
        help="run the module before and after every pass in the reference interpreter, at small sizes",
    )
    group.add_argument("--check-set", action="append", default=[], metavar="NAME=VALUE", help="a size for --check-each")
    group.add_argument("--disable-verify", dest="skip_verify", action="store_true", help="never verify")
    group.add_argument(
        "--verify-diagnostics",
        action="store_true",
        help="check the messages against 'expected-error@+1 {{...}}' comments; status 1 if they differ",
    )
    group.add_argument(
        "--mlir-pass-pipeline-crash-reproducer",
        "--crash-reproducer",
        metavar="FILE",
        help="where a pass fails, write the module and the pipeline up to it",
    )
    group.add_argument("--run-reproducer", action="store_true", help="run the pipeline that the input carries")


def _add_output(parser: argparse.ArgumentParser, targets: Iterable[str]) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output-file", metavar="FILE", help="write there; untouched after an error")
    group.add_argument("-t", "--target", default="mlir", metavar="TARGET", help=f"what to print: {', '.join(targets)}")
    group.add_argument("--print-op-generic", "--mlir-print-op-generic", action="store_true", help="generic syntax")
    group.add_argument("--print-no-properties", action="store_true", help="print properties as attributes")
    group.add_argument("--print-debuginfo", "--mlir-print-debuginfo", action="store_true", help="print locations")


def _add_observation(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("observation (standard error)")
    for when in ("before", "after"):
        group.add_argument(
            f"--print-ir-{when}",
            f"--mlir-print-ir-{when}",
            action="append",
            default=[],
            metavar="PASS",
            help=f"print the IR {when} one pass (=PASS) or every pass",
        )
        group.add_argument(
            f"--print-ir-{when}-all",
            f"--mlir-print-ir-{when}-all",
            dest=f"print_ir_{when}",
            action="append_const",
            const=EVERY_PASS,
            help=f"print the IR {when} every pass",
        )
    group.add_argument(
        "--print-ir-after-change",
        "--mlir-print-ir-after-change",
        action="store_true",
        help="print the IR after each pass that changed it",
    )
    group.add_argument("--remarks", action="store_true", help="say why something was or was not done")
    group.add_argument("--timing", "--mlir-timing", action="store_true", help="report wall times")
    group.add_argument("--pass-statistics", "--mlir-pass-statistics", action="store_true", help="report counters")
    group.add_argument("--traceback", action="store_true", help="show a Python traceback with every error")


def _boolean(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise argparse.ArgumentTypeError(f"true or false expected, not '{text}'")
    return _TRUTH[text.lower()]
