"""
From an sdg program to the scheduler's graph: a statement per op that works, a dependence per read.

No statement: inputs and parameters (their memory is there from the start), host objects, and constants, indices and
ranges, which each reader computes in its own leaf, unless one reads them through a slice or hands them to a host call.
An output of a value at its own points is no statement either: the value is computed into the output's memory. A merge
of tokens is a statement without work: it stands for the order of host calls; so is what ends a dim by data, which the
loop over that dim reads: there are two statements of it, for the begin and the end of an iteration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from xdsl.dialects.builtin import FixedBitwidthType
from xdsl.ir import Attribute, Operation, SSAValue
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
    UntilOp,
    op_text,
)
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.dialects.sdg.until import bound_of, names_bound, until_of
from tempo_ir.dialects.types import element, shape_of
from tempo_ir.index.domain import Domain
from tempo_ir.index.expr import FALSE, TRUE, Cond, Const, Slice, Sym, conj, disj, free_symbols, negate
from tempo_ir.index.isl import domain_set
from tempo_ir.lowering.schedule.distances import happens
from tempo_ir.lowering.schedule.ending import ending_of
from tempo_ir.lowering.schedule.graph import Dependence, Graph, Relation, Statement

SOURCES = frozenset((InputOp, ParameterOp, HostStateOp))
FORMULAS = frozenset((ConstantOp, IndexOp, ArangeOp))

NOMINAL_EXTENT = 64
"""What the cost model takes a symbolic extent to be."""


@dataclass(slots=True, unsafe_hash=True)  # never changed; `frozen` would make it four times as slow to make
class Work:
    """What a statement does: an op, at some of its points; or, of a merge that was split, one case of it."""

    op: SdgOp
    case: int | None = None
    piece: Cond = TRUE

    @property
    def is_whole(self) -> bool:
        """Whether it is the op at all its points."""
        return self.case is None and self.piece == TRUE

    def domain(self) -> Domain:
        """The points at which it runs."""
        domain = self.op.domain
        if self.is_whole:
            return domain
        guard = TRUE if self.case is None else list(guarded_accesses(self.op))[self.case][1]
        return Domain(domain.dims, domain.ranges, conj(domain.where, guard, self.piece))

    def accesses(self) -> Sequence[tuple[Access, Cond]]:
        """Its reads, each with the condition under which it happens."""
        accesses = list(guarded_accesses(self.op))
        return accesses if self.case is None else [accesses[self.case]]

    def cases(self, op: MergeOp) -> list[tuple[Cond, Access]]:
        """The cases of its merge that hold at some of its points; the last one where no other does."""
        cases = list(zip(op.conds, op.accesses, strict=True))
        if self.is_whole:
            return cases
        points = self.domain()
        reached = (conj(points.where, guard) for _, guard in guarded_accesses(op))
        domains = (Domain(points.dims, points.ranges, where) for where in reached)
        return [
            case for case, domain in zip(cases, domains, strict=True) if not domain_set(op.space, domain).is_empty()
        ]


@dataclass(frozen=True)
class Statements:
    """The graph of a program with the work of each statement, and the outputs that are computed in place."""

    program: ProgramOp
    graph: Graph
    works: Sequence[Work]
    in_place: Mapping[SSAValue, OutputOp]

    @staticmethod
    def of(program: ProgramOp) -> Statements:
        """
        Read a program.

        Raises ScheduleError for a gradient that no pass has expanded.
        """
        ops = program_ops(program)
        for op in ops:
            if isinstance(op, GradOp):
                raise ScheduleError(f"{op_text(op)} is not expanded: run sdg-autodiff before sdg-schedule", op)
        in_place = _in_place(ops)
        works = [Work(op) for op in ops if _works(op, in_place)]
        works += [work for work in works if isinstance(work.op, UntilOp)]
        return Statements(program, _graph(program, works), works, in_place)

    @property
    def ops(self) -> Sequence[SdgOp]:
        """The ops that have work, in program order."""
        return list(dict.fromkeys(work.op for work in self.works))

    def split(self, numbers: Collection[int]) -> Statements | None:
        """
        The same program with a statement for each case of those merges, among some statements, that have a reader of
        only some of the cases; None if there are none.

        A value that is needed at its first point before a loop, and made in the loop at the others, has no order while
        it is one statement. Reads that never happen between the parts are no dependences.
        """
        apart = {
            dependence.producer
            for dependence in self.graph.dependences
            if dependence.consumer in numbers and dependence.producer in numbers and self._skips_a_case(dependence)
        }
        if not apart:
            return None
        works: list[Work] = []
        for number, work in enumerate(self.works):
            cases = range(len(work.op.operands))
            works += [work] if number not in apart else [Work(work.op, case, work.piece) for case in cases]
        return Statements(self.program, _graph(self.program, works), works, self.in_place)

    def cut(self, numbers: Collection[int], condition: Cond) -> Statements | None:
        """
        The same program with two statements for each among some that has points where a condition on its dims holds
        and others where it does not; None if there are none.
        """
        space = self.program.space
        dims = free_symbols(condition) & set(space.names)
        works: list[Work] = []
        for number, work in enumerate(self.works):
            sides: list[Work] = []
            if number in numbers and dims <= set(work.op.domain.dims):
                pieces = (conj(work.piece, side) for side in (condition, negate(condition)))
                sides = [Work(work.op, work.case, piece) for piece in pieces]
                sides = [side for side in sides if not domain_set(space, side.domain()).is_empty()]
            works += sides if len(sides) == 2 else [work]
        if len(works) == len(self.works):
            return None
        return Statements(self.program, _graph(self.program, works), works, self.in_place)

    def _skips_a_case(self, dependence: Dependence) -> bool:
        """Whether a read of a whole merge never sees some case of it."""
        work = self.works[dependence.producer]
        if not isinstance(work.op, MergeOp) or work.case is not None:
            return False
        read = dependence.relation
        parts = (Work(work.op, case, work.piece).domain() for case in range(len(work.op.operands)))
        relations = (Relation(read.consumer, part, read.index, read.guard) for part in parts)
        return not all(happens(self.program.space, relation) for relation in relations)


class ScheduleError(PassFailedException):
    """A program that has no order; `op` is where to show the user's line."""

    def __init__(self, message: str, op: Operation):
        super().__init__(message)
        self.op = op


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
    """
    Whether a read is computed by its reader: of a formula at or near its own point, by an op that is no host call.

    A formula read elsewhere (`%index[T - 1 - t]`) keeps a leaf of its own: dims as data count on from where a call
    resumes, which the expression of another point would not.
    """
    formula = access.value.owner
    if type(formula) not in FORMULAS or isinstance(reader, HostOp | UntilOp):
        return False
    assert isinstance(formula, SdgOp)
    entries = zip(formula.domain.dims, access.index, strict=True)
    return all(not isinstance(entry, Slice) and isinstance(entry - Sym(dim), Const) for dim, entry in entries)


@lru_cache(maxsize=4096)
def type_bytes(type: Attribute) -> int:
    """The bytes of one point of a value, symbolic extents taken as nominal; none for a token."""
    if isinstance(type, TokenType):
        return 0
    size = 1
    for extent in shape_of(type):
        size *= extent if isinstance(extent, int) else NOMINAL_EXTENT
    scalar = element(type)
    return size * (scalar.size if isinstance(scalar, FixedBitwidthType) else 4)


def _in_place(ops: Sequence[SdgOp]) -> dict[SSAValue, OutputOp]:
    """The values that an output takes as they are: all points, at the same points, not the caller's own memory."""
    found: dict[SSAValue, OutputOp] = {}
    for op in ops:
        if not isinstance(op, OutputOp):
            continue
        (access,) = op.accesses
        producer = access.value.owner
        if not isinstance(producer, SdgOp) or type(producer) in SOURCES | FORMULAS:
            continue
        same = producer.domain == op.domain and access.index == tuple(Sym(dim) for dim in op.domain.dims)
        if same and access.value not in found:
            found[access.value] = op
    return found


def _works(op: SdgOp, in_place: Mapping[SSAValue, OutputOp]) -> bool:
    if type(op) in SOURCES:
        return False
    if isinstance(op, OutputOp):
        return in_place.get(op.accesses[0].value) is not op
    if type(op) not in FORMULAS:
        return True
    readers = [(use.operation, use.index) for use in op.results[0].uses]
    return any(
        isinstance(reader, SdgOp) and not is_inline(reader.accesses[number], reader) for reader, number in readers
    )


def _graph(program: ProgramOp, works: Sequence[Work]) -> Graph:
    numbers: dict[object, list[int]] = {}
    for number, work in enumerate(works):
        numbers.setdefault(work.op, []).append(number)
    statements = [_statement(number, work) for number, work in enumerate(works)]
    dependences: list[Dependence] = []
    related = cache(Relation)  # of equal layers all are equal
    for consumer, work in zip(statements, works, strict=True):
        for access, guard in work.accesses():
            producer = access.value.owner
            if producer not in numbers or is_inline(access, work.op):
                continue
            for number in numbers[producer]:
                relation = related(consumer.domain, statements[number].domain, access.index, guard)
                if (work.is_whole and works[number].is_whole) or happens(program.space, relation):
                    dependences.append(Dependence(consumer.number, number, relation))
    graph = Graph(program.space, statements, dependences)
    until = until_of(dict.fromkeys(work.op for work in works))
    if until is None:
        return graph
    bound = bound_of(until, program.space)
    late = {number for number, work in enumerate(works) if _names_bound(work.op, bound)}
    first, last = (number for number, work in enumerate(works) if work.op is until)
    return replace(graph, ending=ending_of(graph, until.dim, bound, late, (first, last)))


def _names_bound(op: SdgOp, bound: str) -> bool:
    """Whether a leaf names a bound: its op, or a formula that it computes itself."""
    formulas = [access.value.owner for access in op.accesses if is_inline(access, op)]
    return any(isinstance(each, SdgOp) and names_bound(each, bound) for each in (op, *formulas))


def _statement(number: int, work: Work) -> Statement:
    op = work.op
    name = op.results[0].name_hint if op.results else None
    weight = sum([type_bytes(result.type) for result in op.results])
    return Statement(number, name or op_text(op), work.domain(), weight, isinstance(op, HostOp))
