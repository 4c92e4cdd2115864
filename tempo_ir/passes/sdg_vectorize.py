"""sdg-vectorize: a dim along which nothing recurs becomes an axis.

Before:

    %gw = sdg.contract "bk,bn->kn" %s[i, t], %ga[i, t] in (i, t) : (!h, !h) -> !w
    %dw = sdg.sum %gw[i, 0:T] axes [0] in (i) : (!w) -> !w

After (`!hT` is `tensor<?x16x64xf32, #sdg.size<T>>`):

    %gw = sdg.contract "tbk,tbn->tkn" %s[i, 0:T], %ga[i, 0:T] in (i) : (!h, !h) -> !wT
    %dw = sdg.sum %gw[i] axes [0] in (i) : (!wT) -> !w          // sdg-simplify: contract "tbk,tbn->kn"

so that T small products are one large one. Whoever reads a vectorised value at a point slices the axis.

An op can be vectorised along a dim if it does not recur along it (a cycle that an outer dim carries is none, see
`vectorize.recurrence`), if it reads the dim at most shifted (`t - 1`), if nothing else about it depends on the dim (its
shape, what it slices, which case of a merge holds), and if its points of the dim are one range. Random draws, inputs
and outputs stay as they are, and so does what a gradient names. Of host calls those can that name a vectorised form
(`vectorized @step_all along (b)`) and follow each other along the dim with no other call of the object between two:
one call makes them all (`vectorize.calls`).

Of ops that can, those are vectorised that are connected, by reads among them, to an op that gains by it: a host call, a
contraction, or what is read whole, since an op without the dim reads a range of its rows, which are kept anyway.
Contractions gain where operands that are the same at all points (weights, read once then) are larger than the result,
whose rows are kept for all points then; or where a range of their rows is read. Chains of small ops, products of
operands that all vary (T outer products), and products of many rows with few weights, whose rows fit a cache, gain
nothing from memory for all points. Nor does a product of `rows` rows or more at each point, weights of any size, of
which all that comes is read point by point by a recurrence: there is a loop, and reading the weights in each iteration
is little beside so many multiplications, while its rows stay in a cache (`rows=0`: not on a GPU). Host calls gain where
memory moves their rows in less time than a call takes. Nor does what a loop over the dim makes and a running sum takes
row by row (see sdg-accumulate): its rows would all be kept. `all=true` takes them too, `dims=t` names the dims to try;
by default all are, inner ones first.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from tempo_ir.dialects.sdg import (
    Access,
    AccessOp,
    ContractOp,
    HostOp,
    IndexOp,
    MergeOp,
    ProgramOp,
    SdgOp,
    TokenType,
    domain_of,
)
from tempo_ir.dialects.sdg.reads import claim_problem, holds, program_ops, read_domain, read_problem
from tempo_ir.dialects.sdg.shape_ops import inside
from tempo_ir.dialects.sdg.symbols import property_symbols
from tempo_ir.dialects.sdg.until import needed_for, until_of
from tempo_ir.dialects.types import Shape, shape_of
from tempo_ir.graphs import reachable
from tempo_ir.index import Domain, Index, Slice, Space, Sym, as_expr, free_symbols
from tempo_ir.passes.building import GraphBuilder, normal_form, symbols_of
from tempo_ir.passes.recurrences.interleaving import row_by_row
from tempo_ir.passes.remarks import count, remark
from tempo_ir.passes.utilities import check_counts, dims_to_try, erase, is_slice, programs
from tempo_ir.passes.vectorize.batching import (
    Batch,
    Operand,
    axis_problem,
    batched_entry,
    batching_of,
    on_axis,
    shifts_only,
    without,
)
from tempo_ir.passes.vectorize.calls import (
    NoChainError,
    chain_of,
    follow,
    one_call,
    points_of,
    saves_calls,
    with_points,
)
from tempo_ir.passes.vectorize.loops import is_taken_by_loops, rows_of_a_point
from tempo_ir.passes.vectorize.recurrence import recurrent_ops
from tempo_ir.passes.vectorize.views import view

MANY_ROWS = 32
"""Rows of a product that take longer to multiply with weights than to read these from memory (measured)."""


@dataclass(frozen=True)
class SdgVectorizePass(ModulePass):
    """Turn dims along which nothing recurs into axes."""

    name = "sdg-vectorize"

    dims: tuple[str, ...] = ()
    """The dims to try; all, inner ones first, where none is named."""

    all: bool = False
    """Vectorise what can be, also where no contraction gains by it."""

    rows: int = MANY_ROWS
    """From how many rows on a product for a recurrence stays in its loop; 0: from none."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_counts(self)
        for program in programs(op):
            for dim in reversed(dims_to_try(self.name, program, self.dims)):
                count(self, "vectorised", vectorize(program, dim, take_all=self.all, rows=self.rows))


def vectorize(program: ProgramOp, dim: str, *, take_all: bool = False, rows: int = MANY_ROWS) -> int:
    """Vectorise ops of a program along a dim, in place; how many."""
    chosen = choose(program, dim, take_all=take_all, rows=rows)
    calls = {op: chain_of(op, dim, program.space) for op in chosen if isinstance(op, HostOp)}
    going = dict.fromkeys([*chosen, *(chain.merge for chain in calls.values())])
    batched: dict[SSAValue, Access] = {}
    for op, batch in chosen.items():
        if isinstance(op, HostOp):
            call, results = one_call(calls[op], operands_of(op, batch))
            follow(calls[op], call)
            batched.update(zip(op.outputs, results, strict=True))
        else:
            batched[op.results[0]] = batched_form(op, batch)
    for result, access in batched.items():
        redirect(result, access, chosen[cast(SdgOp, result.owner)], going)
    erase(going)
    return len(chosen)


def choose(program: ProgramOp, dim: str, *, take_all: bool, rows: int = MANY_ROWS) -> dict[SdgOp, Batch]:
    """The ops to vectorise along a dim, with its points."""
    ops = program_ops(program)
    varying = [op for op in ops if dim in op.domain.dims]
    recurrent, together = set[SdgOp](), list[list[SdgOp]]()
    if any(isinstance(op, HostOp) or batching_of(op) is not None for op in varying):
        recurrent, together = recurrent_ops(ops, dim, program.space)
    until = until_of(ops)
    early = needed_for(until) if until is not None and until.dim == dim else {}
    may_gain = take_all or any(isinstance(op, ContractOp | HostOp) and op not in recurrent for op in varying)
    able: dict[SdgOp, Batch] = {}
    for op in varying:
        if isinstance(op, MergeOp) and isinstance(op.result.type, TokenType):
            continue
        problem = call_problem(op, dim, program.space)
        if op in early:
            problem = f"the end of {dim} is computed from it"
        elif problem is None and op in recurrent:
            problem = "it recurs along it"
        elif problem is None:
            problem = problem_of(op, dim, program.space) if may_gain else "no contraction or call gains by it"
        if problem is None:
            able[op] = points_of(op, dim, program.space)
        else:
            remark(op, f"not vectorised along {dim}: {problem}")
    if able and not take_all:
        for op in row_by_row(ops, dim, program.space):
            if able.pop(op, None) is not None:
                remark(op, f"not vectorised along {dim}: a loop over {dim} makes it, and sums take it, row by row")
    for op in [op for op, batch in able.items() if stacks_rows_of_several_extents(op, batch)]:
        remark(op, f"not vectorised along {dim}: a reader takes rows of several extents at once")
        del able[op]
    while bare := [op for op in able if loses_a_guard(op, able, dim, program.space)]:
        for op in bare:
            remark(op, f"not vectorised along {dim}: a reader reads it only where there is a point of {dim}")
            del able[op]
    for group in together:
        varying = [op for op in group if dim in op.domain.dims]
        if any(op not in able for op in varying):
            for op in varying:
                able.pop(op, None)
    return able if take_all else gaining(able, dim, recurrent, rows)


def stacks_rows_of_several_extents(op: SdgOp, batch: Batch) -> bool:
    """Whether a read takes a range of points of another dim, with which the number of points of the dim varies."""
    names = free_symbols(as_expr(batch.count))
    indices = [
        use.operation.accesses[use.index].index
        for result in results_of(op)
        for use in result.uses
        if isinstance(use.operation, AccessOp)
    ]
    pairs = [pair for index in indices for pair in zip(op.domain.dims, index, strict=True)]
    return any(isinstance(entry, Slice) and name in names for name, entry in pairs)


def loses_a_guard(op: SdgOp, able: Mapping[SdgOp, Batch], dim: str, space: Space) -> bool:
    """Whether a read of `op` would leave its domain, or the axis that the dim is now: `%x[0:B, B - 1]` reads nothing at
    B = 0, `%x[B - 1]`, of all `0:B`, reads the point -1; `%x[1, 2:B]` reads nothing at B = 1, where no axis has a 1."""
    position, count = op.domain.dims.index(dim), as_expr(able[op].count)
    for use in [use for result in results_of(op) for use in result.uses]:
        user = use.operation
        if not isinstance(user, AccessOp):
            continue
        domain, index = read_domain(user, use.index), user.accesses[use.index].index
        if user in able:
            domain = with_points(user, able[user]) if isinstance(user, HostOp) else without(domain, dim)
            index = tuple(batched_entry(entry, able[user]) for entry in index)
        entry, others = index[position], (*index[:position], *index[position + 1 :])
        if read_problem(space, domain, others, without(op.domain, dim)) is not None:
            return True
        if claim_problem(inside(on_axis(entry, able[op]), count), space, domain) is not None:
            return True
    return False


def gaining(able: dict[SdgOp, Batch], dim: str, recurrent: Container[SdgOp] = (), rows: int = 0) -> dict[SdgOp, Batch]:
    """Those of the ops that reads among them connect to a contraction or call that gains."""

    def stays(op: SdgOp) -> bool:
        many = isinstance(op, ContractOp) and 0 < rows <= rows_of_a_point(op, dim)
        return many and is_taken_by_loops(op, dim, able, recurrent)

    def neighbours(op: SdgOp) -> Iterable[SdgOp]:
        readers = [use.operation for result in op.results for use in result.uses]
        producers = [operand.owner for operand in op.operands]
        return [other for other in (*readers, *producers) if isinstance(other, SdgOp) and other in able]

    connected = reachable([op for op in able if gains(op, dim) and not stays(op)], neighbours)
    return {op: batch for op, batch in able.items() if op in connected}


def gains(op: SdgOp, dim: str) -> bool:
    """Whether an op is quicker for all points of a dim at once by so much that what it is connected to comes along."""
    if isinstance(op, HostOp):
        return saves_calls(op)
    return is_read_whole(op, dim) or (isinstance(op, ContractOp) and saves_reads(op, dim))


def saves_reads(op: ContractOp, dim: str) -> bool:
    """Whether operands that are the same at all points of a dim, and are read once then, are more than the rows that
    are kept for all points instead. Where both are equal a loop is as fast on a CPU, and needs one row."""
    shared = [access for access in op.accesses if dim not in free_symbols(access.index)]
    return sum(elements_of(shape_of(access.type)) for access in shared) > elements_of(shape_of(op.result.type))


def elements_of(shape: Shape) -> int:
    """How many elements there are, for each of those along axes of unknown extents."""
    return math.prod(extent for extent in shape if isinstance(extent, int))


def is_read_whole(op: SdgOp, dim: str) -> bool:
    """Whether all rows of an op are kept anyway: an op that is not done step by step reads a range of the dim; or, of
    a contraction, any op, whose rows are summed into one product then."""
    position = op.domain.dims.index(dim)
    for use in [use for result in results_of(op) for use in result.uses]:
        user = use.operation
        if not isinstance(user, AccessOp) or not is_slice(user.accesses[use.index].index[position]):
            continue
        if isinstance(op, ContractOp) or dim not in user.domain.dims:
            return True
    return False


def results_of(op: SdgOp) -> list[SSAValue]:
    """The results of an op that have rows."""
    return [result for result in op.results if not isinstance(result.type, TokenType)]


def call_problem(op: SdgOp, dim: str, space: Space) -> str | None:
    """Why the calls of a host op along a dim cannot be one; None if they can, and for other ops."""
    if not isinstance(op, HostOp):
        return None
    try:
        chain_of(op, dim, space)
    except NoChainError as error:
        return str(error)
    return None


def problem_of(op: SdgOp, dim: str, space: Space) -> str | None:
    """Why an op that does not recur along a dim cannot do all of its points at once; None if it can."""
    if not isinstance(op, HostOp) and batching_of(op) is None:
        return f"{op.name} is done point by point"
    if any(not isinstance(use.operation, AccessOp) for result in results_of(op) for use in result.uses):
        return "a gradient names it"
    domain = op.domain
    batch = points_of(op, dim, space)
    others = [part for name, *part in domain.ranges if name != dim]
    if dim in free_symbols(domain.where) or any(dim in free_symbols(bound) for part in others for bound in part):
        return "its points are no range"
    if problem := _property_problem(op, dim):
        return problem
    if not holds(op, space, with_points(op, batch)):
        return f"what it needs holds only where there is a point of {dim}"
    return _read_problem(op, batch, space)


def _property_problem(op: SdgOp, dim: str) -> str | None:
    if isinstance(op, IndexOp):
        return None if shifts_only(op.expression, dim) else "it is no shift of the dim"
    return "its shape or another property depends on it" if dim in property_symbols(op) else None


def _read_problem(op: SdgOp, batch: Batch, space: Space) -> str | None:
    accesses = op.accesses[:-1] if isinstance(op, HostOp) else op.accesses
    reads = [access.index for access in accesses]
    varies = [batch.dim in free_symbols(index) for index in reads]
    if reads and not any(varies) and not isinstance(op, HostOp):
        return "it does not vary along it"
    for number, (access, index) in enumerate(zip(accesses, reads, strict=True)):
        if (problem := _entry_problem(index, batch)) is not None:
            return f"{access}: {problem}"
        if batch.dim in symbols_of(shape_of(access.tensor)):
            return f"{access} has a shape that depends on it"
        producer = access.value.owner
        new = tuple(batched_entry(entry, batch) for entry in index)
        consumer = with_points(op, batch) if isinstance(op, HostOp) else without(read_domain(op, number), batch.dim)
        if isinstance(producer, SdgOp) and read_problem(space, consumer, new, producer.domain):
            return f"{access} reads only where there is a point of {batch.dim}"
    return axis_problem(op, varies)


def _entry_problem(index: Index, batch: Batch) -> str | None:
    """Why a read cannot be made at all points of the dim at once; None if it can."""
    varying = [number for number, entry in enumerate(index) if batch.dim in free_symbols(entry)]
    if not varying:
        return None
    if len(varying) > 1 or not shifts_only(index[varying[0]], batch.dim):
        return "it is read at more than a shift of the dim"
    if any(map(is_slice, index[: varying[0]])):
        return "a range of an outer dim is read"
    return None


def batched_form(op: SdgOp, batch: Batch) -> Access:
    """The op over all points of the dim, inserted before it; the result over the op's other dims."""
    domain = without(op.domain, batch.dim)
    build = GraphBuilder(op, domain, op.location)
    batching = batching_of(op)
    assert batching is not None
    result = batching(build, op, operands_of(op, batch), batch)
    shape = (batch.count, *shape_of(op.results[0].type))
    extents = shape_of(result.tensor)
    if len(extents) != len(shape) or not all(map(build.is_equal, extents, shape)):
        result = build.broadcast(result, shape)
    if result.index != tuple(Sym(name) for name in domain.dims):
        result = build.copy(result)
    result.value.name_hint = op.results[0].name_hint
    return result


def operands_of(op: SdgOp, batch: Batch) -> list[Operand]:
    """What an op reads, but for the token of a call, at all points of the dim."""
    operands: list[Operand] = []
    for access in op.accesses[:-1] if isinstance(op, HostOp) else op.accesses:
        index = tuple(batched_entry(entry, batch) for entry in access.index)
        operands.append(Operand(Access(access.value, index), index != access.index))
    return operands


def redirect(result: SSAValue, batched: Access, batch: Batch, erased: Iterable[SdgOp]) -> None:
    """Whoever reads a result of an op, and is not to be erased, reads its batched form."""
    going, dims = set(erased), domain_of(result).dims
    for use in list(result.uses):
        user = use.operation
        if not isinstance(user, AccessOp) or user in going:
            continue
        domain = readable_domain(user, use.index)
        build = GraphBuilder(user, domain, user.location)
        read = view(build, batched, dims, batch, user.accesses[use.index].index)
        user.with_access(use.index, read.value, read.index)


def readable_domain(user: AccessOp, number: int) -> Domain:
    """The points at which an operand is read, in normal form."""
    domain = read_domain(user, number)
    return domain if domain == user.domain else normal_form(domain, user.space)
