"""sdg-remat: of a forward recurrence that a backward one reads, a row in k is kept, and the others are computed anew.

Before (backpropagation through time: `%h` of all steps is kept for `%g`):

    %s = sdg.merge {t = 0 : %x0, t > 0 : %h[t - 1]} in (t) : (!x, !x) -> !x
    %h = sdg.tanh %s[t] in (t) : (!x) -> !x
    %n = sdg.merge {t = T - 1 : %x0, t < T - 1 : %g[t + 1]} in (t) : (!x, !x) -> !x
    %g = sdg.mul %n[t], %h[t] in (t) : (!x, !x) -> !x

After `sdg-remat{block=100}`, in a program that declares `dims(t: T, b: (T + 99) floordiv 100, j: 100)`; all is over
`(b, j: 0 to min(100, T - 100 * b))`, where t is `100 * b + j`:

    %s = sdg.merge {100 * b + j = 0 : %x0, j >= 1 : %h[b, j - 1], true : %h_kept[b - 1]}
    %h = sdg.tanh %s[b, j]
    %h_kept = sdg.keep %h[b, 99] in (b: 0 to T floordiv 100)
    %s_again = sdg.merge {100 * b + j = 0 : %x0, j >= 1 : %h_again[b, j - 1], true : %h_kept[b - 1]}
    %h_again = sdg.tanh %s_again[b, j]
    %n = sdg.merge {100 * b + j = T - 1 : %x0, j < 99 : %g[b, j + 1], true : %g[b + 1, 0]}
    %g = sdg.mul %n[b, j], %h_again[b, j]

The scheduler computes the rows of a block anew in the loop that goes backwards over the blocks, before the backward
steps of the block; storage keeps the last row of each block, and the rows of one block of `%h_again`. Sums of
rows over all steps, the gradients of weights, are kept block by block (`recompute.totals`). Random numbers are drawn
anew, the same ones; calls of the host are never repeated: what they gave is kept, as are rows that the caller gets.

`budget` is in bytes, for what is kept between the forward and the backward steps, where a dim that no number bounds has
`steps` points. Where all rows fit, nothing is done. Else blocks have the length that keeps least (`recompute.plan`; or
`block` gives it), and what is left of the budget keeps the values that are most work per byte. Run it behind sdg-cse,
which would compute once what is to be computed twice, and without sdg-vectorize along the dim, which keeps rows of all
steps (`recomputing_pipeline` is the order). What a block computes without a recurrence it computes for all of its steps
at once.

It does not apply to a dim without both a forward recurrence and a backward one that reads it, one that data ends, one
along which a recurrence reads a range of steps (attention to the past) or steps on both sides. A remark says why.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects.sdg import ProgramOp
from tempo_ir.index import Const
from tempo_ir.passes.recompute.blocks import Blocks
from tempo_ir.passes.recompute.plan import Planner
from tempo_ir.passes.recompute.rewrite import Rewriter
from tempo_ir.passes.recompute.sides import NotInBlocksError, sides_of
from tempo_ir.passes.remarks import collecting, count, remark
from tempo_ir.passes.sdg_dce import remove_dead_ops
from tempo_ir.passes.sdg_vectorize import vectorize
from tempo_ir.passes.utilities import check_counts, dims_to_try, programs


@dataclass(frozen=True)
class SdgRematPass(ModulePass):
    """Compute rows of a forward recurrence anew for the backward one that reads them."""

    name = "sdg-remat"

    budget: int | None = None
    """The bytes that may be kept between forward and backward steps."""

    block: int | None = None
    """Steps of a block; chosen where none is given."""

    steps: int = 10000
    """How many points a dim is expected to have where nothing says so."""

    dims: tuple[str, ...] = ()
    """The dims to try; all where none is named."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_counts(self, block=1)
        if self.budget is None and self.block is None:
            raise PassFailedException(
                "sdg-remat: say what may be kept, budget=BYTES, or in blocks of what, block=STEPS"
            )
        for program in programs(op):
            for dim in dims_to_try(self.name, program, self.dims):
                if anew := self.recompute(program, dim):
                    count(self, "recomputed", anew)

    def recompute(self, program: ProgramOp, dim: str) -> int:
        """Compute anew what is worth it along a dim, in place; how many ops are."""
        try:
            sides = sides_of(program, dim)
        except NotInBlocksError as error:
            remark(error.op or program, f"not computed anew along {dim}: {error}")
            return 0
        bound = program.space.bound(dim)
        steps = bound.value if isinstance(bound, Const) else self.steps
        plan = Planner(sides, max(1, steps)).plan(self.budget, self.block)
        if not plan.again:
            remark(program, f"not computed anew along {dim}: the backward recurrence reads nothing of the forward one")
            return 0
        if self.budget is not None and plan.full <= self.budget and self.block is None:
            remark(program, f"not computed anew along {dim}: all rows are {plan.full} bytes, within the budget")
            return 0
        if self.budget is not None and plan.least > self.budget:
            remark(program, f"over the budget along {dim}: blocks of {plan.size} steps keep {plan.least} bytes")
        count(self, f"steps of a block of {dim}", plan.size)
        count(self, f"bytes kept along {dim} by estimate", plan.least)
        blocks = Blocks.of(program.space, dim, plan.size)
        Rewriter(program, sides, blocks, plan.again).run()
        remove_dead_ops(program)
        with collecting():  # of what recurs along a block nobody needs to be told
            vectorize(program, blocks.step)
        return len(plan.again)
