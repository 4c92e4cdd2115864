"""Ops that compute the rows of another op's first axis one by one, at the points of a dim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.traits import Commutative

from tempo_ir.dialects.sdg import Access, SdgOp, domain_of
from tempo_ir.dialects.sdg.reads import holds, read_problem
from tempo_ir.index import Domain, Space, Sym
from tempo_ir.passes.building import GraphBuilder
from tempo_ir.passes.devectorize.rows import Rows, at_row, range_positions, row_domain
from tempo_ir.passes.recurrences.axes import Along, rule_of
from tempo_ir.passes.utilities import erase, identity


def twins_of(able: Mapping[SdgOp, Rows], space: Space) -> dict[SdgOp, SdgOp]:
    """Those of the ops whose rows are computed anyway, each with the op that does.

    Before, `%q` is the twin of `%p`:

        %q = sdg.exp %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
        %p = sdg.exp %x[0:T] : (tensor<?x4xf32, #sdg.size<T>>) -> tensor<?x4xf32, #sdg.size<T>>

    and what reads `%p` may read `%q[0:T]`. One after the other, so that what reads `%p` may have a twin that reads
    `%q`. One that is computed at fewer points than there are rows is then at all of them, where its operands are there.
    There is none where a row takes more than one op, such as a slice of an operand that is no range of a dim.
    """
    found: dict[SdgOp, SdgOp] = {}
    for op, rows in able.items():
        reads = [row_read(access, place, rows, found) for access, place in zip(op.accesses, rows.places, strict=True)]
        known = [read for read in reads if read is not None]
        if len(known) == len(reads) and (twin := twin_of(op, rows, known, space)) is not None:
            found[op] = twin
    return found


def row_read(access: Access, place: Along, rows: Rows, twins: Mapping[SdgOp, SdgOp]) -> Access | None:
    """What one row reads of an operand, where that is at a point of some op; None elsewhere."""
    if place.axis is None:
        return access
    if place.repeated:
        return None
    ranges = range_positions(access)
    if place.axis < len(ranges):
        return at_row(access, place.axis, rows)
    producer = access.value.owner
    if place.axis != len(ranges) or not isinstance(producer, SdgOp) or producer not in twins:
        return None
    twin = twins[producer].results[0]
    entries = dict(zip(producer.domain.dims, access.index, strict=True))
    return Access(twin, tuple(Sym(rows.dim) if dim == rows.dim else entries[dim] for dim in domain_of(twin).dims))


def twin_of(op: SdgOp, rows: Rows, reads: list[Access], space: Space) -> SdgOp | None:
    """Another op that is a row of `op`, at each point of the rows."""
    candidates = list(dict.fromkeys(_users(reads, type(op), rows.dim)))
    block = op.parent_block()
    if not candidates or block is None:
        return None
    before = op.prev_op
    rule = rule_of(op)
    assert rule is not None
    made = rule.row(GraphBuilder(op, row_domain(op, rows), op.location), op, 0, reads).value.owner
    twin: SdgOp | None = None
    if isinstance(made, SdgOp) and made.accesses:
        same = (other for other in candidates if other is not made and is_same(other, made))
        twin = next((other for other in same if reaches(other, made.domain, space)), None)
    fresh: list[SdgOp] = []
    last = op.prev_op
    while last is not None and last is not before:
        assert isinstance(last, SdgOp)
        fresh.append(last)
        last = last.prev_op
    erase(fresh)
    return twin


def _users(reads: list[Access], kind: type[SdgOp], dim: str) -> Iterator[SdgOp]:
    """The ops of a kind at the points of a dim that read what varies along it."""
    for read in reads:
        if Sym(dim) in read.index:
            for use in read.value.uses:
                if isinstance(use.operation, kind) and dim in use.operation.domain.dims:
                    yield use.operation


def is_same(op: SdgOp, other: SdgOp) -> bool:
    """Whether two ops have one value where both have one."""
    if op.domain.dims != other.domain.dims or op.attributes != other.attributes:
        return False
    if [result.type for result in op.results] != [result.type for result in other.results]:
        return False
    apart = ("domain", "indices")
    own, theirs = ({key: value for key, value in each.properties.items() if key not in apart} for each in (op, other))
    if own != theirs:
        return False
    return op.accesses == other.accesses or (op.has_trait(Commutative) and op.accesses == other.accesses[::-1])


def reaches(op: SdgOp, domain: Domain, space: Space) -> bool:
    """Whether an op has values at the points of a domain, which it is given where its operands are there."""
    if read_problem(space, domain, identity(op), op.domain) is None:
        return True
    if read_problem(space, op.domain, identity(op), domain) is not None or not holds(op, space, domain):
        return False
    for access in op.accesses:
        if read_problem(space, domain, access.index, domain_of(access.value)) is not None:
            return False
    op.domain = domain
    return True
