"""sdg-unlift: a reduction over a range that grows from point to point becomes a recurrence of one step each.

Before (t steps of work at t; all rows of `a` are kept):

    %s = sdg.sum %a[0:t + 1] axes [0] in (t) : (tensor<4xf32>) -> tensor<4xf32>

After:

    %0 = sdg.add %s[t - 1], %a[t] in (t: 1 to T) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %s = sdg.merge {t = 0 : %a[t], t > 0 : %0[t]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

Likewise `prod`, `max`, `min`, `mean` (the running sum over the count) and `contract` (`"nd,n->d"`); suffixes, `r[t:T]`,
as a recurrence that reads `t + 1`; discounted sums, `sum(gamma ** arange(T - t) * r[t:T])`, as
`g[t] = r[t] + gamma * g[t + 1]`; the denominators of softmax, `sum(exp(x - m))` where `m` is the greatest so far, as
`d[t] = d[t - 1] * exp(m[t - 1] - m[t]) + exp(x[t] - m[t])`. What is reduced may be any elementwise and row by row
function of ranges. A sum of integers over a window, `a[t - 7:t + 1]`, adds the row that joins and takes away the one
that leaves. Where operands of a contraction vary with t and lack the axis, they are multiplied with the running sum of
the rest: `"d,nd,ne->e" %q[t], %k[0:t + 1], %v[0:t + 1]` keeps the sum of `k v`.

It applies where the op's points along t are one range, where from each point to the next the range gains at most one
row, at one end, and loses none, where the other rows stay what they were, or are all scaled by one factor that no
division makes, and where the result's shape does not depend on t. Float sums change by rounding alone (16-bit floats
run in f32); integers and extremes not at all. It does not apply to ranges with a step, to windows of floats, which lose
rows (sums would drift, and inf - inf is NaN), to rows that depend on t otherwise (attention scores), to sums over a few
rows, and where a step with the running value would be more work than the rows that it saves, were there `steps` points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from tempo_ir.dialects.sdg import Access, AccessOp, ContractOp, MaxOp, ProgramOp, ReduceOp, SdgOp, SumOp
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.dialects.types import Extent, shape_of
from tempo_ir.index import Expr, compare, free_symbols
from tempo_ir.passes.recurrences.contractions import unlifted_contraction
from tempo_ir.passes.recurrences.growth import Growth, Walk, growths, walks
from tempo_ir.passes.recurrences.sums import unlifted_reduction
from tempo_ir.passes.recurrences.windows import sliding_sum
from tempo_ir.passes.remarks import count, remark
from tempo_ir.passes.sdg_dce import remove_dead_ops
from tempo_ir.passes.utilities import check_counts, erase, programs

FEW_ROWS = 3
"""A reduction over so many rows costs no more than a step of a recurrence."""


@dataclass(frozen=True)
class SdgUnliftPass(ModulePass):
    """Turn reductions over growing ranges into recurrences."""

    name = "sdg-unlift"

    steps: int = 256
    """How many points a dim is expected to have where nothing says so."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_counts(self)
        for program in programs(op):
            count(self, "unlifted", unlift(program, self.steps))
            remove_dead_ops(program)


def unlift(program: ProgramOp, steps: int) -> int:
    """Unlift what can be, in place; how many reductions. What is left of one may be another, along another dim."""
    maxima: dict[SSAValue, Access] = {}
    seen: set[SdgOp] = set()
    done = 0
    while waiting := [op for op in program_ops(program) if op not in seen]:
        seen.update(waiting)
        for op in waiting:
            if isinstance(op, ReduceOp | ContractOp) and growing_extents(op):
                done += unlift_op(op, steps, maxima)
    return done


def unlift_op(op: ReduceOp | ContractOp, steps: int, maxima: dict[SSAValue, Access]) -> bool:
    """Unlift one reduction, if it can be; whether it was."""
    if any(not isinstance(use.operation, AccessOp) for use in op.results[0].uses):
        return False
    if isinstance(op, SumOp):
        for walk in walks_of(op, growing_extents(op)):
            if (found := sliding_sum(op, walk)) is not None:
                replace(op, found)
                return True
    for growth in candidates(op):
        if isinstance(op, ReduceOp):
            found = unlifted_reduction(op, growth, maxima)
        else:
            found = unlifted_contraction(op, growth, steps)
        if found is not None:
            if isinstance(op, MaxOp):
                maxima[found.value] = op.accesses[0]
            replace(op, found)
            return True
    remark(op, "not unlifted: its rows are not those of a neighbouring point, and one more")
    return False


def growing_extents(op: ReduceOp | ContractOp) -> list[Expr]:
    """The extents of what is summed that depend on a dim."""
    dims = set(op.domain.dims)
    return [e for e in dict.fromkeys(summed_extents(op)) if not isinstance(e, int) and free_symbols(e) & dims]


def summed_extents(op: ReduceOp | ContractOp) -> Iterator[Extent]:
    """The extents of the axes that a result lacks."""
    if isinstance(op, ReduceOp):
        shape = shape_of(op.accesses[0].tensor)
        yield from (shape[axis] for axis in op.axes)
        return
    inputs, output = op.letters
    for letters, access in zip(inputs, op.accesses, strict=True):
        if not set(letters) <= set(output):
            shape = shape_of(access.tensor)
            yield from (extent for letter, extent in zip(letters, shape, strict=True) if letter not in output)


def walks_of(op: ReduceOp | ContractOp, extents: Sequence[Expr]) -> Iterator[Walk]:
    """The walks through an op's points along which extents vary."""
    return walks(op, frozenset[str]().union(*map(free_symbols, extents)))


def candidates(op: ReduceOp | ContractOp) -> Iterator[Growth]:
    """How the axes of the operands grow along the walks through an op's points."""
    from tempo_ir.index import isl

    extents = growing_extents(op)
    for walk in walks_of(op, extents):
        for extent in extents:
            if not isl.prove(compare("<=", extent, FEW_ROWS), walk.space, op.domain):
                yield from growths(walk, extent)


def replace(op: AccessOp, found: Access) -> None:
    """Whoever reads the op reads what it became, over the same dims."""
    if found.value.name_hint is None:
        found.value.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(found.value)
    erase([op])
