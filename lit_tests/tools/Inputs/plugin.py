"""A plug-in for the driver's tests: passes that report, fail, break the IR and crash, and a target."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.dialects.func import FuncOp
from xdsl.dialects.test import TestOp
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.target import Target

from tempo_ir.dialects.loop import ForOp
from tempo_ir.dialects.sdg import ConstantOp, EntryAttr, OutputOp
from tempo_ir.dialects.sdg.attributes import NumberAttr
from tempo_ir.index import Slice, maximum
from tempo_ir.passes.remarks import count, remark


@dataclass(frozen=True)
class ReportPass(ModulePass):
    """Remark on every `test.op`, and count them.

    The details stand in a second paragraph.
    """

    name = "test-report"

    label: str = "seen"
    limit: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, TestOp):
                remark(inner, self.label)
                count(self, "operations")


@dataclass(frozen=True)
class FailPass(ModulePass):
    """Refuse the first `test.op`."""

    name = "test-fail"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, TestOp):
                error = PassFailedException("this op cannot be lowered")
                error.op = inner
                error.add_note("write something else")
                raise error


@dataclass(frozen=True)
class BreakPass(ModulePass):
    """Leave a function behind whose type is not that of its body."""

    name = "test-break"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, FuncOp):
                inner.properties["sym_name"] = IntegerAttr(1, i32)


@dataclass(frozen=True)
class CrashPass(ModulePass):
    """Raise what no pass should."""

    name = "test-crash"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise KeyError("a bug")


@dataclass(frozen=True)
class MiscompilePass(ModulePass):
    """Turn every `sdg.constant` into a one: what no pass may do."""

    name = "test-miscompile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, ConstantOp):
                inner.value = NumberAttr(1.0)


@dataclass(frozen=True)
class StopEarlyPass(ModulePass):
    """End every upward loop one step early: what no lowering may do, seen where there are two steps."""

    name = "test-stop-early"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, ForOp) and not inner.down:
                loop_range = inner.range
                inner.range_attr = EntryAttr(Slice(loop_range.start, maximum(loop_range.stop - 1, 1), loop_range.step))


@dataclass(frozen=True)
class ForgetPass(ModulePass):
    """Erase every output."""

    name = "test-forget"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, OutputOp):
                inner.detach()
                inner.erase()


@dataclass(frozen=True)
class CountTarget(Target):
    """Print the number of ops."""

    name = "count"

    def emit(self, ctx: Context, module: ModuleOp, output) -> None:
        output.write(f"{sum(1 for _ in module.walk())} ops\n")


PASSES = (ReportPass, FailPass, BreakPass, CrashPass, MiscompilePass, StopEarlyPass, ForgetPass)
MARKER = StringAttr("a module-level name that is none of the plug-in's business")

UNIVERSE = Universe(
    all_dialects={"extra": lambda: Dialect("extra", [], [])},
    all_passes={found.name: (lambda found=found: found) for found in PASSES},
    all_targets={"count": lambda: CountTarget},
)
