"""The pass `sdg-schedule`: from a dependence graph to loops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects.sdg import ProgramOp
from tempo_ir.passes.utilities import check_counts


@dataclass(frozen=True)
class SdgSchedulePass(ModulePass):
    """
    Order the points of every op of an sdg program, as loops over leaves.

    ```mlir
    sdg.program @sum dims(t: T) {                      loop.program @sum dims(t: T) {
      %x = sdg.input "x" in (t) : ...                    %x = loop.input "x" : ...
      %y = sdg.exp %x[t] in (t) : ...           ->       %y = loop.output "y" : ...
      sdg.output "y" %y[t] in (t) : ...                  loop.for t = 0 to T {
    }                                                      loop.compute at (t = t) ins(%a = %x[t]) outs(%y[t]) {...}
                                                         }
                                                       }
    ```

    Every value gets a buffer with a row per point. Among the orders that the dependences allow the cheapest by the cost
    model of `target` is taken, of at most `max_candidates`. The result is proved legal before it replaces the program,
    unless `check` is false. A program that no order computes is an error that shows the shortest cycle by op and line.
    With `apart`, loops whose iterations are independent are not fused with those that carry values: more is kept, and a
    kernel can take many iterations at once.
    """

    name = "sdg-schedule"

    target: str = "cpu"
    max_candidates: int = 4
    apart: bool = False
    check: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_counts(self, max_candidates=1)
        # islpy is imported only by those who schedule
        from tempo_ir.lowering.schedule.cost import MACHINES
        from tempo_ir.lowering.schedule.driver import Options, schedule_program

        if self.target not in MACHINES:
            raise PassFailedException(
                f"unknown target '{self.target}' of {self.name}; use one of {', '.join(MACHINES)}"
            )
        options = Options(self.target, self.max_candidates, self.apart, self.check)
        for program in [inner for inner in op.ops if isinstance(inner, ProgramOp)]:
            scheduled = schedule_program(program, options)
            Rewriter.insert_op(scheduled, InsertPoint.before(program))
            program.detach()  # not erased: scheduling leaves it as it is, and whoever holds it may still read it
