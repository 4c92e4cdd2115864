"""The cost model chooses among orders, and keeps the plain one where nothing is gained."""

from __future__ import annotations

import pytest
from schedule_programs import SCHEDULABLE
from schedule_support import parse
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects import loop
from tempo_ir.lowering.schedule.cost import MACHINES, Estimator
from tempo_ir.lowering.schedule.distances import Distances
from tempo_ir.lowering.schedule.driver import Options, ordered, schedule_program
from tempo_ir.lowering.schedule.fusion import Choices
from tempo_ir.lowering.schedule.named_dims import schedule
from tempo_ir.lowering.schedule.order import order_text
from tempo_ir.lowering.schedule.sdg_schedule import SdgSchedulePass
from tempo_ir.lowering.schedule.statements import Statements


def recurrence(width: int) -> str:
    row = f"tensor<{width}xf32>"
    return f"""
sdg.program @recurrence dims(t: T, b: B) {{
  %first = sdg.parameter "first" : {row}
  %s = sdg.merge {{t = 0 : %first, t > 0 : %h[t - 1, b]}} in (t, b) : ({row}, {row}) -> {row}
  %h = sdg.tanh %s[t, b] in (t, b) : ({row}) -> {row}
  sdg.output "h" %h[t, b] in (t, b) : {row}
}}
"""


def outer_loops(program: loop.ProgramOp) -> list[str]:
    return [op.iterator for op in program.body.block.ops if isinstance(op, loop.ForOp)]


def test_small_rows_keep_the_declared_order_of_dims() -> None:
    assert outer_loops(schedule_program(parse(recurrence(4)))) == ["t"]


def test_rows_that_all_together_leave_the_cache_are_done_one_at_a_time() -> None:
    program = parse(recurrence(100_000))
    assert outer_loops(schedule_program(program)) == ["b"]
    assert outer_loops(schedule_program(program, Options(max_candidates=1))) == ["t"]


def test_fused_loops_move_fewer_bytes() -> None:
    program = parse(
        """
sdg.program @chain dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<1000xf32>
  %a = sdg.exp %x[t] in (t) : (tensor<1000xf32>) -> tensor<1000xf32>
  %b = sdg.exp %a[t] in (t) : (tensor<1000xf32>) -> tensor<1000xf32>
  sdg.output "b" %b[t] in (t) : tensor<1000xf32>
}
"""
    )
    distances = Distances(program.space)
    statements, plain = ordered(Statements.of(program), distances)
    apart = schedule(statements.graph, distances, Choices(fuse=False))
    assert order_text(plain, ["a", "b"]) == "for t up\n  a\n  b"
    assert order_text(apart, ["a", "b"]) == "for t up\n  a\nfor t up\n  b"
    estimator = Estimator(statements.graph, distances, MACHINES["cpu"])
    fused, separate = estimator.estimate(plain), estimator.estimate(apart)
    assert fused.seconds < separate.seconds
    assert fused.peak_bytes == 4000
    assert separate.peak_bytes == 4000 * 128


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(PassFailedException, match="unknown target 'abacus' of sdg-schedule; use one of cpu, "):
        SdgSchedulePass(target="abacus").apply(Context(), ModuleOp([]))


def test_independent_loops_may_be_kept_apart() -> None:
    program = parse(SCHEDULABLE["rnn"])
    assert outer_loops(schedule_program(program)) == ["t"]
    apart = schedule_program(program, Options(apart=True))
    assert outer_loops(apart) == ["t", "t"]
    last = [op for op in apart.body.block.ops if isinstance(op, loop.ForOp)][-1]
    assert [leaf.writes[0].buffer.name_hint for leaf in last.body.block.ops] == ["y"]
