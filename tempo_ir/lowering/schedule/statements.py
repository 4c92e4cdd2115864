"""
From an sdg program to the scheduler's graph: a statement per op that works, a dependence per read.

No statement: inputs and parameters (their memory is there from the start), host objects, and constants, indices and ranges,
which each reader computes in its own leaf, unless one reads them through a slice or hands them to a host call. An output
of a value at its own points is no statement either: the value is computed into the output's memory. A merge of tokens is
a statement without work: it stands for the order of host calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import FixedBitwidthType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects.sdg import (
    Access,
    ArangeOp,
    ConstantOp,
    GradOp,
    HostOp,
    HostStateOp,
    IndexOp,
    InputOp,
    MergeOp,
    OutputOp,
    ParameterOp,
    ProgramOp,
    SdgOp,
    TokenType,
    op_text,
)
from tempo_ir.dialects.types import element, shape_of
from tempo_ir.index.expr import FALSE, TRUE, Cond, Slice, Sym, conj, disj, negate
from tempo_ir.lowering.schedule.graph import Dependence, Graph, Relation, Statement

Source = InputOp | ParameterOp | HostStateOp
Formula = ConstantOp | IndexOp | ArangeOp

NOMINAL_EXTENT = 64
"""What the cost model takes a symbolic extent to be."""


@dataclass(frozen=True)
class Statements:
    """The graph of a program with the op behind each statement, and the outputs that are computed in place."""

    program: ProgramOp
    graph: Graph
    ops: Sequence[SdgOp]
    in_place: Mapping[SSAValue, OutputOp]

    @staticmethod
    def of(program: ProgramOp) -> Statements:
        """
        Read a program.

        Raises PassFailedException for a gradient that no pass has expanded.
        """
        ops = [op for op in program.body.block.ops if isinstance(op, SdgOp)]
        for op in ops:
            if isinstance(op, GradOp):
                raise failure(f"{op_text(op)} is not expanded: run sdg-autodiff before sdg-schedule", op)
        in_place = _in_place(ops)
        working = [op for op in ops if _works(op, in_place)]
        numbers = {op: number for number, op in enumerate(working)}
        statements = [_statement(number, op) for number, op in enumerate(working)]
        dependences = [dependence for op in working for dependence in _dependences(op, numbers, statements)]
        return Statements(program, Graph(program.space, statements, dependences), working, in_place)


def failure(message: str, op: SdgOp | None) -> PassFailedException:
    """An error of scheduling, at the user's line of an op."""
    error = PassFailedException(message)
    if op is not None:
        error.op = op  # pyright: ignore[reportAttributeAccessIssue]
    return error


def guarded_accesses(op: SdgOp) -> Iterator[tuple[Access, Cond]]:
    """The reads of an op, each with the condition under which it happens: of a merge the first case that holds."""
    if not isinstance(op, MergeOp):
        for access in op.accesses:
            yield access, TRUE
        return
    earlier: Cond = FALSE
    for access, cond in zip(op.accesses, op.conds, strict=True):
        yield access, conj(cond, negate(earlier))
        earlier = disj(earlier, cond)


def is_inline(access: Access, reader: SdgOp) -> bool:
    """Whether a read is computed by its reader: of a formula at a point, by an op that is no host call."""
    if not isinstance(access.value.owner, Formula) or isinstance(reader, HostOp):
        return False
    return not any(isinstance(entry, Slice) for entry in access.index)


def value_bytes(value: SSAValue) -> int:
    """The bytes of one point of a value, symbolic extents taken as nominal; none for a token."""
    if isinstance(value.type, TokenType):
        return 0
    size = 1
    for extent in shape_of(value.type):
        size *= extent if isinstance(extent, int) else NOMINAL_EXTENT
    scalar = element(value.type)
    return size * (scalar.size if isinstance(scalar, FixedBitwidthType) else 4)


def _in_place(ops: Sequence[SdgOp]) -> dict[SSAValue, OutputOp]:
    """The values that an output takes as they are: all points, at the same points, not the caller's own memory."""
    found: dict[SSAValue, OutputOp] = {}
    for op in ops:
        if not isinstance(op, OutputOp):
            continue
        (access,) = op.accesses
        producer = access.value.owner
        if not isinstance(producer, SdgOp) or isinstance(producer, Source | Formula):
            continue
        same = producer.domain == op.domain and access.index == tuple(Sym(dim) for dim in op.domain.dims)
        if same and access.value not in found:
            found[access.value] = op
    return found


def _works(op: SdgOp, in_place: Mapping[SSAValue, OutputOp]) -> bool:
    if isinstance(op, Source):
        return False
    if isinstance(op, OutputOp):
        return in_place.get(op.accesses[0].value) is not op
    if not isinstance(op, Formula):
        return True
    readers = [(use.operation, use.index) for use in op.results[0].uses]
    return any(
        isinstance(reader, SdgOp) and not is_inline(reader.accesses[number], reader) for reader, number in readers
    )


def _statement(number: int, op: SdgOp) -> Statement:
    name = op.results[0].name_hint if op.results else None
    weight = sum(value_bytes(result) for result in op.results)
    return Statement(number, name or op_text(op), op.domain, weight, isinstance(op, HostOp))


def _dependences(op: SdgOp, numbers: Mapping[SdgOp, int], statements: Sequence[Statement]) -> Iterator[Dependence]:
    consumer = statements[numbers[op]]
    for access, guard in guarded_accesses(op):
        producer = access.value.owner
        if not isinstance(producer, SdgOp) or producer not in numbers or is_inline(access, op):
            continue
        relation = Relation(consumer.domain, producer.domain, access.index, guard)
        yield Dependence(consumer.number, numbers[producer], relation)
