"""sdg-insert-swap: ask that values lie in host memory between the loop that makes them and one that reads them again.

Before (back-propagation through time: all of `%h` is kept for the way back):

    %s = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : (!h, !h) -> !h
    %h = sdg.tanh %s[t] in (t) : (!h) -> !h
    %n = sdg.merge {t = T - 1 : %zero, t < T - 1 : %b[t + 1]} in (t) : (!h, !h) -> !h
    %b = sdg.mul %n[t], %h[t] in (t) : (!h, !h) -> !h

After (each row goes to the host after its step, and is back 2 iterations before `%b` needs it):

    %h = sdg.tanh %s[t] in (t) : (!h) -> !h
    sdg.swap %h ahead 2 : !h

Of what a loop makes and a later one reads again, row by row, values are taken until what is kept is estimated to take
no more than `budget` bytes (0: all of them). Every row waits for as many iterations as there are, on average, and is
copied twice, so that all gain the same for a byte that is copied: the largest values are taken first, which are the
fewest. `sizes` says for which bounds, `sizes="T=512","B=16"`; others are taken to be `steps`. With `solver=ilp` the
least bytes are copied that do, by HiGHS (needs scipy: the extra `ilp`). `ahead` is how many iterations a row comes back
before it is read; 0 chooses as many as hide the copy, by the bytes that an iteration of the reader moves.

Requests are estimates: loop-plan-storage, which sees the loops as they are, drops what saves nothing, and
`tempo_ir.compile(memory_budget=...)` runs this pass again with less until the program fits. It does not apply to values
that are also read all at once (`%h[0:T]`: sdg-accumulate may change that), to arrays of the caller and what outputs are
computed into, or to what later loops can compute for themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects.sdg import (
    Access,
    BinaryOp,
    CastOp,
    MergeOp,
    ProgramOp,
    SdgOp,
    SelectOp,
    SourceOp,
    SwapOp,
    UnaryOp,
    domain_of,
    requests_about,
)
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.dialects.sdg.until import until_of
from tempo_ir.graphs import reachable
from tempo_ir.index import Expr, Slice, Sym, evaluate, free_symbols
from tempo_ir.passes.recurrences.interleaving import Lookahead, looped
from tempo_ir.passes.remarks import count, remark
from tempo_ir.passes.sdg_accumulate import value_bytes
from tempo_ir.passes.sdg_insert_dealloc import has_memory
from tempo_ir.passes.utilities import check_counts, programs, refuse

LINK = 16
"""How many bytes an iteration moves on the device while one goes to the host or comes back."""
MOST_AHEAD = 16
"""Iterations that a row comes back early, at most: each keeps one more row."""
CHEAP = (UnaryOp, BinaryOp, CastOp, SelectOp)
"""What a later loop computes for itself rather than to have it kept."""
SOLVERS = ("greedy", "ilp")


@dataclass(frozen=True)
class SdgInsertSwapPass(ModulePass):
    """Ask that values lie in host memory until a later loop reads them again."""

    name = "sdg-insert-swap"

    budget: int = 0
    """Bytes that the values kept for later loops may take on the device."""

    sizes: tuple[str, ...] = ()
    """Bounds at which they may take no more, `T=512`."""

    steps: int = 256
    """What a bound is taken to be of which nothing is said."""

    ahead: int = 0
    """Iterations that a row comes back before it is read; 0 chooses."""

    solver: str = "greedy"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_counts(self)
        if self.solver not in SOLVERS:
            raise PassFailedException(f"{self.name} has no solver '{self.solver}'; use one of {', '.join(SOLVERS)}")
        for program in programs(op):
            count(self, "requests", insert_swaps(program, self))


def insert_swaps(program: ProgramOp, options: SdgInsertSwapPass) -> int:
    """Insert requests behind the values that are taken; how many."""
    bounds = bounds_of(program, options)
    candidates = [each for dim in program.space.names for each in candidates_of(program, dim, options.ahead)]
    sizes = {each: each.size(bounds) for each in candidates}
    choose = cheapest if options.solver == "ilp" else greedily
    excess = sum(sizes.values()) - options.budget if options.budget else None
    taken = choose(sizes, sum(sizes.values()) if excess is None else excess)
    inserted = 0
    for each in candidates:
        if each not in taken:
            owner = each.values[0].owner
            assert isinstance(owner, SdgOp)
            remark(owner, f"not swapped: {sizes[each]} bytes of it fit into the budget of {options.budget}")
            continue
        for value in (*each.values, *each.instead):
            op = value.owner
            assert isinstance(op, SdgOp)
            if not any(isinstance(request, SwapOp) for request in requests_about(op)):
                program.body.block.insert_op_after(SwapOp(value, each.ahead, location=op.location), op)
                inserted += 1
    return inserted


def bounds_of(program: ProgramOp, options: SdgInsertSwapPass) -> dict[str, int]:
    """The bounds to take memory at. Raises PassFailedException for one that the program does not have."""
    bounds = dict.fromkeys(program.space.params, options.steps)
    for text in options.sizes:
        name, equals, number = text.partition("=")
        if not equals or not number.strip().isdigit():
            raise PassFailedException(f"{options.name}: sizes are of the form T=512, got '{text}'")
        if name.strip() not in bounds:
            known = ", ".join(bounds) or "none"
            refuse(program, f"{options.name}: @{program.sym_name.data} has no bound {name.strip()}; it has {known}")
        bounds[name.strip()] = int(number)
    return bounds


# ---- what may be swapped ----


@dataclass(frozen=True, eq=False)
class Candidate:
    """Values that are one memory (a state before and after its step), kept for all points of `dim`, or what may be kept
    `instead`; each row is to be back `ahead` iterations before it is read."""

    dim: str
    values: tuple[SSAValue, ...]
    instead: tuple[SSAValue, ...]
    ahead: int

    def size(self, bounds: Mapping[str, int]) -> int:
        """The bytes of all rows, of one point of the outer dims."""
        producer = self.values[0].owner
        assert isinstance(producer, SdgOp)
        points: Expr = producer.space.bound(self.dim)
        return value_bytes(self.values[0]) * max(0, evaluate(points, bounds))


def candidates_of(program: ProgramOp, dim: str, ahead: int) -> list[Candidate]:
    """What a loop over a dim makes, and a later one over it reads again."""
    ops = program_ops(program)
    until = until_of(ops)
    loop = looped(ops, dim, program.space)
    if not loop or (until is not None and until.dim == dim):
        return []
    steps = Lookahead(ops, dim, program.space)
    waiting = {op: None for op in ops if steps.steps[op] == inf and dim in op.domain.dims}
    cheap = sinking(ops, dim, waiting, loop)
    late = {**waiting, **cheap}
    found: list[Candidate] = []
    for values in memories([op for op in ops if op not in late], dim):
        reads = later_reads(values, late)
        if not reads or not all(map(has_memory, values)):
            continue
        if problem := next(filter(None, (_problem(access, dim) for access in reads)), None):
            owner = values[0].owner
            assert isinstance(owner, SdgOp)
            remark(owner, f"not swapped: {problem}")
            continue
        found.append(Candidate(dim, values, instead_of(values, cheap), ahead or distance(values[0], late)))
    return found


def later_reads(values: Sequence[SSAValue], late: Mapping[SdgOp, None]) -> list[Access]:
    """How later loops read some values."""
    uses = [(use.operation, use.index) for value in values for use in value.uses]
    return [op.accesses[number] for op, number in uses if isinstance(op, SdgOp) and op in late]


def sinking(
    ops: Sequence[SdgOp], dim: str, waiting: Mapping[SdgOp, None], loop: Mapping[SdgOp, None]
) -> dict[SdgOp, None]:
    """What is cheap, and read by what waits for the last step alone: later loops may compute it for themselves."""
    found: dict[SdgOp, None] = {}
    able = [
        op for op in ops if isinstance(op, CHEAP) and dim in op.domain.dims and op not in loop and op not in waiting
    ]
    changed = True
    while changed:
        more = [op for op in able if op not in found and _is_read_late(op, waiting, found)]
        changed = bool(more)
        found.update(dict.fromkeys(more))
    return found


def _is_read_late(op: SdgOp, waiting: Mapping[SdgOp, None], cheap: Mapping[SdgOp, None]) -> bool:
    readers = [use.operation for use in op.results[0].uses if isinstance(use.operation, SdgOp)]
    return bool(readers) and all(reader in waiting or reader in cheap for reader in readers)


def instead_of(values: Sequence[SSAValue], cheap: Mapping[SdgOp, None]) -> tuple[SSAValue, ...]:
    """What of the cheap is made of some values: the scheduler may keep it in their stead, if it is less."""

    def readers(op: SdgOp) -> list[SdgOp]:
        found = [use.operation for result in op.results for use in result.uses]
        return [reader for reader in found if isinstance(reader, SdgOp) and reader in cheap]

    owners = [value.owner for value in values if isinstance(value.owner, SdgOp)]
    made = reachable((reader for owner in owners for reader in readers(owner)), readers)
    return tuple(op.results[0] for op in made if has_memory(op.results[0]))


def memories(ops: Sequence[SdgOp], dim: str) -> list[tuple[SSAValue, ...]]:
    """The values over a dim by the memory that they are likely to share: a merge with what it takes over."""
    groups: dict[SSAValue, dict[SSAValue, None]] = {}
    made = [op for op in ops if len(op.results) == 1 and not isinstance(op, SourceOp)]
    values = [op.results[0] for op in made if dim in op.domain.dims]
    for value in values:
        groups.setdefault(value, {value: None})
    for merge in [op for op in ops if isinstance(op, MergeOp) and op.result in groups]:
        for access in merge.accesses:
            if access.value in groups and access.value.type == merge.result.type:
                joined = {**groups[access.value], **groups[merge.result]}
                groups.update(dict.fromkeys(joined, joined))
    return list(dict.fromkeys(tuple(group) for group in groups.values()))


def _problem(access: Access, dim: str) -> str | None:
    """Why a read takes neither the rows one by one nor the same one always; None if it does."""
    entry = access.index[domain_of(access.value).dims.index(dim)]
    if isinstance(entry, Slice):
        return f"{access} is read at once"
    near = any(dim not in free_symbols(rest) for rest in (entry, entry - Sym(dim), entry + Sym(dim)))
    return None if near else f"{access} is not read row by row"


def distance(value: SSAValue, late: Iterable[SdgOp]) -> int:
    """How many iterations hide the copy of a row: while it comes, the later loop moves so many times its bytes."""
    step = 0
    for op in late:
        touched = (*(access.value for access in op.accesses), *op.results)
        step += sum(value_bytes(each) for each in touched)
    return min(MOST_AHEAD, max(1, math.ceil(LINK * value_bytes(value) / max(1, step))))


# ---- which are ----


def greedily(sizes: Mapping[Candidate, int], excess: int) -> set[Candidate]:
    """Candidates of `excess` bytes in all, the largest first."""
    taken: set[Candidate] = set()
    for each in sorted(sizes, key=lambda each: -sizes[each]):
        if excess <= 0:
            break
        taken.add(each)
        excess -= sizes[each]
    return taken


def cheapest(sizes: Mapping[Candidate, int], excess: int) -> set[Candidate]:
    """The candidates with the least bytes to copy of those that have `excess` bytes in all, all where none has."""
    if excess <= 0 or not sizes:
        return set()
    if sum(sizes.values()) <= excess:
        return set(sizes)
    from tempo_ir.passes.ilp import least_cost

    weights = list(sizes.values())
    chosen = least_cost(weights, weights, excess)
    return {each for each, is_taken in zip(sizes, chosen, strict=True) if is_taken}
