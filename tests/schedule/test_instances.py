"""What the proof takes the iterations of a loop to be is what the interpreter runs."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin

from tempo_ir.dialects import loop, sdg
from tempo_ir.index import evaluate
from tempo_ir.lowering.instances import instances
from tempo_ir.reference.loop import run_loop
from tempo_ir.tools.parsing import parse_module

PROGRAM = """
loop.program @p dims(t: T) {{
  %y = loop.output "y" : !loop.buffer<(t: full) i64>
  loop.for t = {bounds} step {step} {{
    loop.compute at (t = t) outs(%y[t]) {{
      %c = sdg.constant 1 : tensor<i64>
      loop.yield %c : tensor<i64>
    }}
  }}
}}
"""


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("bounds", ["0 to T", "1 to T", "T - 1 down to 0", "T - 1 down to 1", "T - 2 down to T mod 2"])
def test_iterations_of_steps_either_way(bounds: str, step: int) -> None:
    context = Context()
    for dialect in (Builtin, sdg.Sdg, loop.Loop):
        context.load_dialect(dialect)
    (program,) = parse_module(context, PROGRAM.format(bounds=bounds, step=step), "program.mlir").ops
    assert isinstance(program, loop.ProgramOp)
    (leaf,) = instances(program)
    for size in range(10):
        written = run_loop(program, {}, {"T": size})["y"]
        held = [evaluate(leaf.frame.holds, {"t": t, "T": size}) for t in range(size)]
        np.testing.assert_array_equal(written, np.array(held, np.int64).reshape(size), err_msg=f"T = {size}")
