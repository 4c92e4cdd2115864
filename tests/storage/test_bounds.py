"""No access leaves its buffer: loop programs that do are refused, with op, rows and point."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.sdg.base import OpError
from tempo_ir.index import expr
from tempo_ir.lowering.bounds import OutOfBoundsError, check_bounds
from tempo_ir.lowering.schedule.driver import schedule_program
from tempo_ir.lowering.storage.driver import plan_storage
from tempo_ir.tools.parsing import parse_module
from tests.schedule.schedule_programs import NEEDS_ISL, SCHEDULABLE
from tests.schedule.schedule_support import parse


def program(body: str, dims: str = "t: T") -> loop.ProgramOp:
    found = Context()
    for dialect in (Builtin, sdg.Sdg, loop.Loop):
        found.load_dialect(dialect)
    module = parse_module(found, f"loop.program @p dims({dims}) {{\n{body}\n}}", "program.mlir")
    module.verify()
    (op,) = module.ops
    assert isinstance(op, loop.ProgramOp)
    return op


def copies(read: str, write: str, *, x: str = "(t: full) f32", y: str = "(t: full) f32", to: str = "T") -> str:
    """A program that copies rows of `%x` to rows of `%y`, for each t."""
    return f"""
  %x = loop.input "x" : !loop.buffer<{x}>
  %y = loop.output "y" : !loop.buffer<{y}>
  loop.for t = 0 to {to} {{
    loop.compute at (t = t) ins(%a = %x{read}) outs(%y{write}) {{ loop.yield %a : tensor<f32> }}
  }}"""


def prefix(read: str, size: str, *, x: str = "(t: full) f32") -> str:
    """A program that sums rows of `%x`."""
    rows = f"tensor<?xf32, #sdg.size<{size}>>"
    return f"""
  %x = loop.input "x" : !loop.buffer<{x}>
  %y = loop.output "y" : !loop.buffer<(t: full) f32>
  loop.for t = 0 to T {{
    loop.compute at (t = t) ins(%a = %x{read} : {rows}) outs(%y[t]) {{
      %0 = sdg.sum %a axes [0] : ({rows}) -> tensor<f32>
      loop.yield %0 : tensor<f32>
    }}
  }}"""


def row(taken: str, room: str) -> str:
    """A program that takes a part of a row of `%s`."""
    part = f"tensor<?xf32, #sdg.size<{taken}>>"
    return f"""
  %s = loop.alloc : !loop.buffer<(t: full) ?xf32, [{room}]>
  %y = loop.output "y" : !loop.buffer<(t: full) f32>
  loop.for t = 0 to T {{
    loop.compute at (t = t) ins(%a = %s[t] : {part}) outs(%y[t]) {{
      %0 = sdg.sum %a axes [0] : ({part}) -> tensor<f32>
      loop.yield %0 : tensor<f32>
    }}
  }}"""


WRONG = [
    (copies("[t - 1]", "[t]"), r"%x\[t - 1\] is accessed outside of the rows .*: t = 0 \(T = 1\)"),
    (copies("[t]", "[t + 1]"), r"%y\[t \+ 1\] is accessed outside of the rows .*: t = 0 \(T = 1\)"),
    (copies("[t]", "[t]", y="(t: full to T - 1) f32"), r"%y\[t\] is accessed outside .*: t = 0 \(T = 1\)"),
    (copies("[t]", "[t]", x="(t: full to min(T, 3)) f32"), r"%x\[t\] is accessed outside .*: t = 3 \(T = 4\)"),
    (copies("[t]", "[t]", to="T + 1"), r"%x\[t\] is accessed outside .*: t = 0 \(T = 0\)"),
    (copies("[T - 1 - 2 * t]", "[t]"), r"%x\[T - 2 \* t - 1\] is accessed outside .*: t = 1 \(T = 2\)"),
    (copies("[t - 2]", "[t]", x="(t: ring 4) f32"), r"%x\[t - 2\] is accessed outside .*: t = 0 \(T = 1\)"),
    (copies("[t + 1]", "[t]", x="(t: ring 4) f32"), r"%x\[t \+ 1\] is accessed outside .*: t = 0 \(T = 1\)"),
    (copies("[t floordiv 2, t]", "[t]", x="(i: full to T floordiv 2, t: full) f32"), r": t = 0 \(T = 1\)"),
    (prefix("[0:t + 2]", "t + 2"), r"%x\[0:t \+ 2\] is accessed outside .*: t = 0 \(T = 1\)"),
    (prefix("[t - 1:t + 1]", "2"), r"%x\[t - 1:t \+ 1\] is accessed outside .*: t = 0 \(T = 1\)"),
    (prefix("[0:t + 1]", "t"), r"#sdg.size<t>> does not fit into %x\[0:t \+ 1\] .*: t = 0 \(T = 1\)"),
    (row("t + 2", "t + 1"), r"#sdg.size<t \+ 2>> does not fit into %s\[t\] .*: t = 0 \(T = 1\)"),
    (row("T", "min(T, 4)"), r"does not fit into %s\[t\] .*: t = 0 \(T = 5\)"),
    (
        "%x = loop.alloc : !loop.buffer<(t: full) f32>\nloop.for t = 0 to T { loop.free %x[t - 1] }",
        r"%x\[t - 1\] is freed outside .*: t = 0 \(T = 1\)",
    ),
    (
        "%x = loop.alloc : !loop.buffer<(t: full) i1>\nloop.for t = 0 to T until %x[t + 1] { }",
        r"%x\[t \+ 1\] is accessed outside .*: t = 0 \(T = 1\)",
    ),
    (
        copies("[t]", "[t]").replace("t = 0 to", "t = T - 3 to"),
        r"the iterator of loop.for \(program.mlir:\d\) is negative: t = -\d \(T = \d\)",
    ),
]


@pytest.mark.parametrize(("body", "message"), WRONG)
def test_what_leaves_its_buffer_is_refused(body: str, message: str) -> None:
    with pytest.raises(OutOfBoundsError, match=message) as error:
        check_bounds(program(body))
    assert error.value.op.name.startswith("loop.")


RIGHT = [
    copies("[max(t - 1, 0)]", "[t]"),
    copies("[T - 1 - t]", "[t]"),
    copies("[t + 5]", "[t]", x="(t: ring 4 to T + 5) f32"),
    copies("[t]", "[t + 1]", y="(t: full to T + 1) f32"),
    copies("[t floordiv 2]", "[t]", x="(i: full to (T + 1) floordiv 2) f32"),
    copies("[t]", "[t]").replace("t = 0 to T", "t = T - 1 down to 0 step 3"),
    copies("[t - 1]", "[t]").replace("t = 0 to T", "t = 1 to T"),
    prefix("[0:t + 1]", "t + 1", x="(t: growing) f32"),
    prefix("[max(0, t - 2):t + 1]", "min(t + 1, 3)", x="(t: ring 3) f32"),
    prefix("[t + 2:T]", "max(0, T - t - 2)"),
    row("t", "t + 1"),
    row("min(t + 1, 4)", "4"),
]


@pytest.mark.parametrize("body", RIGHT)
def test_what_stays_inside_is_not_refused(body: str) -> None:
    check_bounds(program(body))


def test_an_access_of_which_a_guard_leaves_what_is_inside_is_right() -> None:
    body = copies("[t - 1]", "[t]").replace("    loop.compute", "    loop.if t > 0 { loop.compute")
    with pytest.raises(OutOfBoundsError):
        check_bounds(program(copies("[t - 1]", "[t]")))
    check_bounds(program(body.replace("f32> }", "f32> } }")))


@pytest.mark.parametrize("name", [*SCHEDULABLE, *NEEDS_ISL])
def test_each_buffer_of_a_program_has_no_row_to_spare_or_to_lack(name: str) -> None:
    """A plan passes, and one in which a buffer that keeps all its rows has one less does not."""
    planned = schedule_program(parse({**SCHEDULABLE, **NEEDS_ISL}[name]))
    plan_storage(planned)
    check_bounds(planned)
    for op in [op for op in planned.walk() if isinstance(op, loop.AllocOp | loop.OutputOp)]:
        kept = op.buffer_type
        for number, dim in enumerate(kept.dims):
            if dim.storage == "ring":
                continue
            extent = planned.space.bound(dim.name) if dim.extent is None else dim.extent
            less = loop.BufferDim(dim.name, dim.storage, extent - 1)
            dims = (*kept.dims[:number], less, *kept.dims[number + 1 :])
            op.buffer._type = loop.BufferType.of(dims, kept.row)  # pyright: ignore[reportPrivateUsage]
            with pytest.raises(OutOfBoundsError, match="outside of the rows of its buffer"):
                check_bounds(planned)
            op.buffer._type = kept  # pyright: ignore[reportPrivateUsage]


def test_a_loop_from_a_negative_constant_is_refused() -> None:
    with pytest.raises(OpError, match="'t' begins at -2, iterators are at least 0: count from 0 and write t - 2"):
        program(copies("[t + 2]", "[t + 2]").replace("t = 0 to", "t = -2 to"))


def test_storage_is_planned_of_nothing_that_leaves_its_buffers() -> None:
    wrong = program(copies("[t]", "[t]").replace("t = 0 to T", f"t = 0 to {expr('T + 1')}"))
    with pytest.raises(OutOfBoundsError):
        plan_storage(wrong)
