"""sdg-lift: a recurrence that only accumulates becomes a reduction, or a running sum along an axis.

Before (T small products, one after the other):

    %g = sdg.contract "bk,bn->kn" %x[t], %d[t] in (t) : (!x, !d) -> !w
    %0 = sdg.add %s[t - 1], %g[t] in (t: 1 to T) : (!w, !w) -> !w
    %s = sdg.merge {t = 0 : %g[t], t > 0 : %0[t]} in (t) : (!w, !w) -> !w
    sdg.output "s" %s[T - 1] : !w

After (sdg-vectorize and sdg-simplify make one large product of it):

    %s = sdg.sum %g[0:T] axes [0] : (!w) -> !w
    sdg.output "s" %s : !w

Where the recurrence is read at each point, and not at the last alone, sums and products become `sdg.cumsum` and
`sdg.cumprod` of all rows, and whoever reads it slices their axis. The opposite is sdg-unlift.

It applies to sums, products, extremes and logic, upwards or downwards (`s[t + 1]`), from the first row, from nothing,
or, where the last value alone is read, from any value, if no other op recurs with the two. It is done where it pays:
where the rows are products, of which one sum is read, and where sdg-vectorize makes an axis of what makes the rows, or
of who reads the result, so that the dim is no loop any more; `all=true` takes the rest too. It does not apply to 16-bit
floats, which round at each step of the recurrence and once in a sum; nor to linear recurrences,
`h[t] = f[t] * h[t - 1] + b[t]` (a discounted return): a closed form divides by the product of the factors, which
overflows where that underflows, and doubling reads each row log T times (at 4096 steps of 1 to 2048 elements it takes
two to three times as long as the loop on a CPU), so the loop stays.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tempo_ir.dialects.sdg import (
    Access,
    ContractOp,
    CumprodOp,
    CumsumOp,
    MergeOp,
    PadOp,
    ProdOp,
    ProgramOp,
    SdgOp,
    SumOp,
    domain_of,
)
from tempo_ir.dialects.sdg.reads import program_ops, read_problem
from tempo_ir.dialects.sdg.until import needed_for, until_of
from tempo_ir.dialects.types import element, shape_of, tensor
from tempo_ir.index import Const, Expr, Slice, free_symbols, substitute
from tempo_ir.passes.building import GraphBuilder, full
from tempo_ir.passes.recurrences.accumulations import Accumulation, accumulation_of, fixed_point, outside_readers
from tempo_ir.passes.recurrences.reductions import combining, identity
from tempo_ir.passes.remarks import collecting, count, remark
from tempo_ir.passes.sdg_dce import remove_dead_ops
from tempo_ir.passes.sdg_vectorize import choose, gaining, redirect
from tempo_ir.passes.utilities import programs
from tempo_ir.passes.vectorize.batching import Batch, without
from tempo_ir.passes.vectorize.recurrence import cycles_along


@dataclass(frozen=True)
class SdgLiftPass(ModulePass):
    """Turn recurrences that only accumulate into reductions and running sums."""

    name = "sdg-lift"

    all: bool = False
    """Lift what can be, also where the dim stays a loop."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in programs(op):
            lifted = 0
            for merge in program_ops(program):
                if isinstance(merge, MergeOp) and (found := accumulation_of(merge)) is not None:
                    lifted += lift(program, found, take_all=self.all)
            remove_dead_ops(program)
            count(self, "lifted", lifted)


def lift(program: ProgramOp, found: Accumulation, *, take_all: bool) -> bool:
    """Lift one recurrence, in place, if it can be and pays; whether it was."""
    if (problem := _problem(program, found, take_all=take_all)) is not None:
        remark(found.merge, f"not lifted: {problem}")
        return False
    return _as_reductions(program, found) or _as_scan(found)


def _problem(program: ProgramOp, found: Accumulation, *, take_all: bool) -> str | None:
    ops, dim = program_ops(program), found.walk.dim
    uses = [use.operation for op in (found.merge, found.step) for use in op.results[0].uses]
    if len(uses) != sum(map(len, outside_readers(found))) + 2:
        return "a gradient names it"
    groups = [group for group, _ in cycles_along(ops, dim, program.space) if found.merge in group]
    if not groups or set(groups[0]) != {found.merge, found.step}:
        return "other ops recur with it"
    until = until_of(ops)
    if until is not None and until.dim == dim and found.merge in needed_for(until):
        return f"the end of {dim} is computed from it"
    if take_all or _pays(program, found):
        return None
    return f"neither what it accumulates nor who reads it becomes an axis, so that {dim} is a loop anyway"


def _pays(program: ProgramOp, found: Accumulation) -> bool:
    """Whether the rows, or what is made of the result, would be an axis; products of which one sum is read are."""
    with collecting():  # what sdg-vectorize would remark is not said twice
        able = choose(program, found.walk.dim, take_all=True)
    chosen = gaining(able, found.walk.dim)
    row, readers = found.row.value.owner, [user for group in outside_readers(found) for user, _ in group]
    if isinstance(row, ContractOp) and row in able and found.kind is SumOp and _is_read_at_its_end(program, found):
        return True
    return any(op in chosen for op in (row, *readers))


def _is_read_at_its_end(program: ProgramOp, found: Accumulation) -> bool:
    """Whether no reader varies along the dim."""
    dims, dim = found.merge.domain.dims, found.walk.dim
    indices = [user.accesses[number].index for group in outside_readers(found) for user, number in group]
    return all(fixed_point(index, dims, dim, program.space.names) is not None for index in indices)


# ---- where the last value alone is read ----


def _as_reductions(program: ProgramOp, found: Accumulation) -> bool:
    """Readers of one point, the same for all, read a reduction; whether there are no others, and it was done."""
    dims, dim = found.merge.domain.dims, found.walk.dim
    places: dict[tuple[SdgOp, Expr], Access] = {}
    readers = [reader for group in outside_readers(found) for reader in group]
    for user, number in readers:
        read = user.accesses[number]
        place = fixed_point(read.index, dims, dim, program.space.names)
        if place is None:
            return False
        producer = read.value.owner
        assert isinstance(producer, SdgOp)
        if (producer, place) not in places:
            reduced = _reduced(found, producer, place)
            if reduced is None:
                return False
            places[producer, place] = reduced
    for user, number in readers:
        read = user.accesses[number]
        producer = read.value.owner
        assert isinstance(producer, SdgOp)
        place = fixed_point(read.index, dims, dim, program.space.names)
        assert place is not None
        index = tuple(entry for name, entry in zip(dims, read.index, strict=True) if name != dim)
        user.with_access(number, places[producer, place].value, index)
    return True


def _reduced(found: Accumulation, producer: SdgOp, place: Expr) -> Access | None:
    """The merge, or the step, at one point: a reduction over the other dims; None where its reads need a guard."""
    walk, merge = found.walk, found.merge
    domain = without(merge.domain, walk.dim)
    last = place
    if producer is found.step and not found.inclusive:  # the step has the row of its own point: the merge's next
        last = place - walk.offset
    rows = found.read_rows(found.rows(last))
    start = Access(found.start.value, substitute(found.start.index, {walk.dim: walk.start}))
    alone = found.starts_with_row or found.starts_with_nothing
    for read in (rows,) if alone else (rows, start):
        if read_problem(walk.space, domain, read.index, domain_of(read.value)) is not None:
            return None
    build = GraphBuilder(merge, domain, merge.location)
    total = build.insert(found.kind(rows, (0,), domain=domain), merge.result.name_hint)
    if alone:
        return total
    kind = combining(found.kind, element(merge.result.type))
    return build.insert(kind(start, total, domain=domain))


# ---- where each point is read ----


def _as_scan(found: Accumulation) -> bool:
    """The recurrence over all points at once; readers slice it. Whether it could be done."""
    scans = {SumOp: CumsumOp, ProdOp: CumprodOp}
    walk, merge = found.walk, found.merge
    starts = found.starts_with_row or (not found.inclusive and found.starts_with_nothing)
    tied = (free_symbols(walk.first) | free_symbols(walk.end)) & set(merge.domain.dims)
    if found.kind not in scans or not starts or tied:
        return False
    domain = without(merge.domain, walk.dim)
    batch = Batch(walk.dim, walk.first, walk.end)
    rows = found.read_rows(Slice(walk.first, walk.end))
    if read_problem(walk.space, domain, rows.index, domain_of(rows.value)) is not None:
        return False
    build = GraphBuilder(merge, domain, merge.location)
    scan = scans[found.kind](rows, 0, reverse=walk.offset > 0, domain=domain)
    inclusive = build.insert(scan, merge.result.name_hint)
    of_merge = inclusive if found.inclusive else _before(build, found, inclusive, batch)
    going = (found.merge, found.step)
    redirect(found.merge.result, of_merge, batch, going)
    redirect(found.step.result, inclusive, batch, going)
    return True


def _before(build: GraphBuilder, found: Accumulation, inclusive: Access, batch: Batch) -> Access:
    """The values before each row joins: those after it, moved by one point, with nothing at the first."""
    shape = shape_of(found.merge.result.type)
    kind = element(found.merge.result.type)
    upwards = found.walk.offset < 0
    one, none = (Const(1), *[Const(0)] * len(shape)), tuple([Const(0)] * (len(shape) + 1))
    low, high = (one, none) if upwards else (none, one)
    more = Slice(batch.first, batch.end + 1).extent
    padded = build.build(
        PadOp, inclusive, low=low, high=high, value=identity(found.kind, kind), result_type=tensor(kind, (more, *shape))
    )
    kept = full(batch.count) if upwards else Slice(Const(1), more)
    return build.slice(padded, (kept, *map(full, shape)))
