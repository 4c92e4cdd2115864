"""The pass `loop-plan-storage`: from buffers that keep every row to buffers that keep what is still read."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects.loop import ProgramOp
from tempo_ir.lowering.storage.uses import is_lowered
from tempo_ir.passes.remarks import count


@dataclass(frozen=True)
class LoopPlanStoragePass(ModulePass):
    """
    Decide for every buffer how long its rows are kept.

    ```mlir
    %s = loop.alloc : !loop.buffer<(t: full) 16xf32>
    %h = loop.alloc : !loop.buffer<(t: full) 16xf32>        %h = loop.alloc : !loop.buffer<16xf32>
    loop.for t = 0 to T {                                   loop.for t = 0 to T {
      loop.if t = 0 {                                         loop.if t = 0 {
        loop.compute ... outs(%s[t]) {...}            ->        loop.compute ... outs(%h) {...}
      } else {                                                }
        loop.compute ins(%h[t - 1]) outs(%s[t]) {copy}        loop.compute ins(%h, %x[t]) outs(%h) {...}
      }
      loop.compute ins(%s[t], %x[t]) outs(%h[t]) {...}
    }                                                       }
    ```

    A value and its copies become one buffer where that needs no more room. Per dim a buffer then has one slot, a ring
    of as many slots as rows live at once, rows that grow where readers take prefixes, or all rows. It stands in the
    innermost loop that it lives in, and rows are freed after their last reader. Buffers that ask for it have their rows
    with the host between a loop that writes them and one that reads them (`storage.swaps`). The result is proved right,
    unless `check` is false; what is not understood keeps every row, with a remark.
    """

    name = "loop-plan-storage"
    check: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # islpy is imported only by those who plan
        from tempo_ir.lowering.storage.driver import plan_storage

        for program in [inner for inner in op.ops if isinstance(inner, ProgramOp)]:
            if is_lowered(program):
                raise PassFailedException(f"kernels are launched already: put {self.name} before loop-lower-kernels")
            for name, number in plan_storage(program, check=self.check).items():
                count(self, name, number)
