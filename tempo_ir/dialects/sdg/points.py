"""Needed points: an op exists at the points that something needs, and nowhere else.

Outputs need their whole domain, and so do ends of dims and host calls whose results nobody reads (they are called for
their effect); a read needs the points that it reads, at the needed points of the reader where the case holds. For given
bounds the graph of points is finite and, in a program that can run, acyclic: one set of points satisfies these rules.
Components of the graph are visited readers first. Inside a cycle the sets grow from their seeds; where they keep
growing (a recurrence that is only read at its end grows by a step at a time) the constraints that moved are dropped, as
in the widening of abstract interpretation (Cousot and Cousot 1977), and the result is exact if applying the rules again
changes nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects.sdg.attributes import TokenType
from tempo_ir.dialects.sdg.base import OpError, SdgOp, current_point, domain_of
from tempo_ir.dialects.sdg.reads import program_ops, read_domain
from tempo_ir.dialects.sdg.sources import ConstantOp
from tempo_ir.dialects.sdg.structure import GradOp, HostOp, HostStateOp, MergeOp, OutputOp, ProgramOp, UntilOp
from tempo_ir.graphs import is_cyclic, strongly_connected
from tempo_ir.index import isl
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import TRUE, And, Index, IndexExpressionError, Or, free_symbols
from tempo_ir.index.limits import MOST_OPERATIONS, TooLarge, limited

STEPS_BEFORE_WIDENING = 4
"""How often the points of an op in a cycle may grow before the constraints that move are dropped."""
STEPS_OF_REFINEMENT = 4
"""How often the rules are applied to a widened result in the hope that it becomes exact."""


@dataclass(slots=True, unsafe_hash=True)  # `frozen` would make it four times as slow to make
class Needed:
    """The needed points of an op; not `exact` if they may be more than something needs."""

    points: isl.Set
    exact: bool = True


@dataclass(slots=True, unsafe_hash=True)
class Read:
    """Operand `number` of `reader`; without an index (a gradient's loss) the whole domain is read. `same` says that
    reader and producer have the same points, and each reads its own."""

    reader: SdgOp
    number: int
    index: Index | None
    same: bool = False


class Analysis:
    """The needed points of the ops of one program, readers first; all points of host calls, if `calls_stay`."""

    def __init__(self, program: ProgramOp, *, calls_stay: bool = False):
        self.space = program.space
        self.ops = program_ops(program)
        self.roots = {op for op in self.ops if is_root(op) or (calls_stay and isinstance(op, HostOp))}
        self.reads = reads_of(self.ops)
        self.needed: dict[SdgOp, Needed] = {}
        equal: dict[Domain, Domain] = {}
        self._own = {op: equal.setdefault(domain := op.domain, domain) for op in self.ops}
        """The domains of the ops, one object for equal ones, so that tables know them by identity."""
        self._given: dict[tuple[int, tuple[str, ...]], Domain] = {}
        self._sets: dict[int, isl.Set] = {}
        self._interned: dict[str, isl.Set] = {}
        self._known: dict[int, tuple[isl.Set, isl.Set]] = {}
        self._images: dict[tuple[int, Domain, Index | None, int], isl.Set | None] = {}
        self._unions: dict[tuple[int, int], isl.Set] = {}
        self._domains: dict[tuple[int, int], Domain | None] = {}
        self._relaxed: dict[tuple[int, int], Domain | None] = {}
        self._successors = {op: [read.reader for read in reads] for op, reads in self.reads.items()}
        for component in strongly_connected(self.ops, self._readers):
            self._visit(component)

    def _readers(self, op: SdgOp) -> Sequence[SdgOp]:
        return self._successors.get(op, ())

    def _visit(self, component: Sequence[SdgOp]) -> None:
        """Find the points of a component all of whose readers outside have theirs; more if that is much work."""
        try:
            self._visit_exactly(component)
        except TooLarge:
            (op, *others) = component
            whole = {other: Needed(self._full(other), exact=False) for other in component}
            self.needed.update(whole if others else {op: Needed(self._superset(op), exact=False)})

    def _visit_exactly(self, component: Sequence[SdgOp]) -> None:
        if is_cyclic(list(component), self._readers):
            with limited(MOST_OPERATIONS * len(component)):  # each step may be small and their number great
                self._visit_cycle(component)
            return
        (op,) = component
        if (points := self._contribution(op)) is None:
            return
        self.needed[op] = Needed(points, self._readers_exact((op,)))
        if self._as_domain(points, op) is None:
            self.needed[op] = Needed(self._superset(op), exact=False)

    def _superset(self, op: SdgOp) -> isl.Set:
        """Points that hold all the needed ones of an op and have a domain: by the constraints that are common to all of
        them if the op is in no cycle, else all points."""
        try:
            with limited():
                if is_cyclic([op], self._readers) or (points := self._contribution(op)) is None:
                    return self._full(op)
                hull = self._intern(points.remove_divs().simple_hull().to_set().intersect(self._full(op)))
        except TooLarge:
            return self._full(op)
        return hull if self._as_domain(hull, op) is not None else self._full(op)

    def _visit_cycle(self, component: Sequence[SdgOp]) -> None:
        widened = self._grow(component)
        exact = self._readers_exact(component)
        if widened:
            exact = self._refine(component) and exact
        found = [op for op in component if op in self.needed]
        if any(self._as_domain(self.needed[op].points, op) is None for op in found):
            self.needed.update({op: Needed(self._full(op), exact=False) for op in component})
            return
        for op in found:
            self.needed[op] = Needed(self._intern(self.needed[op].points), exact)

    def _readers_exact(self, component: Sequence[SdgOp]) -> bool:
        readers = [reader for op in component for reader in self._readers(op)]
        return all(self.needed[reader].exact for reader in readers if reader in self.needed)

    def _grow(self, component: Sequence[SdgOp]) -> bool:
        """Add points until no rule adds any; whether constraints had to be dropped on the way."""
        positions: dict[Operation | Block, int] = {op: position for position, op in enumerate(component)}
        by_position = list(component)
        steps = dict.fromkeys(component, 0)
        waiting = list(range(len(component)))
        queued = set(waiting)
        widened = False
        while waiting:
            op = by_position[heapq.heappop(waiting)]
            queued.discard(positions[op])
            points, known = self._contribution(op), self.needed.get(op)
            if points is None or (known is not None and known.points is points):
                continue
            if known is not None:
                points = self._union(known.points, points)
                if points is known.points:
                    continue
                steps[op] += 1
                if steps[op] > STEPS_BEFORE_WIDENING:
                    with limited():
                        points, widened = self._intern(without_moving(known.points, points, self._full(op))), True
            self.needed[op] = Needed(points)
            for value in op.operands:
                if (position := positions.get(value.owner)) is not None and position not in queued:
                    heapq.heappush(waiting, position)
                    queued.add(position)
        return widened

    def _refine(self, component: Sequence[SdgOp]) -> bool:
        """Apply the rules to a result that holds all needed points and maybe more; whether they leave it as it is."""
        for _ in range(STEPS_OF_REFINEMENT):
            once = {op: self._contribution(op) for op in component if op in self.needed}
            changed = {op: points for op, points in once.items() if not self._is_known(op, points)}
            if not changed:
                return True
            for op, points in changed.items():
                if points is None:
                    del self.needed[op]
                else:
                    self.needed[op] = Needed(points)
        return False

    def _is_known(self, op: SdgOp, points: isl.Set | None) -> bool:
        with limited():
            return points is not None and points.is_equal(self.needed[op].points)

    def _contribution(self, op: SdgOp) -> isl.Set | None:
        """The points of `op` that its readers need, as far as theirs are known; None for no points."""
        total: isl.Set | None = None
        if op in self.roots:
            total = self._full(op)
            own = self._own[op]
            self._given[(id(total), own.dims)] = own
        for read in self.reads.get(op, ()):
            reader = self.needed.get(read.reader)
            if reader is None:
                continue
            image = self._image(read, reader.points, op)
            if image is not None:
                total = image if total is None else self._union(total, image)
        return total

    def _image(self, read: Read, points: isl.Set, producer: SdgOp) -> isl.Set | None:
        """The points of `producer` that a read needs, given the needed points of the reader."""
        if read.same:
            return points
        if read.index is None:
            return self._full(producer)
        consumer = read_domain(read.reader, read.number)
        key = (id(points), consumer, read.index, id(self._own[producer]))
        if key not in self._images:
            self._images[key] = self._compute_image(read, consumer, points, producer)
        return self._images[key]

    def _compute_image(self, read: Read, consumer: Domain, points: isl.Set, producer: SdgOp) -> isl.Set | None:
        if read.index is None:
            return self._full(producer)
        try:
            relation = isl.access_map(self.space, consumer, read.index, producer.domain)
        except IndexExpressionError as error:
            raise OpError(f"operand #{read.number}: {error}", read.reader) from None
        whole = self._full(producer)
        with limited():
            image = relation.intersect_domain(points).range().intersect(whole)
            return None if image.is_empty() else self._intern(image)

    def _full(self, op: SdgOp) -> isl.Set:
        domain = self._own[op]
        if (found := self._sets.get(id(domain))) is None:
            try:
                found = self._sets[id(domain)] = self._intern(isl.domain_set(self.space, domain))
            except IndexExpressionError as error:
                raise OpError(str(error), op) from None
        return found

    def _intern(self, points: isl.Set) -> isl.Set:
        """One object per set, as far as isl's normal form tells, so that equal questions are asked once."""
        known = self._known.get(id(points))
        if known is None:
            short = isl.coalesced(points)
            short = self._interned.setdefault(str(short), short)
            known = self._known[id(points)] = points, short
            self._known[id(short)] = short, short
        return known[1]

    def _union(self, first: isl.Set, second: isl.Set) -> isl.Set:
        if first is second:
            return first
        key = (id(first), id(second))
        if key not in self._unions:
            with limited():
                self._unions[key] = self._joined(first, second)
        return self._unions[key]

    def _joined(self, first: isl.Set, second: isl.Set) -> isl.Set:
        if second.is_subset(first):
            return first
        return second if first.is_subset(second) else self._intern(first.union(second))

    def domain(self, op: SdgOp) -> Domain | None:
        """The domain of exactly the needed points of `op`, or its own where there is none; None if nothing needs it.

        Raises OpError for a host call whose points have no exact domain.
        """
        needed = self.needed.get(op)
        if needed is None:
            return None
        if isinstance(op, GradOp | ConstantOp | HostStateOp):
            return op.domain  # the last two are one for the whole call, needed or not
        domain = self._as_domain(needed.points, op) if needed.exact or not isinstance(op, HostOp) else None
        if domain is None and isinstance(op, HostOp):
            raise OpError(
                "the points at which this call is needed cannot be found exactly, and it must run at no others: "
                "read its results at every point, or by simpler indices",
                op,
            )
        return op.domain if domain is None else domain

    def relaxed(self, op: SdgOp) -> Domain | None:
        """A domain of the needed points and more that is simpler to read and to loop over; None if there is none.

        Conditions on bounds alone are dropped, and so is what makes the points more than one range per dim.
        """
        needed, exact = self.needed.get(op), self.domain(op)
        if needed is None or exact is None or isinstance(op, HostOp) or is_plain(exact):
            return None
        key = (id(needed.points), id(self._own[op]))
        if key not in self._relaxed:
            try:
                with limited():
                    self._relaxed[key] = self._relax(needed.points, op)
            except TooLarge:
                self._relaxed[key] = None
        return self._relaxed[key]

    def _relax(self, points: isl.Set, op: SdgOp) -> Domain | None:
        whole = self._full(op)
        loose = points.gist_params(points.params()).intersect(whole)
        for candidate in (loose, loose.simple_hull().to_set().intersect(whole)):
            domain = self._as_domain(self._intern(candidate), op)
            if domain is not None and is_plain(domain):
                return domain
        return None

    def _as_domain(self, points: isl.Set, op: SdgOp) -> Domain | None:
        """The shortest domain known to have exactly these points, be it the op's own; None if there is none."""
        whole = self._own[op]
        key = (id(points), id(whole))
        if key not in self._domains:
            own = whole if points is self._full(op) else None
            given = self._given.get((id(points), whole.dims))
            known = [as_domain(points, whole.dims, self.space), own, given]
            found = [domain for domain in known if domain is not None]
            self._domains[key] = min(found, key=lambda domain: len(str(domain)), default=None)
        return self._domains[key]


def is_root(op: SdgOp) -> bool:
    """Whether all points of the op are needed for their own sake: an output, the end of a dim, or a host call for its
    effect alone."""
    if isinstance(op, HostOp):
        return not any(result.uses for result in op.results if not isinstance(result.type, TokenType))
    return isinstance(op, OutputOp | UntilOp)


def reads_of(ops: Iterable[SdgOp]) -> dict[SdgOp, list[Read]]:
    """For each op that some op of the program reads, the reads."""
    reads: dict[SdgOp, list[Read]] = {}

    def record(value: SSAValue, read: Read) -> None:
        if isinstance(owner := value.owner, SdgOp):
            reads.setdefault(owner, []).append(read)

    for op in ops:
        own = op.domain
        by_case = isinstance(op, MergeOp)
        for number, access in enumerate(op.accesses):
            read = domain_of(access.value)
            same = (read is own or read == own) and is_current(access.index, own)
            same = same and (not by_case or read_domain(op, number) == own)
            record(access.value, Read(op, number, access.index, same))
        if isinstance(op, GradOp):
            record(op.loss, Read(op, 0, None))
            record(op.wrt, Read(op, 1, None))
    return reads


def producers(op: SdgOp) -> list[SdgOp]:
    """The ops that `op` reads, each once."""
    owners = dict.fromkeys(value.owner for value in op.operands)
    return [owner for owner in owners if isinstance(owner, SdgOp)]


def is_current(index: Index, domain: Domain) -> bool:
    """Whether the index reads the current point of a producer over the same dims."""
    return index == current_point(domain.dims)


def without_moving(old: isl.Set, new: isl.Set, whole: isl.Set) -> isl.Set:
    """The points of `whole` that satisfy those constraints of `old` that `new`, which contains it, still satisfies."""
    result = whole
    for constraint in old.compute_divs().simple_hull().remove_unknown_divs().get_constraints():
        function = constraint.get_aff()
        zero = function.sub(function)
        halves = [function.ge_set(zero)]
        if constraint.is_equality():
            halves.append(function.le_set(zero))
        for half in halves:
            if new.is_subset(half):
                result = result.intersect(half)
    return result.union(new)


def as_domain(points: isl.Set, dims: tuple[str, ...], space: Space) -> Domain | None:
    """The domain that has exactly these points, or None."""
    try:
        with limited():
            return isl.set_to_domain(points, dims, space)
    except IndexExpressionError:
        return None


@lru_cache(maxsize=4096)
def is_plain(domain: Domain) -> bool:
    """Whether the domain is easy to loop over: no alternatives, no condition on bounds alone."""
    parts = domain.where.args if isinstance(domain.where, And) else (domain.where,)
    return domain.where == TRUE or not any(
        isinstance(part, Or) or free_symbols(part).isdisjoint(domain.dims) for part in parts
    )
