"""sdg-devectorize: an axis that a range of a dim made is that dim again, so that a loop may hold one row at a time.

Before:

    %p = sdg.mul %x[0:T], %x[0:T] : (tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32, #sdg.size<T>>
    %s = sdg.slice %p take [t, 0:4] in (t) : (tensor<?x4xf32, #sdg.size<T>>) -> tensor<4xf32>

After:

    %p = sdg.mul %x[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %s = sdg.slice %p[t] take [0:4] in (t) : (tensor<4xf32>) -> tensor<4xf32>

It is the opposite of sdg-vectorize, row by row: it applies to ops whose first axis is a whole range `first:end` that an
operand is read at, and that treat the rows of this axis alike (elementwise ops, products with that letter, reductions
and scans over other axes, moves of other axes). Whoever reads the op reads the range of it.

It does not apply to what mixes rows (a cumsum or softmax along the axis, a reshape that cuts rows), where the axis is
not the first, where another dim's range would come after it, to a dim that ends by data, and where a gradient names the
value. It is done where it pays: where somebody takes a row of the axis at a point of the dim, for which there is a loop
then, and where no product that gains by the axis, as sdg-vectorize reckons, is connected to the op. `all=true` takes
what can be, `dims=t` names the dims to try.

What computes the rows of the axis at the points of the dim anyway (`devectorize.twins`) is read instead: a policy that
acted on `%obs[i, t]` is not asked again for `%obs[i, 0:T]` to learn from. sdg-cse sees no two forms as one.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from tempo_ir.dialects.sdg import Access, AccessOp, ContractOp, ProgramOp, SdgOp, SliceOp, domain_of
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.dialects.sdg.until import until_of
from tempo_ir.dialects.types import as_tensor, shape_of
from tempo_ir.graphs import reachable
from tempo_ir.index import Slice, Space, Sym, compare, conj, free_symbols
from tempo_ir.passes.building import GraphBuilder
from tempo_ir.passes.devectorize.rows import Rows, row_domain, row_of
from tempo_ir.passes.devectorize.twins import twins_of
from tempo_ir.passes.recurrences.axes import Along, rule_of, without_axis
from tempo_ir.passes.remarks import count
from tempo_ir.passes.sdg_vectorize import elements_of
from tempo_ir.passes.utilities import dims_to_try, erase, is_slice, programs


@dataclass(frozen=True)
class SdgDevectorizePass(ModulePass):
    """Turn axes that ranges of dims made into these dims."""

    name = "sdg-devectorize"

    dims: tuple[str, ...] = ()
    """The dims to try; all, outer ones first, where none is named."""

    all: bool = False
    """Devectorise what can be, also where nobody takes a row at a time."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in programs(op):
            for dim in dims_to_try(self.name, program, self.dims):
                count(self, "devectorised", devectorize(program, dim, take_all=self.all))


def devectorize(program: ProgramOp, dim: str, *, take_all: bool) -> int:
    """Devectorise ops of a program along a dim, in place; how many."""
    until = until_of(program_ops(program))
    if until is not None and until.dim == dim:
        return 0  # an axis of a dim that ends by data has its place after the end
    able = able_ops(program, dim)
    twins = twins_of(able, program.space)
    for op, twin in twins.items():
        redirect(op, able[op], twin.results[0], twins)
    erase(twins)
    if twins:
        able = able_ops(program, dim)
    chosen = able if take_all else paying(able)
    for op in [op for op in able if op in chosen]:
        replace(op, able[op], chosen)
    erase(chosen)
    return len(twins) + len(chosen)


def able_ops(program: ProgramOp, dim: str) -> dict[SdgOp, Rows]:
    """The ops whose first axis is one of points of a dim, and which treat its rows alike, in textual order."""
    able: dict[SdgOp, Rows] = {}
    for op in program_ops(program):
        if (rows := rows_of(op, dim, program.space, able)) is not None:
            able[op] = rows
    return able


def rows_of(op: SdgOp, dim: str, space: Space, able: dict[SdgOp, Rows]) -> Rows | None:
    """The rows of an op's first axis as points of a dim; None where they are none, or where it mixes them."""
    rule = rule_of(op)
    if rule is None or not isinstance(op, AccessOp) or dim in op.domain.dims:
        return None
    ranges = any(is_slice(entry) for access in op.accesses for entry in access.index)
    if not ranges and all(operand.owner not in able for operand in op.operands):
        return None
    shape = shape_of(op.results[0].type)
    places = rule.places(op, 0) if shape else None
    if places is None or not can_read_range(op, dim, space):
        return None
    found = [points_of(access, place, dim, able) for access, place in zip(op.accesses, places, strict=True)]
    distinct = {points for points in found if points is not None}
    if len(distinct) != 1 or any(place.varies and points is None for place, points in zip(places, found, strict=True)):
        return None
    points = distinct.pop()
    return Rows(dim, points, places) if is_range_of(points, dim, op, space) else None


def points_of(access: Access, place: Along, dim: str, able: dict[SdgOp, Rows]) -> Slice | None:
    """The points of a dim that the rows of an operand are; None where they are not."""
    positions = [number for number, entry in enumerate(access.index) if is_slice(entry)]
    if not place.varies or place.axis is None:
        return None
    if place.axis < len(positions):
        position = positions[place.axis]
        entry = access.index[position]
        assert isinstance(entry, Slice)
        return entry if domain_of(access.value).dims[position] == dim and entry.step == 1 else None
    producer = access.value.owner
    rows = able.get(producer) if isinstance(producer, SdgOp) else None
    return rows.points if rows is not None and place.axis == len(positions) else None


def is_range_of(points: Slice, dim: str, op: SdgOp, space: Space) -> bool:
    """Whether a range lies within a dim, at each point of an op, and does not depend on the point."""
    from tempo_ir.index import isl

    inside = conj(compare(">=", points.start, 0), compare("<=", points.stop, space.bound(dim)))
    return not free_symbols(points) & set(space.names) and isl.prove(inside, space, op.domain)


def can_read_range(op: SdgOp, dim: str, space: Space) -> bool:
    """Whether each reader may read a range of the dim for the axis: ranges add axes in the order of the dims."""
    later = space.names[space.names.index(dim) + 1 :]
    for use in op.results[0].uses:
        user = use.operation
        if not isinstance(user, AccessOp):
            return False
        index = dict(zip(op.domain.dims, user.accesses[use.index].index, strict=True))
        if any(isinstance(index.get(name), Slice) for name in later):
            return False
    return True


def paying(able: dict[SdgOp, Rows]) -> dict[SdgOp, Rows]:
    """Those of the ops that gain: reads connect them to a row that is taken, and to no product with shared operands."""

    def neighbours(op: SdgOp) -> Iterable[SdgOp]:
        readers = [use.operation for result in op.results for use in result.uses]
        producers = [operand.owner for operand in op.operands]
        return [other for other in (*readers, *producers) if isinstance(other, SdgOp) and other in able]

    taken = reachable((op for op in able if is_taken_by_rows(op, able[op])), neighbours)
    products = reachable((op for op in able if isinstance(op, ContractOp) and saves_reads(op, able[op])), neighbours)
    return {op: rows for op, rows in able.items() if op in taken and op not in products}


def is_taken_by_rows(op: SdgOp, rows: Rows) -> bool:
    """Whether a slice takes one row at each point of the dim."""
    for use in op.results[0].uses:
        user = use.operation
        if isinstance(user, SliceOp) and rows.dim in user.domain.dims:
            entry = user.take[sum(map(is_slice, user.accesses[0].index))]
            if not isinstance(entry, Slice) and rows.dim in free_symbols(entry):
                return True
    return False


def saves_reads(op: ContractOp, rows: Rows) -> bool:
    """Whether what serves all rows of a product, and is read once, is more than a row of it (see sdg-vectorize)."""
    shared = [access for access, place in zip(op.accesses, rows.places, strict=True) if not place.varies]
    row = without_axis(shape_of(op.result.type), 0)
    return sum(elements_of(shape_of(access.type)) for access in shared) > elements_of(row)


def replace(op: SdgOp, rows: Rows, going: Container[SdgOp]) -> None:
    """The op row by row, inserted before it; whoever reads it reads the range of the rows, or the row that it takes."""
    domain = row_domain(op, rows)
    build = GraphBuilder(op, domain, op.location)
    reads = [row_of(build, access, place, rows) for access, place in zip(op.accesses, rows.places, strict=True)]
    rule = rule_of(op)
    assert rule is not None
    made = rule.row(build, op, 0, reads)
    if made.index != tuple(map(Sym, domain.dims)) or made.value.owner in [read.value.owner for read in reads]:
        made = build.copy(made)
    made.value.name_hint = op.results[0].name_hint
    redirect(op, rows, made.value, going)


def redirect(op: SdgOp, rows: Rows, made: SSAValue, going: Container[SdgOp]) -> None:
    """Whoever reads the op, and is not to be erased, reads `made`, which is its rows one by one."""
    for use in list(op.results[0].uses):
        user = use.operation
        assert isinstance(user, AccessOp)
        index = user.accesses[use.index].index
        taken = user.take[sum(map(is_slice, index))] if isinstance(user, SliceOp) and user not in going else rows.points
        point = rows.points if isinstance(taken, Slice) else rows.points.start + taken
        entries = dict(zip(op.domain.dims, index, strict=True))
        read = Access(made, tuple(point if name == rows.dim else entries[name] for name in domain_of(made).dims))
        if isinstance(user, SliceOp) and not isinstance(point, Slice):
            take_less(user, read)
        else:
            user.with_access(use.index, read.value, read.index)


def take_less(op: SliceOp, read: Access) -> None:
    """A slice that took one row is a slice of that row."""
    axis = sum(map(is_slice, read.index))
    take = (*op.take[:axis], *op.take[axis + 1 :])
    slice_ = SliceOp(read, take, domain=op.domain, result_type=as_tensor(op.result.type), location=op.location)
    block = op.parent_block()
    assert block is not None
    block.insert_op_before(slice_, op)
    slice_.result.name_hint = op.result.name_hint
    op.result.replace_all_uses_with(slice_.result)
    erase([op])
