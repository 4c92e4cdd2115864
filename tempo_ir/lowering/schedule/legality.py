# pyright: basic
"""
Proof that a loop program computes an sdg program: on every compile, with no code in common with the scheduler.

It is given the two programs and the claim which op each leaf computes, and takes iteration domains and order from what
was read back of the loop program (`lowering.instances`). It proves, for all sizes that the program admits:

- each leaf is its op at the point that it states (`bodies`): it reads and writes the rows of the op, of a merge of the
  first case that holds there;
- each point of each op's domain runs exactly once;
- each point that an op reads has run before;
- a loop that data ends does so where the program says, and nothing before its end names the bound that it gives: that
  is a rule of the loop dialect (`dialects.loop.ending`), which is asked here too.

Questions are asked once per pattern of loops, point and index, so that the equal layers of a network cost one
question. Translation validation after Pnueli, Siegel and Singerman (1998); lexicographic order of instances as in
Feautrier (1992).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.loop import AccessOperation, BodyOperation, ForOp, FreeOp
from tempo_ir.dialects.loop import HostOp as LoopHostOp
from tempo_ir.dialects.loop import ProgramOp as LoopProgramOp
from tempo_ir.dialects.loop.ending import verify_ending
from tempo_ir.dialects.sdg import (
    Access,
    HostOp,
    HostStateOp,
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
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import TRUE, Cond, Const, Expr, Index, Slice, Sym, conj, negate, substitute
from tempo_ir.index.hashing import HashedOnce
from tempo_ir.index.isl import (
    Map,
    Set,
    access_map,
    coalesced,
    counterexample,
    domain_set,
    params_set,
)
from tempo_ir.lowering.instances import Frame, Instance, common_loops, instances
from tempo_ir.lowering.proofs import IllegalError
from tempo_ir.lowering.schedule.bodies import FORMULAS, At, is_body_of, is_copy, is_formula_at
from tempo_ir.lowering.schedule.timeline import Timeline, named

SOURCES = (InputOp, ParameterOp, HostStateOp)


class IllegalScheduleError(IllegalError):
    """A loop program that does not compute what it should: a fault of the compiler. `op` is the sdg op concerned."""

    def __init__(self, message: str, op: SdgOp):
        super().__init__(f"internal error, illegal schedule: {message}", op)


@dataclass(frozen=True)
class Claim:
    """Which sdg op each leaf of a loop program is said to compute, and in which buffer each value is said to be."""

    source: ProgramOp
    origins: Mapping[Operation, SdgOp]
    memory: Mapping[SSAValue, SSAValue]


@dataclass(slots=True, eq=False)
class Leaf:
    """
    A leaf, or the end of a loop, as it stands, and the sdg op that it is said to compute.

    `point` is that of the op's domain which it states.
    """

    instance: Instance
    source: SdgOp
    point: tuple[Expr, ...]

    @property
    def frame(self) -> Frame:
        """The loops and guards round it."""
        return self.instance.frame

    @property
    def pattern(self) -> tuple[Frame, tuple[Expr, ...]]:
        """What decides which points run when, but for the place."""
        return self.instance.frame, self.point


def check_schedule(program: LoopProgramOp, claim: Claim, read: Sequence[Instance] | None = None) -> None:
    """
    Prove that a loop program, of which `read` was read, runs every op of its source at every point, once, after what it
    reads.

    Raises IllegalScheduleError with the op and a point where that is not so.
    """
    if program.ending is not None:
        verify_ending(program, program.ending)
    checker = _Checker(claim, Timeline(claim.source.space))
    leaves: dict[SdgOp, list[Leaf]] = {}
    for instance in instances(program) if read is None else read:
        if isinstance(instance.op, FreeOp):
            continue
        leaf = Leaf(instance, claim.origins[instance.op], _point(instance.op))
        leaves.setdefault(leaf.source, []).append(leaf)
        checker.check_accesses(leaf)
    for op in claim.source.body.block.ops:
        if isinstance(op, SdgOp) and op in leaves:
            checker.check_once(op, leaves[op])
        elif isinstance(op, SdgOp) and _must_run(op, claim) and _has_points(op, claim):
            raise IllegalScheduleError(f"{op_text(op)} never runs", op)
    for op, consumers in leaves.items():
        for dependence in _dependences(op):
            for producer in leaves.get(dependence.producer, ()):
                for consumer in consumers:
                    checker.check_order(dependence, consumer, producer)


def _point(op: Operation) -> tuple[Expr, ...]:
    """Where a leaf says that it stands, over the iterators; the iterator where a loop ends."""
    if isinstance(op, AccessOperation):
        return tuple([value for _, value in op.point])
    assert isinstance(op, ForOp)
    return (Sym(op.iterator),)


def _has_points(op: SdgOp, claim: Claim) -> bool:
    """Whether the op has a point for some bounds."""
    return not domain_set(claim.source.space, op.domain).is_empty()


def _must_run(op: SdgOp, claim: Claim) -> bool:
    """Whether an op has work of its own: no source, no order of tokens, and not computed by its readers or in place."""
    if isinstance(op, OutputOp):
        (access,) = op.accesses
        same_points = access.index == tuple(Sym(dim) for dim in op.domain.dims)
        buffer = claim.memory.get(access.value)
        return not same_points or buffer is None or op.key.data not in _output_keys(buffer)
    if isinstance(op, SOURCES) or (isinstance(op, MergeOp) and isinstance(op.result.type, TokenType)):
        return False
    return type(op) not in FORMULAS or op.results[0] in claim.memory


def _output_keys(buffer: SSAValue) -> tuple[str, ...]:
    owner = buffer.owner
    key = getattr(owner, "key", None)
    return () if key is None else (key.data,)


@dataclass(frozen=True)
class Step(HashedOnce):
    """A read: the points of `producer` at `index`, from the points of `consumer` where `guard` holds."""

    consumer: Domain
    guard: Cond
    index: Index
    producer: Domain

    __hash__ = HashedOnce.__hash__

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(consumer: Domain, guard: Cond, index: Index, producer: Domain) -> Step:
        """The one step, which equal layers share."""
        return Step(consumer, guard, index, producer)


@dataclass(slots=True, unsafe_hash=True)  # never changed; `frozen` would make it four times as slow to make
class Dependence:
    """What an op needs of another; more than one step where only the order of tokens lies between."""

    producer: SdgOp
    steps: tuple[Step, ...]


def _dependences(op: SdgOp) -> Iterator[Dependence]:
    for access, step in _steps(op):
        producer = access.value.owner
        if not isinstance(producer, SdgOp) or _is_formula(access, op):
            continue
        yield from _through_tokens(producer, (step,), frozenset())


def _through_tokens(op: SdgOp, steps: tuple[Step, ...], passed: frozenset[SdgOp]) -> Iterator[Dependence]:
    """The op itself, or what is behind it where it only selects a token."""
    if not isinstance(op, MergeOp) or not isinstance(op.result.type, TokenType):
        yield Dependence(op, steps)
        return
    if op in passed:
        raise IllegalScheduleError(f"the order of calls goes round {op_text(op)} without a call: it has no proof", op)
    for access, step in _steps(op):
        producer = access.value.owner
        if isinstance(producer, SdgOp):
            yield from _through_tokens(producer, (*steps, step), passed | {op})


def _steps(op: SdgOp) -> Iterator[tuple[Access, Step]]:
    """The reads of an op; of a merge each where no earlier case holds."""
    cases = _first_cases(op) if isinstance(op, MergeOp) else ((access, TRUE) for access in op.accesses)
    for access, guard in cases:
        producer = access.value.owner
        if isinstance(producer, SdgOp):
            yield access, Step.of(op.domain, guard, access.index, producer.domain)


def _is_formula(access: Access, reader: SdgOp) -> bool:
    """Whether a reader computes what it reads itself: a formula at a constant distance from its own point."""
    formula = access.value.owner
    if type(formula) not in FORMULAS or isinstance(reader, HostOp):
        return False
    assert isinstance(formula, SdgOp)
    for dim, entry in zip(formula.domain.dims, access.index, strict=True):
        if isinstance(entry, Slice) or not isinstance(entry - Sym(dim), Const):
            return False
    return True


@dataclass
class _Checker:
    """The questions of one program; `answers` remembers those that were asked."""

    claim: Claim
    timeline: Timeline
    answers: dict[object, Set | None] = field(default_factory=dict)
    maps: dict[object, Map] = field(default_factory=dict)
    places: dict[object, At] = field(default_factory=dict)

    @property
    def space(self) -> Space:
        """The dims and bounds of the program."""
        return self.timeline.space

    def check_accesses(self, found: Leaf) -> None:
        """The leaf works on the rows that its op names at the point."""
        leaf, op = found.instance.op, found.source
        if isinstance(leaf, ForOp):
            self._check_end(leaf, op)
            return
        assert isinstance(leaf, AccessOperation)
        if leaf.point not in self.places:
            self.places[leaf.point] = At(dict(leaf.point))
        there = self.places[leaf.point]
        if tuple(there.bindings) != op.domain.dims:
            raise IllegalScheduleError(f"a leaf of {op_text(op)} does not state its point", op)
        self._check_writes(found)
        reads = [(read.buffer, read.index) for read in found.instance.reads]
        if isinstance(op, HostOp):
            form = None if op.vectorized is None else op.vectorized.at(there.bindings)
            called = isinstance(leaf, LoopHostOp) and (leaf.method, leaf.vectorized) == (op.callee, form)
            if not called or reads != [self._row(access, there) for access in op.accesses[:-1]]:
                raise IllegalScheduleError(f"{op_text(op)} is called with other arguments", op)
            return
        if not isinstance(op, MergeOp):
            accesses = op.accesses
            rows = [None if _is_formula(access, op) else self._row(access, there) for access in accesses]
            if {*reads} != {row for row in rows if row is not None}:
                raise IllegalScheduleError(f"a leaf of {op_text(op)} reads other rows", op)
            expected = list(zip(accesses, rows, strict=True))
            if not isinstance(leaf, BodyOperation) or not is_body_of(found.instance, op, expected, there):
                raise IllegalScheduleError(f"a leaf of {op_text(op)} at {leaf.point_attr} computes something else", op)
            return
        self._check_case(found, leaf, op, there, set(reads))

    def _check_end(self, loop: ForOp, op: SdgOp) -> None:
        """A loop that data ends gives the bound of the dim that its op ends, and reads the rows of the op."""
        right = isinstance(op, UntilOp) and self.space.bound(op.dim) == Sym(loop.gives or "")
        if not right or loop.until != self._row(op.accesses[0], At({op.domain.dims[0]: Sym(loop.iterator)})):
            raise IllegalScheduleError(f"a loop does not end as {op_text(op)} says", op)

    def _check_writes(self, leaf: Leaf) -> None:
        op = leaf.source
        writes = [(write.buffer, write.index) for write in leaf.instance.writes]
        if isinstance(op, OutputOp):
            right = len(writes) == 1 and _output_keys(writes[0][0]) == (op.key.data,) and writes[0][1] == leaf.point
        else:
            results = [result for result in op.results if not isinstance(result.type, TokenType)]
            right = writes == [(self.claim.memory[result], leaf.point) for result in results]
        if not right:
            raise IllegalScheduleError(f"a leaf of {op_text(op)} writes other rows", op)

    def _check_case(
        self,
        found: Leaf,
        leaf: AccessOperation,
        op: MergeOp,
        there: At,
        reads: set[object],
    ) -> None:
        """The case that the leaf copies is the first that holds wherever the leaf runs."""
        if not isinstance(leaf, BodyOperation) or not is_copy(leaf):
            raise IllegalScheduleError(f"a leaf of {op_text(op)} at {leaf.point_attr} computes something else", op)
        chosen: list[Cond] = []
        for access, cond in _first_cases(op):
            if _is_formula(access, op):
                fits = not reads and _same_formula(access, leaf, there)
            else:
                fits = reads == {self._row(access, there)}
            if fits:
                chosen.append(substitute(cond, there.bindings))
        frame = found.frame
        key = ("case", frame, tuple(chosen))
        if key not in self.answers:
            outside = conj(frame.holds, *(negate(cond) for cond in chosen))
            self.answers[key] = self.timeline.points(frame.iterators, outside)
        self._refuse(self.answers[key], frame.iterators, f"{op_text(op)} takes the wrong case", op)

    def _row(self, access: Access, there: At) -> tuple[SSAValue, Index]:
        return self.claim.memory[access.value], there.rows(access.index)

    def check_once(self, op: SdgOp, leaves: Sequence[Leaf]) -> None:
        """The leaves of an op together run each point of its domain once."""
        key = ("once", op.domain, *[leaf.pattern for leaf in leaves])
        if key not in self.answers:
            self.answers[key] = self._not_once(op.domain, leaves)
        self._refuse(self.answers[key], op.domain.dims, f"{op_text(op)} does not run exactly once", op)

    def _not_once(self, domain: Domain, leaves: Sequence[Leaf]) -> Set | None:
        """Points that run twice, never, or outside of the domain; None if there are none."""
        wanted = domain_set(self.space, domain)
        seen = wanted.subtract(wanted)
        for leaf in leaves:
            runs = self.timeline.runs(*leaf.pattern)
            # the formula alone mostly tells two iterations apart, and isl answers that at once
            formula = self.timeline.function(leaf.frame.iterators, leaf.point)
            if not (formula.is_injective() or runs.is_injective()):
                return runs.range()
            points = runs.range()
            if not seen.is_disjoint(points):
                return seen.intersect(points)
            seen = coalesced(seen.union(points))
        wrong = wanted.subtract(seen).union(seen.subtract(wanted))
        return None if wrong.is_empty() else wrong

    def check_order(self, dependence: Dependence, consumer: Leaf, producer: Leaf) -> None:
        """Every point that is read has run before its reader."""
        common = common_loops(consumer.instance, producer.instance)
        first = producer.instance.time[common] < consumer.instance.time[common]
        key = ("order", dependence.steps, consumer.pattern, producer.pattern, common, first)
        if key not in self.answers:
            self.answers[key] = self._late(dependence, consumer, producer, common, first)
        if self.answers[key] is not None:
            message = f"{op_text(consumer.source)} runs before {op_text(producer.source)}, which it reads"
            self._refuse(self.answers[key], consumer.source.domain.dims, message, consumer.source)

    def _late(self, dependence: Dependence, consumer: Leaf, producer: Leaf, common: int, first: bool) -> Set | None:
        """Points of the consumer that read what has not run; None if there are none."""
        reads = self.reads(dependence.steps)
        times = [
            coalesced(self.timeline.runs(*each.pattern).reverse().apply_range(self.timeline.time(each.frame, common)))
            for each in (consumer, producer)
        ]
        # isl takes as much work as there are pairs of pieces
        pairs = coalesced(coalesced(reads.apply_domain(times[0])).apply_range(times[1]))
        space = pairs.get_space().domain()
        order = Map.lex_lt(space) if first else Map.lex_le(space)
        late = pairs.intersect(order).intersect_params(params_set(self.space))
        if late.is_empty():
            return None
        return reads.intersect(times[0].apply_range(late).apply_range(times[1].reverse())).domain()

    def reads(self, steps: tuple[Step, ...]) -> Map:
        """From each point of a consumer to the points that it reads, through all steps."""
        if steps not in self.maps:
            whole = domain_set(self.space, steps[0].consumer).identity()
            for step in steps:
                inside = Domain(step.consumer.dims, step.consumer.ranges, conj(step.consumer.where, step.guard))
                read = access_map(self.space, inside, step.index, step.producer)
                whole = whole.apply_range(read.intersect_range(domain_set(self.space, step.producer)))
            self.maps[steps] = coalesced(whole)
        return self.maps[steps]

    def _refuse(self, points: Set | None, dims: Sequence[str], message: str, op: SdgOp) -> None:
        if points is not None and not points.is_empty():
            raise IllegalScheduleError(f"{message}: {counterexample(named(points, dims))}", op)


def _first_cases(op: MergeOp) -> Iterator[tuple[Access, Cond]]:
    """Each case with the condition that it is the first to hold."""
    earlier: list[Cond] = []
    for access, cond in zip(op.accesses, op.conds, strict=True):
        yield access, conj(cond, *(negate(other) for other in earlier))
        earlier.append(cond)


def _same_formula(access: Access, leaf: AccessOperation, there: At) -> bool:
    """Whether a leaf that copies a formula has the formula of the case in its body."""
    formula, found = access.value.owner, leaf.regions[0].block.first_op
    assert isinstance(formula, SdgOp)
    return found is not None and is_formula_at(found, formula, there.rows(access.index))
