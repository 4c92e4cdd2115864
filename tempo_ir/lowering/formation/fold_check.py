"""
Proof that leaves with folds compute what the loops computed whose place they took, with no code in common with them.

It is given what the program was before and the claim which loop each such leaf stands for, and proves:

- all else runs as it did, in its order; a leaf with a fold runs wherever its loop did, in its place;
- the body of a fold does what the leaves of one iteration did, op by op: each operand is what was carried into the
  iteration, what a leaf of it made, or the very rows that the leaf read, taken from what the fold reads at once;
- in each iteration of the fold these leaves ran; what is carried starts as the first iteration did, and goes on from
  one iteration to the next; the rows written are those of the iteration after the last;
- what the leaf reads, and what others read of the rows that the loop wrote, is inside of its buffer and written before.

Values are compared backwards from what is written; questions about points and rows go to isl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.loop import AllocOp, BufferAccess, ForOp, InputOp, ParameterOp, ProgramOp
from tempo_ir.dialects.sdg.attributes import EntryAttr, IndexAttr
from tempo_ir.dialects.sdg.locations import value_text
from tempo_ir.dialects.types import shape_of
from tempo_ir.index.expr import TRUE, Const, Entry, Index, Slice, Sym, as_expr, compare, conj, minimum, substitute
from tempo_ir.lowering.bounds import check_bounds_of
from tempo_ir.lowering.formation.before import AT_A_POINT, Before, IllegalKernelError, Inner, Work, row_text, work_of
from tempo_ir.lowering.formation.points import Points, read_before_written
from tempo_ir.lowering.instances import Instance, instances


def check_folds(program: ProgramOp, before: Before, loops: Mapping[Operation, ForOp]) -> Before:
    """
    Prove that a program does what it did; `loops` holds for each new leaf with a fold the loop whose place it took.

    Returns what is noted of the program as it is now.

    Raises IllegalKernelError, or OutOfBoundsError, with the leaf and the rows concerned.
    """
    if not loops:
        return before
    after = instances(program)
    _check_order(after, before, loops)
    folds = [instance for instance in after if instance.op in loops]
    check_bounds_of(folds, program.space)
    everywhere = Points(program.space, (), TRUE)
    written: set[SSAValue] = set()
    for instance in folds:
        fold = _Fold(instance, loops[instance.op], before, everywhere.of(instance))
        fold.check()
        written.update(fold.writers)
    for instance in after:
        for read in instance.reads:
            given = isinstance(read.buffer.owner, InputOp | ParameterOp)
            if given or (read.buffer not in written and instance.op not in loops):
                continue
            if (fault := read_before_written(instance, read.buffer, read.index, after, program.space)) is not None:
                row = row_text(read.buffer, read.index)
                text = f"{work_of(instance).text} reads {row}, which is not written before"
                raise IllegalKernelError(f"{text}: {fault}", instance.op)
    now = {instance.op: instance for instance in after}
    work = {op: work_of(instance) if op in loops else before.work[op] for op, instance in now.items()}
    return Before(now, work, before.buffers)


def _check_order(after: Sequence[Instance], before: Before, loops: Mapping[Operation, ForOp]) -> None:
    """What is no fold runs as it did; a leaf with a fold stands where its loop stood."""
    leaf_of = {loop: leaf for leaf, loop in loops.items()}
    expected: dict[Operation, tuple[ForOp, ...]] = {}
    for op, origin in before.instances.items():
        depth = next((depth for depth, loop in enumerate(origin.loops) if loop in leaf_of), None)
        if depth is None:
            expected[op] = origin.loops
        else:
            expected.setdefault(leaf_of[origin.loops[depth]], origin.loops[:depth])
    for instance, (op, outer) in zip(after, expected.items(), strict=False):
        same = len(outer) == len(instance.loops) and all(a is b for a, b in zip(outer, instance.loops, strict=True))
        if instance.op is not op or not same:
            raise IllegalKernelError(f"{work_of(instance).text} does not stand where it did", instance.op)
        if op in loops:
            continue
        if instance.frame != before.instances[op].frame or work_of(instance) != before.work[op]:
            raise IllegalKernelError(f"{before.work[op].text} is not what it was", op)
    if len(after) != len(expected):
        raise IllegalKernelError("an operation is new, or lost", after[0].op)


@dataclass
class _Fold:
    """A leaf with a fold beside the leaves of the loop that it stands for."""

    instance: Instance
    loop: ForOp
    before: Before
    outer: Points
    writers: dict[SSAValue, list[Operation]] = field(default_factory=dict[SSAValue, list[Operation]])
    """The leaves of the loop, by what they write."""
    carried: dict[int, tuple[SSAValue, Work]] = field(default_factory=dict[int, tuple[SSAValue, Work]])
    """By the number of what is carried the buffer whose row it is at the start of an iteration, and its first leaf."""
    ran: set[Operation] = field(default_factory=set[Operation])
    waiting: list[tuple[Operation, SSAValue, SSAValue]] = field(
        default_factory=list[tuple[Operation, SSAValue, SSAValue]]
    )
    """Values of leaves, and those of the fold that are to be the same in each iteration."""

    def __post_init__(self) -> None:
        self.work = work_of(self.instance)
        for op, origin in self.before.instances.items():
            if not any(loop is self.loop for loop in origin.loops):
                continue
            if origin.loops[-1] is not self.loop or origin.frame.iterators[-1] != self.loop.iterator:
                self.fail(f"{self.before.work[op].text} is no leaf of the loop")
            for write in self.before.work[op].writes:
                self.writers.setdefault(write.buffer, []).append(op)
        if [inner.name for inner in self.work.body] != ["loop.fold"]:
            self.fail("there is more than the fold")
        (self.fold,) = self.work.body
        iterator, count = self.fold.properties["iterator"], self.fold.properties["count"]
        assert isinstance(iterator, StringAttr)
        assert isinstance(count, EntryAttr)
        assert not isinstance(count.data, Slice)
        self.name, self.count = iterator.data, count.data
        self.steps = self.outer.within(self.name, 0, self.count)

    def fail(self, message: str) -> NoReturn:
        """Raise the error."""
        raise IllegalKernelError(f"the fold of {self.work.text}: {message}", self.instance.op)

    def check(self) -> None:
        """Prove that the fold computes what the loop did. Raises IllegalKernelError."""
        if self.name != self.loop.iterator or any(not isinstance(buffer.owner, AllocOp) for buffer in self.writers):
            self.fail("it is not the loop")
        if (fault := self.outer.fault(compare(">=", self.count, 0))) is not None:
            self.fail(f"a number of iterations is negative: {fault}")
        for write, value in zip(self.work.writes, self.work.yielded, strict=True):
            if value not in self.fold.results:
                self.fail(f"{row_text(write.buffer, write.index)} is not carried")
            first = self._carry(self.fold.results.index(value), write.buffer)
            last = substitute(first.writes[0].index, {self.name: self.count})
            if write.type != first.writes[0].type or not _is_same(write.index, last, self.outer):
                self.fail(f"{row_text(write.buffer, write.index)} is not of the last iteration")
        seen: set[tuple[SSAValue, SSAValue]] = set()
        while self.waiting:
            leaf, old, new = self.waiting.pop()
            if (old, new) not in seen:
                seen.add((old, new))
                self._check_value(leaf, old, new)

    # -- what is carried

    def _carry(self, number: int, buffer: SSAValue) -> Work:
        """What is carried is the row of a buffer, from iteration to iteration; gives the leaf that makes the first."""
        if number in self.carried:
            known, first = self.carried[number]
            if known is not buffer:
                self.fail(f"one value is carried as {value_text(known)} and as {value_text(buffer)}")
            return first
        first, following = self._cases(buffer)
        self.carried[number] = buffer, first
        (start,), (before,) = first.reads, following.reads
        taken = self._read(self.fold.operands[number])
        if taken.buffer is not start.buffer or taken.type != start.type:
            self.fail(f"it does not start with {row_text(start.buffer, start.index)}")
        if not _is_same(taken.index, substitute(start.index, {self.name: Const(0)}), self.outer):
            self.fail(f"it does not start with {row_text(start.buffer, start.index)}")
        maker, write, value = self._made(before.buffer)
        made = substitute(write.index, {self.name: Sym(self.name) - 1})
        later = self.outer.within(self.name, 1, self.count + 1)
        if write.type != before.type or not _is_same(before.index, made, later):
            self.fail(f"{row_text(before.buffer, before.index)} is not what the iteration before made")
        self._expect(maker, value, self.fold.yielded[number])
        return first

    def _cases(self, buffer: SSAValue) -> tuple[Work, Work]:
        """The leaves that copy what is carried: in the first iteration, and in those after it."""
        leaves = self.writers.get(buffer, [])
        works = [self.before.work[op] for op in leaves]
        copies = all(not work.body and work.yielded == work.arguments and len(work.reads) == 1 for work in works)
        if len(leaves) != 2 or not copies or works[0].writes[0].index != works[1].writes[0].index:
            self.fail(f"{value_text(buffer)} is not carried by the loop")
        needed = self.count + 1 if any(write.buffer is buffer for write in self.work.writes) else self.count
        for one, other in ((0, 1), (1, 0)):
            start, later = self.outer.within(self.name, 0, minimum(1, needed)), self.outer.within(self.name, 1, needed)
            first, following = (self.before.instances[leaves[number]].frame.holds for number in (one, other))
            if start.fault(first) is None and later.fault(following) is None:
                return works[one], works[other]
        self.fail(f"{value_text(buffer)} is not made in each iteration")

    def _made(self, buffer: SSAValue) -> tuple[Operation, BufferAccess, SSAValue]:
        """The one leaf of the loop that writes a buffer, the rows, and the value."""
        leaves = self.writers.get(buffer, [])
        if len(leaves) != 1:
            self.fail(f"{value_text(buffer)} is not made by one leaf of the loop")
        work = self.before.work[leaves[0]]
        for write, value in zip(work.writes, work.yielded, strict=True):
            if write.buffer is buffer:
                return leaves[0], write, value
        self.fail(f"{value_text(buffer)} is not written")

    def _read(self, operand: SSAValue) -> BufferAccess:
        """What the fold is given."""
        if operand not in self.work.arguments:
            self.fail("it is given what is not read")
        return self.work.reads[self.work.arguments.index(operand)]

    # -- values

    def _expect(self, leaf: Operation, old: SSAValue, new: SSAValue) -> None:
        """A value of a leaf is to be one in the fold, in each iteration of the fold."""
        if old.type != new.type:
            self.fail(f"a value of {self.before.work[leaf].text} has another type")
        if leaf not in self.ran:
            self.ran.add(leaf)
            if (fault := self.steps.fault(self.before.instances[leaf].frame.holds)) is not None:
                self.fail(f"{self.before.work[leaf].text} did not run: {fault}")
        self.waiting.append((leaf, old, new))

    def _check_value(self, leaf: Operation, old: SSAValue, new: SSAValue) -> None:
        work = self.before.work[leaf]
        if old in work.arguments:
            self._check_read(work, work.reads[work.arguments.index(old)], new)
            return
        mine, theirs = _maker(work.body, old), _maker(self.fold.body, new)
        if mine is None or theirs is None or mine.name in AT_A_POINT or not _computes_alike(mine, theirs, old, new):
            self.fail(f"it does not compute what {work.text} does")
        for operand, other in zip(mine.operands, theirs.operands, strict=True):
            self._expect(leaf, operand, other)

    def _check_read(self, work: Work, access: BufferAccess, new: SSAValue) -> None:
        """A value is what a leaf read: carried, made in the iteration, or of rows that were there."""
        text = row_text(access.buffer, access.index)
        if new.type != access.type:
            self.fail(f"{text} is read with another type by {work.text}")
        starts = self.fold.arguments[: len(self.fold.results)]
        if access.buffer not in self.writers:
            if new in starts or not self._is_taken(access, new):
                self.fail(f"{text}, which {work.text} reads, is not what it takes")
        elif new in starts:
            first = self._carry(starts.index(new), access.buffer)
            if first.writes[0].type != access.type or not _is_same(access.index, first.writes[0].index, self.steps):
                self.fail(f"{text}, which {work.text} reads, is not what is carried")
        else:
            maker, write, value = self._made(access.buffer)
            if not _is_same(access.index, write.index, self.steps):
                self.fail(f"{text}, which {work.text} reads, is of another iteration")
            self._expect(maker, value, new)

    def _is_taken(self, access: BufferAccess, new: SSAValue) -> bool:
        """Whether a value is of the very rows of an access: all that the fold reads of a buffer, or a part of it."""
        take: Index | None = None
        if new not in self.fold.arguments:
            part = _maker(self.fold.body, new)
            if part is None or part.name != "sdg.slice" or part.operands[0] not in self.fold.arguments:
                return False
            (new,) = part.operands
            taken = part.properties["take"]
            assert isinstance(taken, IndexAttr)
            take = taken.data
        whole = self._read(self.fold.operands[self.fold.arguments.index(new)])
        if whole.buffer is not access.buffer:
            return False
        rows = whole.index if take is None else self._rows(whole, take)
        return rows is not None and _is_same(rows, access.index, self.steps)

    def _rows(self, whole: BufferAccess, take: Index) -> Index | None:
        """The rows of a part of what the fold reads; None where it is not inside of it, or not of whole rows."""
        entries: list[Entry] = []
        parts = iter(zip(take, shape_of(whole.type), strict=True))
        for entry in whole.index:
            if not isinstance(entry, Slice):
                entries.append(entry)
                continue
            part, extent = next(parts)
            first, end = (part.start, part.stop) if isinstance(part, Slice) else (part, part + 1)
            inside = conj(compare(">=", first, 0), compare("<=", end, as_expr(extent)))
            if self.steps.fault(inside) is not None:
                return None
            start = entry.start + first * entry.step
            if isinstance(part, Slice):
                entries.append(Slice(start, start, entry.step * part.step))
            else:
                entries.append(start)
        if any(part != Slice(Const(0), as_expr(extent)) for part, extent in parts):
            return None
        return tuple(entries)


def _maker(body: Sequence[Inner], value: SSAValue) -> Inner | None:
    return next((inner for inner in body if value in inner.results), None)


def _computes_alike(mine: Inner, theirs: Inner, old: SSAValue, new: SSAValue) -> bool:
    same = (mine.name, mine.properties, mine.attributes, mine.types) == (
        theirs.name,
        theirs.properties,
        theirs.attributes,
        theirs.types,
    )
    places = mine.results.index(old) == theirs.results.index(new)
    return same and places and len(mine.operands) == len(theirs.operands) and not mine.body


def _is_same(left: Index, right: Index, points: Points) -> bool:
    """Whether two indices name the same rows, in order; as many along an axis as the equal types of the tensors say."""
    for one, other in zip(left, right, strict=True):
        if isinstance(one, Slice) and isinstance(other, Slice):
            if one.step != other.step:
                return False
            one, other = one.start, other.start
        if isinstance(one, Slice) or isinstance(other, Slice):
            return False
        if one != other and points.fault(compare("=", one, other)) is not None:
            return False
    return True
