"""Planned programs in the interpreter of loops, which knows what lies in each place, against the reference."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException, VerifyException

from tempo_ir.dialects import loop
from tempo_ir.index import evaluate
from tempo_ir.lowering.schedule.driver import schedule_program
from tempo_ir.lowering.schedule.statements import ScheduleError
from tempo_ir.lowering.storage import liveness
from tempo_ir.lowering.storage.driver import plan_storage
from tempo_ir.lowering.storage.loop_plan_storage import LoopPlanStoragePass
from tempo_ir.passes.remarks import collecting
from tempo_ir.reference.loop import run_loop
from tempo_ir.reference.sdg import run
from tests.schedule.schedule_programs import NEEDS_ISL, SCHEDULABLE
from tests.schedule.schedule_support import arguments, parse
from tests.storage.storage_programs import random_program
from tests.storage.storage_support import planned

PROGRAMS = {**SCHEDULABLE, **NEEDS_ISL}
SIZES = (0, 1, 2, 3, 5, 8, 17)


def agrees(text: str, program: loop.ProgramOp, sizes: tuple[int, ...] = SIZES) -> None:
    """The program gives what its source means, at all sizes that it admits."""
    source = parse(text)
    params = source.space.params
    outer = [(0, 1, 3)] * (len(params) - 1)
    for values in itertools.product(*outer, sizes):
        bounds = dict(zip(params, values, strict=True))
        if not evaluate(source.space.where, bounds):
            continue
        given = arguments(source, bounds)
        expected, computed = run(source, given, bounds), run_loop(program, given, bounds)
        for key, value in expected.items():
            np.testing.assert_array_equal(computed[key], value, err_msg=f"{key} at {bounds}")


@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, form: bool) -> None:
    agrees(PROGRAMS[name], planned(PROGRAMS[name], form=form), SIZES if name != "skewed" else (1, 5))


@cache
def storage(text: str) -> dict[str, str]:
    """How each named buffer is stored."""
    allocs = [op for op in planned(text, form=False).walk() if isinstance(op, loop.AllocOp)]
    return {op.buffer.name_hint or "": ", ".join(map(str, op.buffer_type.dims)) for op in allocs}


def test_classes() -> None:
    assert storage(PROGRAMS["window"])["k"] == "t: ring 3"
    assert storage(PROGRAMS["attention"])["k"] == "t: growing"
    assert storage(PROGRAMS["attention"])["q"] == ""
    assert "i" not in "".join(storage(PROGRAMS["reinforce"]).values())  # nothing outlives an iteration of training
    kept = storage(PROGRAMS["checkpoints"])  # a row of each block, and the rows of one block
    assert (kept["h"], kept["h2"]) == ("b: full", "j: ring 4 to 5")


COPY = """
sdg.program @copy dims(t: T) {{
  %x = sdg.input "x" in (t) : tensor<3xf32>
  %a = sdg.exp %x[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  %b = sdg.sin %x[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  %m = sdg.merge {{{cases}}} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %n = sdg.merge {{t = 0 : %b[t], t > 0 : %a[t - 1]}} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %y = sdg.add %m[t], %n[t] in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "y" %y[t] in (t) : tensor<3xf32>
}}
"""


@pytest.mark.parametrize(
    "cases",
    [
        "t = 0 : %b[t], t > 0 : %a[t - 1]",
        "t < T - 1 : %a[t + 1], t = T - 1 : %b[t]",
        "t = T - 1 : %b[0], t < T - 1 : %a[t]",
        "t = 3 : %a[0], t > -1 : %b[t]",
        "t mod 2 = 0 : %a[t], t >= 0 : %b[t]",
        "t >= 2 : %a[T - 1 - t], t < 2 : %b[t]",
    ],
)
def test_copies(cases: str) -> None:
    text = COPY.format(cases=cases)
    agrees(text, planned(text, form=False))


BACKWARDS = """
sdg.program @backwards dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3xf32>
  %one = sdg.constant 1.0 : tensor<3xf32>
  %p = sdg.merge {t = T - 1 : %one, true : %q[t]} in (t: 1 to T) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %q = sdg.mul %p[t + 1], %x[t + 1] in (t: 1 to T - 1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %y = sdg.neg %p[t + 1] in (t: 0 to T - 1) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.output "y" %y[t] in (t: 0 to T - 1) : tensor<3xf32>
}
"""
"""The last row of `p` is a constant, written before the loop if there is one: `p` has no row at T = 0."""


@pytest.mark.parametrize("guard", [True, False])
def test_the_first_row_of_a_ring_is_none_before_its_rows(guard: bool) -> None:
    program = schedule_program(parse(BACKWARDS))
    (around,) = (op for op in program.body.block.ops if isinstance(op, loop.IfOp))
    if not guard:
        (inner,) = around.then.block.ops
        inner.detach()
        around.parent_block().insert_op_before(inner, around)  # pyright: ignore
        around.detach()
        around.erase()
    plan_storage(program)
    (alloc,) = (op for op in program.walk() if isinstance(op, loop.AllocOp))
    assert str(alloc.buffer.type) == "!loop.buffer<(t: ring 2) 3xf32>"
    # under the guard the row is there, without it the row is written under one that says so
    assert isinstance(alloc.next_op, loop.ComputeOp if guard else loop.IfOp)
    agrees(BACKWARDS, program)


def test_every_row_is_kept_where_the_question_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    text = PROGRAMS["window"]
    monkeypatch.setattr(liveness, "MOST_OPERATIONS", 10)
    program = planned(text, form=False)
    dims = [dim for op in program.walk() if isinstance(op, loop.AllocOp) for dim in op.buffer_type.dims]
    assert dims
    assert not any(dim.storage == "ring" for dim in dims)
    agrees(text, program)


def test_a_copy_that_stays_has_a_remark() -> None:
    text = COPY.format(cases="t = 0 : %b[t], t > 0 : %a[t - 1]").replace("%b[t], t > 0 : %a[t - 1]}} in", "")
    module = ModuleOp([schedule_program(parse(text))])
    with collecting() as collector:
        LoopPlanStoragePass().apply(Context(), module)
    assert any("the copy stays" in remark.message for remark in collector.remarks)


def test_every_row_is_kept_where_rows_are_written_twice() -> None:
    text = """
    loop.program @twice dims(t: T) {
      %x = loop.input "x" : !loop.buffer<(t: full) f32>
      %a = loop.alloc : !loop.buffer<(t: full) f32>
      %y = loop.output "y" : !loop.buffer<(t: full) f32>
      loop.for t = 0 to T {
        loop.compute at (t = t) ins(%v = %x[t]) outs(%a[t floordiv 2]) { loop.yield %v : tensor<f32> }
        loop.compute at (t = t) ins(%v = %a[t floordiv 2]) outs(%y[t]) { loop.yield %v : tensor<f32> }
      }
    }
    """
    program = parse_loop(text)
    with collecting() as collector:
        plan_storage(program)
    assert "(t: full) f32" in str(next(op for op in program.walk() if isinstance(op, loop.AllocOp)))
    assert any("every row is kept" in remark.message for remark in collector.remarks)
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(run_loop(program, {"x": x}, {"T": 5})["y"], x)


def parse_loop(text: str) -> loop.ProgramOp:
    from xdsl.dialects.builtin import Builtin
    from xdsl.parser import Parser

    from tempo_ir.dialects import sdg

    context = Context()
    for dialect in (Builtin, sdg.Sdg, loop.Loop):
        context.load_dialect(dialect)
    (program,) = Parser(context, text).parse_module().ops
    assert isinstance(program, loop.ProgramOp)
    program.detach()
    return program


def test_planning_twice_changes_nothing() -> None:
    program = planned(PROGRAMS["window"], form=False)
    once = str(program)
    plan_storage(program)
    assert str(program) == once


def test_launched_kernels_are_refused() -> None:
    program = parse_loop("loop.program @p dims(t: T) { %x = loop.alloc : !loop.buffer<f32> loop.launch @k(%x) }")
    with pytest.raises(PassFailedException, match="kernels are launched already"):
        LoopPlanStoragePass().apply(Context(), ModuleOp([program]))


def check_random(seeds: range, *, form: bool) -> int:
    """Plan and compare the programs of the seeds that have an order; how many there were."""
    count = 0
    for seed in seeds:
        text = random_program(seed)
        try:
            program = planned(text, form=form)
        except (VerifyException, ScheduleError):
            continue
        agrees(text, program, (1, 2, 5))
        count += 1
    return count


@pytest.mark.parametrize("form", [False, True])
def test_random_programs(form: bool) -> None:
    assert check_random(range(40), form=form) > 5


@pytest.mark.slow
@pytest.mark.parametrize("form", [False, True])
def test_many_random_programs(form: bool) -> None:
    assert check_random(range(1000, 2000), form=form) > 100
