"""tempo-opt: parse IR (or a Python program), run passes over it, print the result.

The driver is xDSL's `xDSLOptMain` with our registries, MLIR's spelling of options and clean messages. Nothing here
imports numpy, islpy, llvmlite or any pass before it is asked for.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, cast

from xdsl.dialects import get_all_dialects as get_upstream_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.transforms import get_all_passes as get_upstream_passes
from xdsl.utils.arg_spec import parse_spec
from xdsl.utils.exceptions import ArgSpecParseError, VerifyException
from xdsl.xdsl_opt_main import xDSLOptMain

from tempo_ir import dialects, lowering, passes
from tempo_ir.passes.remarks import Collector, collecting
from tempo_ir.tools import expected, inputs, instrumentation, pipeline
from tempo_ir.tools.diagnostics import (
    Diagnostic,
    Sources,
    UserError,
    diagnostic_of_error,
    is_user_error,
    place_of_location,
)
from tempo_ir.tools.opt_arguments import add_arguments, spelled_out
from tempo_ir.tools.parsing import failing_operation, parse_module
from tempo_ir.tools.plugins import load_plugins

if TYPE_CHECKING:
    from xdsl.universe import Universe
    from xdsl.utils.frontend import Frontend

    from tempo_ir.tools.checking import EachPassCheck

UPSTREAM_DIALECTS = ("arith", "builtin", "cf", "func", "math", "scf", "test")
UPSTREAM_PASSES = ("canonicalize", "cse", "dce")


class TempoOptMain(xDSLOptMain):
    """The driver: `TempoOptMain(arguments, sources).run_all()` is the exit status."""

    version_format: ClassVar[str] = "tempo-opt on xDSL {xdsl_version}"

    def __init__(self, args: Sequence[str], sources: Sources) -> None:
        args = spelled_out(args)
        self.sources = sources
        self.failed = False
        self.hosts: Mapping[str, Callable[[], object]] = {}
        self.captured: list[Diagnostic] | None = None
        self.plugins = self._load_plugins(args)
        super().__init__("Run passes over recurrent-tensor IR, or print code from it.", args)
        self.sources.texts[pipeline.TARGET_NAME] = self.args.target
        pipeline.check_target(self.args.target, self.available_targets)
        self.times = instrumentation.Times()
        self.statistics: dict[str, dict[str, int]] = {}
        self.dumps = instrumentation.Dumps(
            before=frozenset(self.args.print_ir_before),
            after=frozenset(self.args.print_ir_after),
            after_change=self.args.print_ir_after_change,
            generic=self.args.print_op_generic,
            debuginfo=self.args.print_debuginfo,
        )

    # ---- registries ----

    def _load_plugins(self, args: Sequence[str]) -> dict[str, Universe]:
        early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        early.add_argument("--load-pass-plugin", action="append", default=[])
        files = early.parse_known_args(args)[0].load_pass_plugin
        return load_plugins(files, self.report)

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        add_arguments(arg_parser, self.available_targets, self.available_frontends, self.version_format)

    def register_all_dialects(self) -> None:
        upstream = get_upstream_dialects()
        ours = {**{name: upstream[name] for name in UPSTREAM_DIALECTS}, **dialects.get_all_dialects()}
        for name, factory in self._with_plugins(ours, "dialect", lambda universe: universe.all_dialects).items():
            self.ctx.register_dialect(name, factory)

    def register_all_passes(self) -> None:
        upstream = get_upstream_passes()
        ours = {name: upstream[name] for name in UPSTREAM_PASSES} | passes.get_all_passes() | lowering.get_all_passes()
        everything = self._with_plugins(ours, "pass", lambda universe: universe.all_passes)
        for name, factory in sorted(everything.items()):
            self.register_pass(name, factory)

    def register_all_targets(self) -> None:
        from xdsl.targets import get_all_targets

        ours: dict[str, Any] = {"mlir": get_all_targets()["mlir"]}
        ours |= lowering.get_all_targets()
        self.available_targets = self._with_plugins(ours, "target", lambda universe: universe.all_targets)

    def register_all_frontends(self) -> None:
        from xdsl.frontend import get_all_frontends

        ours: dict[str, Any] = {"mlir": get_all_frontends()["mlir"]}
        self.available_frontends = self._with_plugins(ours, "front end", lambda universe: universe.all_frontends)

    def _with_plugins(
        self, ours: Mapping[str, Any], kind: str, select: Callable[[Universe], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Our table and those of the plug-ins; a name that is taken already is a warning."""
        table = dict(ours)
        for plugin, universe in self.plugins.items():
            for name, factory in select(universe).items():
                if name not in table:
                    table[name] = factory
                    continue
                self.report(Diagnostic("warning", f"plug-in '{plugin}': {kind} '{name}' exists already; not loaded"))
        return table

    def setup_pipeline(self) -> None:
        self._set_pipeline(self.args.passes)
        for name in (*self.args.print_ir_before, *self.args.print_ir_after):
            if name != instrumentation.EVERY_PASS and name not in self.available_passes:
                raise UserError(f"cannot print the IR around '{name}': no pass has this name")

    def _set_pipeline(self, text: str) -> None:
        self.sources.texts[pipeline.PIPELINE_NAME] = pipeline.plain_pipeline(text)
        self.pipeline = PassPipeline(pipeline.parse_passes(text, self.available_passes))

    # ---- messages ----

    def report(self, diagnostic: Diagnostic) -> None:
        """Show a message, or keep it for `--verify-diagnostics`; an error makes the exit status 1."""
        if self.captured is not None:
            self.captured.append(diagnostic)
            return
        if diagnostic.severity == "error":
            self.failed = True
        sys.stdout.flush()  # the two streams may end in one: keep their order
        print(self.sources.render(diagnostic), file=sys.stderr)

    @contextmanager
    def _reporting(self) -> Generator[None]:
        """Report a user's mistake; let every other exception through."""
        try:
            yield
        except Exception as error:
            if not is_user_error(error) or isinstance(error, BrokenPipeError):
                raise
            if self.args.traceback:
                traceback.print_exc()
            self.report(diagnostic_of_error(error))

    # ---- the run ----

    def run_all(self) -> int:
        """Process the input; the exit status is 0 if there was no error, or if every message was expected."""
        if self.args.show_dialects:
            print("Available Dialects: " + ", ".join(sorted(self.ctx.registered_dialect_names)))
            return 0
        if self.args.list_passes:
            print(self._pass_list())
            return 0
        output = sys.stdout if self.args.output_file is None else _LateFile(Path(self.args.output_file))
        with self._reporting():
            python = inputs.python_input(self.args.input_file)
            if python is not None:
                self._process(lambda: self._python_module(*python), output)
            else:
                self._run_text(output)
            if isinstance(output, _LateFile) and not self.failed:
                output.write_out()
        if self.args.pass_statistics:
            print(instrumentation.statistics_report(self.statistics), file=sys.stderr)
        if self.args.timing:
            print(self.times.report(), file=sys.stderr)
        return int(self.failed)

    def _run_text(self, output: IO[str] | _LateFile) -> None:
        if self.args.set:
            raise UserError("--set gives settings to a program in a Python file; the input is IR text")
        text, name = inputs.read_text(self.args.input_file)
        self.sources.texts[name] = text
        text, reproduced = instrumentation.split_reproducer(text)
        if self.args.run_reproducer:
            if reproduced is None:
                raise UserError(f"{name}: no mlir_reproducer section with a pipeline at its end")
            self._set_pipeline(reproduced)
        chunks = inputs.split_chunks(text) if self.args.split_input_file else [text]
        for index, chunk in enumerate(chunks):
            if index:
                output.write("// -----\n")
            if self.args.verify_diagnostics:
                self._verify_messages(chunk, name, output)
            else:
                self._process(lambda chunk=chunk: self._parse(chunk, name), output)

    def _verify_messages(self, chunk: str, name: str, output: IO[str] | _LateFile) -> None:
        self.captured = []
        self._process(lambda: self._parse(chunk, name), output)
        messages, self.captured = self.captured, None
        for mismatch in expected.mismatches(chunk, name, messages):
            self.report(mismatch)

    def _process(self, load: Callable[[], ModuleOp], output: IO[str] | _LateFile) -> None:
        """Load one module, run the pipeline over it, print it; report what is wrong."""
        with self._reporting():
            with self.times.measure("Parser"):
                module = load()
            self._run_pipeline(module)
            with self.times.measure("Output"):
                text = self.output_resulting_program(module)
            output.write(text)

    def _parse(self, text: str, name: str) -> ModuleOp:
        frontend = parse_spec(self.args.frontend or Path(name).suffix.removeprefix(".") or "mlir")
        if frontend.name == "mlir" or frontend.name not in self.available_frontends:
            return parse_module(self.ctx, text, name, implicit_module=not self.args.no_implicit_module)
        factory = cast("Callable[[], type[Frontend]]", self.available_frontends[frontend.name])
        from io import BytesIO

        return factory().from_spec(frontend).parse(self.ctx, BytesIO(text.encode()), name)

    def _python_module(self, path: Path, name: str | None) -> ModuleOp:
        from tempo_ir.tools.programs import record_program

        program = record_program(path, name, inputs.parse_settings(self.args.set))
        self.hosts = {host: info.make for host, info in program.hosts.items()}
        return program.module

    def _run_pipeline(self, module: ModuleOp) -> None:
        self._verify(module)
        check = self._each_pass_check(module)
        original = self._reproducer_text(module)
        for number, compiler_pass in enumerate(self.pipeline.passes):
            self.dumps.before_pass(compiler_pass, module)
            try:
                self._run_pass(compiler_pass, module)
                if self.args.verify_each:
                    self._verify(module, compiler_pass)
                if check is not None:
                    check.check(module, compiler_pass)
            except Exception as error:  # a mistake or a bug: both are shown elsewhere, after a dump and a reproducer
                self.dumps.after_failure(compiler_pass, module)
                self._write_reproducer(original, self.pipeline.passes[: number + 1], error)
                raise
            self.dumps.after_pass(compiler_pass, module)
        if self.pipeline.passes and not self.args.verify_each:
            self._verify(module)

    def _each_pass_check(self, module: ModuleOp) -> EachPassCheck | None:
        if self.args.check_each is None:
            return None
        from tempo_ir.tools.checking import EachPassCheck

        check = EachPassCheck(inputs.parse_settings(self.args.check_set), self.hosts)
        check.check(module)
        return check

    def _run_pass(self, compiler_pass: ModulePass, module: ModuleOp) -> None:
        with collecting() as collector:
            try:
                with self.times.measure(str(compiler_pass)):
                    compiler_pass.apply(self.ctx, module)
            finally:
                self._take(collector, compiler_pass)

    def _take(self, collector: Collector, compiler_pass: ModulePass) -> None:
        for name, counters in collector.statistics.items():
            total = self.statistics.setdefault(name, {})
            for counter, count in counters.items():
                total[counter] = total.get(counter, 0) + count
        if not self.args.remarks:
            return
        for remark in collector.remarks:
            place = place_of_location(remark.location)
            about = "" if place is not None else f"{remark.operation}: "
            self.report(Diagnostic("remark", f"{about}{remark.message} [{compiler_pass.name}]", place))

    def _verify(self, module: ModuleOp, after: ModulePass | None = None) -> None:
        if self.args.skip_verify:
            return
        with self.times.measure("Verifier"):
            try:
                module.verify()
            except VerifyException as error:
                if getattr(error, "op", None) is None:
                    error.op = failing_operation(module, error)  # pyright: ignore[reportAttributeAccessIssue]
                if after is not None:
                    error.add_note(f"the IR does not verify after pass '{after}'")
                raise

    # ---- reproducers, lists ----

    def _reproducer_text(self, module: ModuleOp) -> str:
        wanted = self.args.mlir_pass_pipeline_crash_reproducer is not None
        return instrumentation.print_to_string(module, debuginfo=True) if wanted else ""

    def _write_reproducer(self, original: str, until: Sequence[ModulePass], error: Exception) -> None:
        file = self.args.mlir_pass_pipeline_crash_reproducer
        if file is None:
            return
        text = ",".join(str(compiler_pass) for compiler_pass in until)
        instrumentation.write_reproducer(Path(file), original, text, self.args.verify_each)
        error.add_note(f"a reproducer is in {file}: tempo-opt --run-reproducer {file}")

    def _pass_list(self) -> str:
        lines: list[str] = []
        for name, factory in self.available_passes.items():
            pass_class = factory()
            summary = inspect.cleandoc(vars(pass_class).get("__doc__") or "").strip().partition("\n\n")[0]
            lines.append(f"{name:24} {' '.join(summary.split())}".rstrip())
            lines += [f"    {option}" for option in pipeline.describe_options(pass_class)]
        lines += [f"{name:24} {','.join(passes)}" for name, passes in pipeline.NAMED_PIPELINES.items()]
        return "\n".join(lines)


class _LateFile:
    """An output file that is written once, at the end: a failed run leaves the old one alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parts: list[str] = []

    def write(self, text: str) -> None:
        self._parts.append(text)

    def write_out(self) -> None:
        self.path.write_text("".join(self._parts))


def main(args: Sequence[str] | None = None) -> int:
    """The exit status of `tempo-opt ARGS`: 1 after an error, whose message stands on standard error."""
    arguments = sys.argv[1:] if args is None else args
    sources = Sources()
    try:
        return TempoOptMain(arguments, sources).run_all()
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except (ArgSpecParseError, UserError) as error:
        print(sources.render(diagnostic_of_error(error)), file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
