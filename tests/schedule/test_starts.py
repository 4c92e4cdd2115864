"""Dims count on from where a call starts, also where loops are skewed and no iterator is a dim."""

from __future__ import annotations

import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir.dialects import loop
from tempo_ir.lowering.schedule.driver import schedule_program
from tempo_ir.reference.loop import run_loop
from tempo_ir.reference.sdg import run
from tests.schedule.schedule_programs import SKEWED
from tests.schedule.schedule_support import parse

COUNTED = SKEWED.replace("f32", "i64").replace(
    "  %h = sdg.add %a[i, t], %b[i, t] in (i, t)",
    """  %n = sdg.index 100 * i + t in (i, t) : tensor<i64>
  %m = sdg.mul %n[i, t], %a[i, t] in (i, t) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %h = sdg.sub %m[i, t], %b[i, t] in (i, t)""",
)
CASES = (
    SKEWED.replace("f32", "i64")
    .replace("i <= 0 : %x[i, t]", "i <= 0 : %n[i, t]")
    .replace("  %a = ", "  %n = sdg.index 3 * i + 100 * t + 1 in (i, t) : tensor<i64>\n  %a = ")
)


@pytest.mark.parametrize("text", [COUNTED, CASES])
@pytest.mark.parametrize("start", [{}, {"i": 40}, {"t": 7}, {"i": 2, "t": 1000}])
def test_values_of_dims_in_skewed_loops(text: str, start: dict[str, int]) -> None:
    program = parse(text)
    scheduled = schedule_program(program)
    assert "wave" in {op.iterator for op in scheduled.walk() if isinstance(op, loop.ForOp)}
    executable = tp.compile(program)
    for bounds in ({"I": 0, "T": 2}, {"I": 3, "T": 4}, {"I": 5, "T": 2}):
        x = np.arange(bounds["I"] * bounds["T"], dtype=np.int64).reshape(bounds["I"], bounds["T"]) % 3 - 1
        expected = run(program, {"x": x}, bounds, start=start)["h"]
        np.testing.assert_array_equal(run_loop(scheduled, {"x": x}, bounds, start=start)["h"], expected)
        np.testing.assert_array_equal(executable(x=x, start=start)["h"], expected)
