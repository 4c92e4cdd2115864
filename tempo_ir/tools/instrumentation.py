"""What tempo-opt shows of a pipeline as it runs: the IR between passes, times, statistics, reproducers of failures."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from tempo_ir.lowering.proofs import timed_proofs

EVERY_PASS = "*"
_RULE = "===" + "-" * 73 + "==="


def print_to_string(op: Operation, *, generic: bool = False, debuginfo: bool = False) -> str:
    """The text of an op, with a newline at its end."""
    stream = StringIO()
    Printer(stream, print_generic_format=generic, print_debuginfo=debuginfo).print_op(op)
    return stream.getvalue() + "\n"


@dataclass(slots=True)
class Dumps:
    """Prints the IR round passes to standard error; `before` and `after` are names of passes, or `EVERY_PASS`."""

    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    after_change: bool = False
    generic: bool = False
    debuginfo: bool = False
    _last: str = ""

    def before_pass(self, compiler_pass: ModulePass, module: ModuleOp) -> None:
        if _selects(self.before, compiler_pass):
            self._dump("Before", compiler_pass, self._text(module))
        if self.after_change:
            self._last = self._text(module)

    def after_pass(self, compiler_pass: ModulePass, module: ModuleOp) -> None:
        selected = _selects(self.after, compiler_pass)
        if not selected and not self.after_change:
            return
        text = self._text(module)
        if selected or text != self._last:
            self._dump("After", compiler_pass, text)

    def after_failure(self, compiler_pass: ModulePass, module: ModuleOp) -> None:
        if _selects(self.after, compiler_pass):
            self._dump("After", compiler_pass, self._text(module), " Failed")

    def _text(self, module: ModuleOp) -> str:
        return print_to_string(module, generic=self.generic, debuginfo=self.debuginfo)

    def _dump(self, when: str, compiler_pass: ModulePass, text: str, outcome: str = "") -> None:
        print(f"// -----// IR Dump {when} {compiler_pass}{outcome} //----- //\n{text}", file=sys.stderr)


def _selects(names: frozenset[str], compiler_pass: ModulePass) -> bool:
    return EVERY_PASS in names or compiler_pass.name in names


@dataclass(slots=True)
class Times:
    """Wall time by stage, in order of first use; the proof of a stage is a stage of its own."""

    seconds: dict[str, float] = field(default_factory=lambda: dict[str, float]())

    @contextmanager
    def measure(self, stage: str) -> Generator[None]:
        with timed_proofs(self.seconds, stage):
            yield

    def report(self) -> str:
        total = sum(self.seconds.values())
        rows = [*self.seconds.items(), ("Total", total)]
        shown = [f"  {seconds:9.4f} ({100 * seconds / max(total, 1e-12):5.1f}%)  {name}" for name, seconds in rows]
        return "\n".join(
            [
                *_title("... Execution time report ..."),
                f"  Total Execution Time: {total:.4f} seconds\n",
                "  ----Wall Time----  ----Name----",
                *shown,
            ]
        )


def statistics_report(statistics: Mapping[str, Mapping[str, int]]) -> str:
    """The counters of every pass that counted something."""
    lines = _title("... Pass statistics report ...")
    for name, counters in statistics.items():
        width = max(len(str(count)) for count in counters.values())
        lines += [name, *(f"  (S) {count:{width}d} {counter}" for counter, count in counters.items())]
    return "\n".join(lines)


def _title(text: str) -> list[str]:
    return [_RULE, f"{text:^{len(_RULE)}}".rstrip(), _RULE]


# ---- reproducers, in MLIR's form: the IR, then the pipeline as an external resource ----

_METADATA = re.compile(r"\{-#.*?#-\}", re.DOTALL)
_PIPELINE = re.compile(r'mlir_reproducer:\s*\{[^{}]*?pipeline:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)


def write_reproducer(path: Path, ir: str, pipeline: str, verify_each: bool) -> None:
    """Write a file that `tempo-opt --run-reproducer` runs: `pipeline` on the module whose text is `ir`."""
    escaped = pipeline.replace("\\", "\\\\").replace('"', '\\"')
    path.write_text(
        f"""// run with: tempo-opt --run-reproducer {path}
{ir}
{{-#
  external_resources: {{
    mlir_reproducer: {{
      pipeline: "builtin.module({escaped})",
      disable_threading: true,
      verify_each: {str(verify_each).lower()}
    }}
  }}
#-}}
"""
    )


def split_reproducer(text: str) -> tuple[str, str | None]:
    """IR text without its external resources, lines kept in place, and the pipeline of a reproducer if it is one."""
    pipeline: str | None = None

    def blank(match: re.Match[str]) -> str:
        nonlocal pipeline
        section = match[0]
        if "external_resources" not in section:
            return section
        if (found := _PIPELINE.search(section)) is not None:
            pipeline = re.sub(r"\\(.)", r"\1", found[1])
        return "\n" * section.count("\n")

    return _METADATA.sub(blank, text), pipeline
