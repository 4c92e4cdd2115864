"""tempo-run: compile a program and run it on arrays from files, or on arrays drawn from a seed.

tempo-run PROGRAM.py[:name] --set T=16 --input x=x.npy --check
tempo-run program.mlir --target triton-interpret --set T=8 --host env=environments:CartPoles --out results
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tempo_ir.tools.diagnostics import Diagnostic, Sources, UserError, exit_status

if TYPE_CHECKING:
    from tempo_ir.tools.running import Call

TARGETS = ("cpu", "triton", "reference", "triton-interpret")


def main(args: Sequence[str] | None = None) -> int:
    """The exit status of `tempo-run ARGS`: 1 after an error or where `--check` finds a difference."""
    arguments = argument_parser().parse_args(args)
    return exit_status(partial(_run, arguments), show_traceback=arguments.traceback)


def argument_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="tempo-run",
        usage="%(prog)s [options] PROGRAM",
        description="Compile a recurrent-tensor program and run it.",
        allow_abbrev=False,
    )
    parser.add_argument("program", metavar="PROGRAM", help="FILE.py[:name] with a @tp.program, or FILE.mlir")
    parser.add_argument("--target", choices=TARGETS, default="cpu", help="where it runs (default: cpu)")
    parser.add_argument("--machine", metavar="NAME", help="of target triton: the GPU, sm_90 (default: the one here)")
    parser.add_argument("--precision", metavar="NAME", help="of f32 products on a GPU: ieee (default) or tf32")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the program, or a bound"
    )
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME=FILE.npy", help="an input; others are drawn from the seed"
    )
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME=MODULE:FACTORY",
        help="what makes the host object NAME, once per call",
    )
    parser.add_argument("--seed", type=int, default=0, help="of random draws and of arrays not given (default: 0)")
    parser.add_argument("--check", action="store_true", help="compare with the reference; status 1 if it differs")
    parser.add_argument("--stats", action="store_true", help="say what the compiler and the run did")
    parser.add_argument("--profile", action="store_true", help="on cpu: say how long each kernel takes in a call")
    parser.add_argument(
        "--memory-budget", type=int, metavar="BYTES", help="take no more on the device; rows wait with the host instead"
    )
    parser.add_argument(
        "--remat",
        action="append",
        default=[],
        metavar="OPTION=NUMBER",
        help="compute activations anew for a backward pass: budget=BYTES to keep, or block=STEPS; and steps=N",
    )
    parser.add_argument("--timeline", type=Path, metavar="FILE.svg", help="draw the live bytes over the schedule there")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write outputs and state there (.npy, .safetensors)")
    parser.add_argument("--dump-ir", type=Path, metavar="DIR", help="write the IR of every level")
    parser.add_argument("--emit-triton", type=Path, metavar="DIR", help="write the Triton source of every kernel")
    parser.add_argument("--traceback", action="store_true", help="show a Python traceback with an error")
    return parser


def _run(arguments: argparse.Namespace, sources: Sources) -> int:
    import tempo_ir
    from tempo_ir.tools import running

    call = _prepare(arguments, sources)
    budget, on_gpu = arguments.memory_budget, arguments.target == "triton"
    if arguments.precision and not on_gpu and arguments.emit_triton is None:
        raise UserError("--precision is of products on a GPU: give --target triton or --emit-triton DIR")
    if arguments.profile and arguments.target != "cpu":
        raise UserError(f"target '{arguments.target}' has no profile: leave --profile, or give --target cpu")
    if arguments.timeline is not None and not arguments.timeline.parent.is_dir():
        raise UserError(f"--timeline {arguments.timeline}: there is no folder {arguments.timeline.parent}")
    executable = tempo_ir.compile(
        call.program.source,
        arguments.target,
        remat=running.remat_options(arguments.remat, call.bounds),
        memory_budget=budget,
        sizes=None if budget is None else call.bounds,
        machine=arguments.machine,
        precision=arguments.precision if on_gpu else None,
    )
    if arguments.dump_ir is not None:
        running.write_ir(executable, arguments.dump_ir)
    if arguments.emit_triton is not None:
        running.write_triton(executable, arguments.emit_triton, arguments.precision)
    results = running.run(executable, call)
    print(running.results_text(results))
    if arguments.out is not None:
        running.write_results(results, arguments.out)
    if arguments.stats:
        print(running.statistics_text(executable, call.bounds))
    if arguments.profile:
        print(running.profile_text(executable, call))
    if arguments.timeline is not None:
        running.write_timeline(executable, call.bounds, arguments.timeline)
    if not arguments.check:
        return 0
    reference = tempo_ir.compile(call.program.source, "reference")
    comparison = running.compare(results, running.run(reference, call))
    print(comparison.text)
    return 0 if comparison.equal else 1


def _prepare(arguments: argparse.Namespace, sources: Sources) -> Call:
    """Load the program and find its arguments."""
    from tempo_ir.runtime.executable import seed_of
    from tempo_ir.tools import inputs, programs
    from tempo_ir.tools.running import Call

    assignments = inputs.parse_settings(arguments.set)
    python = inputs.python_input(arguments.program)
    if python is not None:
        program, assignments = programs.load_python(*python, assignments)
    else:
        text, name = inputs.read_text(arguments.program)
        sources.texts[name] = text
        program = programs.load_text(text, name)
    given = programs.read_arrays(arguments.input)
    known = programs.find_bounds(program, assignments, given)
    bounds = programs.choose_bounds(program, known)
    for bound in bounds.keys() - known.keys():
        print(Diagnostic("note", f"{bound} = {bounds[bound]}, since it is not set"), file=sys.stderr)
    seed = seed_of(arguments.seed)
    arrays = programs.complete_inputs(program, given, bounds, seed)
    hosts = programs.load_hosts(arguments.host)
    return Call(program, arrays, bounds, program.initial(seed), hosts, seed)


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        sys.exit(main())
