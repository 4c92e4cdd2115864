"""The two sides of a dim: what its forward recurrences need and make, and what comes of its backward recurrences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tempo_ir.dialects.sdg import (
    GradOp,
    OutputOp,
    ProgramOp,
    SdgOp,
    SourceOp,
    domain_of,
)
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.dialects.sdg.until import until_of
from tempo_ir.graphs import reachable
from tempo_ir.index import Const, Entry, Slice, Space, Sym
from tempo_ir.passes.recurrences.interleaving import Lookahead
from tempo_ir.passes.sdg_accumulate import Reduction, Whole, wholes
from tempo_ir.passes.utilities import is_slice
from tempo_ir.passes.vectorize.recurrence import distance_sign, groups_along


@dataclass(frozen=True)
class Sides:
    """The ops over a dim that can be put into blocks of its steps, and the sums over all steps of them.

    `backward` holds those that are made of a recurrence from later to earlier steps, `forward` the others.
    """

    dim: str
    forward: dict[SdgOp, None]
    backward: dict[SdgOp, None]
    totals: dict[SdgOp, Whole]

    @property
    def ops(self) -> dict[SdgOp, None]:
        """The ops of both sides."""
        return {**self.forward, **self.backward}

    def is_backward(self, total: SdgOp) -> bool:
        """Whether a sum over all steps takes rows of the backward side."""
        return any(access.value.owner in self.backward for access in total.accesses)

    def rows_read(self, op: SdgOp) -> Iterator[tuple[SdgOp, int]]:
        """What an op, or a sum over all steps, reads of the forward side a fixed number of steps from its own."""
        whole = self.totals.get(op)
        accesses = op.accesses if whole is None else whole.rows
        for access in accesses:
            producer = access.value.owner
            if isinstance(producer, SdgOp) and producer in self.forward:
                steps = shift_of(self.entry(access.value.owner, access.index), self.dim)
                if steps is not None:
                    yield producer, steps

    def entry(self, producer: object, index: Sequence[Entry]) -> Entry:
        """Where an index reads the dim."""
        assert isinstance(producer, SdgOp)
        return index[producer.domain.dims.index(self.dim)]


def shift_of(entry: Entry, dim: str) -> int | None:
    """By how many steps an entry is after the current one: -1 for `t - 1`; None where it is no fixed number."""
    if is_slice(entry):
        return None
    assert not isinstance(entry, Slice)
    distance = entry - Sym(dim)
    return distance.value if isinstance(distance, Const) else None


class NotInBlocksError(Exception):
    """Why a dim cannot be put into blocks; `op` is the op in the way, if one is."""

    def __init__(self, message: str, op: SdgOp | None = None):
        super().__init__(message)
        self.op = op


def sides_of(program: ProgramOp, dim: str) -> Sides:
    """The sides of a dim. Raises NotInBlocksError where there are not both, or where blocks would not do."""
    ops, space = program_ops(program), program.space
    until = until_of(ops)
    if until is not None and until.dim == dim:
        raise NotInBlocksError("data ends it", until)
    gradient = next((op for op in ops if isinstance(op, GradOp)), None)
    if gradient is not None:
        raise NotInBlocksError("a gradient is not expanded: run sdg-autodiff before", gradient)
    forwards, backwards = recurrences(ops, dim, space)
    if not forwards or not backwards:
        missing = "forward" if not forwards else "backward"
        raise NotInBlocksError(f"there is no {missing} recurrence along it")
    inside = {op: None for op in ops if dim in op.domain.dims and is_able(op, dim)}
    for op in (*forwards, *backwards):
        if op not in inside:
            raise NotInBlocksError("a recurrence along it reads a range of its steps", op)
    after = reachable(backwards, Lookahead(ops, dim, space).readers.__getitem__)
    forward = {op: None for op in inside if op not in after}
    backward = {op: None for op in inside if op in after}
    if crossed := next((op for op in forwards if op in backward), None):
        raise NotInBlocksError("a forward recurrence along it needs what a backward one makes", crossed)
    totals = {op: whole for op in ops if (whole := total_of(op, dim, inside)) is not None}
    return Sides(dim, forward, backward, totals)


def recurrences(ops: Sequence[SdgOp], dim: str, space: Space) -> tuple[dict[SdgOp, None], dict[SdgOp, None]]:
    """The ops that recur from earlier to later steps of a dim, and those from later to earlier ones."""
    forwards: dict[SdgOp, None] = {}
    backwards: dict[SdgOp, None] = {}
    for group, edges in groups_along(ops, dim, space):
        if all(edge.entry(dim) == Sym(dim) for edge in edges):
            continue
        for found, forward in ((forwards, True), (backwards, False)):
            if all(distance_sign(edge, dim, space, forward=forward) is not None for edge in edges):
                found.update(dict.fromkeys(group))
                break
        else:
            raise NotInBlocksError("a recurrence along it reads earlier and later steps", group[0])
    return forwards, backwards


def is_able(op: SdgOp, dim: str) -> bool:
    """Whether an op may be computed block by block: not what is the caller's, nor what reads a range of what is
    computed at the steps of the dim."""
    if isinstance(op, SourceOp | OutputOp):
        return False
    for access in op.accesses:
        producer = access.value.owner
        if isinstance(producer, SourceOp) or dim not in domain_of(access.value).dims:
            continue
        if any(is_slice(e) for d, e in zip(domain_of(access.value).dims, access.index, strict=True) if d == dim):
            return False
    return True


def total_of(op: SdgOp, dim: str, inside: dict[SdgOp, None]) -> Whole | None:
    """The range of steps whose rows, of ops in blocks, an op sums up, or reduces in another way; None if it does
    not."""
    if not isinstance(op, Reduction):
        return None
    for whole in wholes(op, dim):
        ranged = [access for access in op.accesses if dim in domain_of(access.value).dims]
        others = [access.value.owner for access in ranged if access.value.owner not in inside]
        if len(others) < len(ranged) and all(isinstance(owner, SourceOp) for owner in others):
            return whole
    return None
