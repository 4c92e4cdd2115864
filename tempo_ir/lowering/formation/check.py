"""
Proof that kernels compute what the leaves that they were made of computed, with no code in common with formation.

It is given what the program was before and the claim which leaves each kernel took over, and proves:

- every operation runs once, in the loops and guards where it ran, as it was or inside one kernel; a leaf that several
  kernels compute again is written by one of them, or by none if nobody else reads it;
- a kernel does what its leaves did, one after the other: their ops, each operand the value that the leaf read, either
  from the same rows in memory or from a leaf before it in the kernel that writes these very rows;
- what is read from memory was written there, and is written before its reader as it was (or in the other part of a
  guard): a kernel reads before it writes, host calls keep their order;
- random numbers and errors keep the point that they are counted by.

Loops and guards are the same, so that order is a matter of places in blocks alone: no question is put to isl.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TypeAlias

from xdsl.ir import Operation, Region, SSAValue

from tempo_ir.dialects.loop import AllocOp, BodyOperation, BufferAccess, HostOp, IfOp, PointAttr, ProgramOp
from tempo_ir.dialects.sdg.locations import value_text
from tempo_ir.index.expr import Index
from tempo_ir.lowering.formation.before import (
    AT_A_POINT,
    Before,
    IllegalKernelError,
    Inner,
    Work,
    buffers_of,
    row_text,
    work_of,
)
from tempo_ir.lowering.instances import Instance, comes_first, instances

Row: TypeAlias = tuple[SSAValue, Index]


def check_kernels(program: ProgramOp, before: Before, kernels: Mapping[Operation, Sequence[Operation]]) -> None:
    """
    Prove that a program does what it did; `kernels` holds for each new kernel the leaves it computes, in their order.

    Raises IllegalKernelError with the leaf and the rows concerned.
    """
    checker = _Checker(before, kernels)
    checker.check_buffers(program)
    for instance in instances(program):
        checker.visit(instance)
    checker.check_each_runs(program)
    checker.check_order(program)


@dataclass(frozen=True)
class Home:
    """Where a leaf is computed now; `inside` are the numbers of its reads that a leaf of the same kernel answers."""

    instance: Instance
    inside: Mapping[int, Operation]


@dataclass
class _Checker:
    before: Before
    kernels: Mapping[Operation, Sequence[Operation]]
    homes: dict[Operation, list[Home]] = field(default_factory=lambda: defaultdict[Operation, list[Home]](list))
    written: dict[Operation, list[Instance]] = field(
        default_factory=lambda: defaultdict[Operation, list[Instance]](list)
    )
    hosts: list[Operation] = field(default_factory=list[Operation])

    # -- what runs

    def check_buffers(self, program: ProgramOp) -> None:
        """No buffer is new or other than it was."""
        for buffer, type in buffers_of(program).items():
            if self.before.buffers.get(buffer) != type:
                raise IllegalKernelError(f"the buffer {value_text(buffer)} is not what it was", program)

    def visit(self, instance: Instance) -> None:
        """An operation as it was, or a kernel and its leaves."""
        leaves = self.kernels.get(instance.op, (instance.op,))
        for leaf in leaves:
            if leaf not in self.before.instances:
                raise IllegalKernelError(f"{work_of(instance).text} is new", instance.op)
            origin = self.before.instances[leaf]
            same = len(origin.loops) == len(instance.loops) and all(map(_is, origin.loops, instance.loops))
            if not same or origin.frame != instance.frame:
                raise IllegalKernelError(f"{self._text(leaf)} runs at other points", instance.op)
        if instance.op in self.kernels:
            self._visit_kernel(instance, leaves)
            return
        if work_of(instance) != self.before.work[instance.op]:
            raise IllegalKernelError(f"{self._text(instance.op)} is not what it was", instance.op)
        self.homes[instance.op].append(Home(instance, {}))
        self.written[instance.op].append(instance)
        if isinstance(instance.op, HostOp):
            self.hosts.append(instance.op)

    def _visit_kernel(self, instance: Instance, leaves: Sequence[Operation]) -> None:
        """The body of a kernel is that of its leaves, one after the other."""
        kernel = work_of(instance)
        reading = _Kernel(kernel, iter(kernel.body), dict(zip(kernel.reads, kernel.arguments, strict=True)))
        for leaf in leaves:
            work = self.before.work[leaf]
            if not isinstance(instance.op, BodyOperation) or (not work.yielded and work.writes):
                raise IllegalKernelError(f"{work.text} is no leaf that a kernel computes", instance.op)
            self._check_point(work, instance.op)
            self.homes[leaf].append(Home(instance, reading.leaf(leaf, work, instance.op)))
        if next(reading.ops, None) is not None:
            raise IllegalKernelError(f"{kernel.text} computes more than its leaves", instance.op)
        if set(reading.outside) != reading.used:
            raise IllegalKernelError(f"{kernel.text} reads more than its leaves", instance.op)
        for access, value in zip(kernel.writes, kernel.yielded, strict=True):
            leaf, expected = reading.rows.get((access.buffer, access.index), (None, None))
            if leaf is None or value is not expected or access not in self.before.work[leaf].writes:
                row = row_text(access.buffer, access.index)
                raise IllegalKernelError(f"{row} is written with another value", instance.op)
            self.written[leaf].append(instance)

    def _check_point(self, leaf: Work, kernel: Operation) -> None:
        assert isinstance(kernel, BodyOperation)
        if kernel.point != leaf.point and any(op.name in AT_A_POINT for op in leaf.body):
            raise IllegalKernelError(f"{leaf.text} is computed as if at {PointAttr(kernel.point)}", kernel)

    def check_each_runs(self, program: ProgramOp) -> None:
        """Nothing is lost, written twice, or written but for its readers in one kernel and read elsewhere."""
        for op, work in self.before.work.items():
            if not self.homes[op]:
                raise IllegalKernelError(f"{work.text} never runs", program)
            times = len(self.written[op])
            if times > max(1, len(work.writes)):
                raise IllegalKernelError(f"{work.text} is written twice", self.homes[op][0].instance.op)
            if times == 0 and any(not isinstance(write.buffer.owner, AllocOp) for write in work.writes):
                raise IllegalKernelError(f"{work.text} is not written for the caller", self.homes[op][0].instance.op)
        if self.hosts != [op for op in self.before.instances if isinstance(op, HostOp)]:
            raise IllegalKernelError("host calls run in another order", program)

    def _text(self, op: Operation) -> str:
        return self.before.work[op].text

    # -- order

    def check_order(self, program: ProgramOp) -> None:
        """Who reads a buffer from memory runs before and after the same writers of it as before."""
        writers: dict[SSAValue, list[Operation]] = defaultdict(list)
        for op, instance in self.before.instances.items():
            for buffer in dict.fromkeys(write.buffer for write in instance.writes):
                writers[buffer].append(op)
        for reader, instance in self.before.instances.items():
            for number, read in enumerate(instance.reads):
                for writer in writers.get(read.buffer, ()):
                    self._check_pair(writer, reader, number)

    def _check_pair(self, writer: Operation, reader: Operation, number: int) -> None:
        origin = self.before.instances
        first = comes_first(origin[writer], origin[reader])
        for home in self.homes[reader]:
            inside = home.inside.get(number)
            if inside is writer:
                if not first:
                    raise IllegalKernelError(
                        f"{self._text(reader)} reads what {self._text(writer)} writes later", home.instance.op
                    )
                continue
            if inside is not None:
                continue  # the row is another writer's, at the same point: no other writes it
            places = self.written[writer]
            if not places:
                raise IllegalKernelError(
                    f"{self._text(reader)} reads {self._text(writer)}, which is kept inside of a kernel",
                    home.instance.op,
                )
            both = [place for place in places if not _exclude_each_other(place.op, home.instance.op)]
            if any(comes_first(place, home.instance) != first for place in both):
                order = "before" if first else "after"
                raise IllegalKernelError(
                    f"{self._text(reader)} runs {order} {self._text(writer)}, which it reads", home.instance.op
                )


@dataclass
class _Kernel:
    """A kernel as it is read, leaf by leaf: the ops that are left, and the value of each row written so far."""

    work: Work
    ops: Iterator[Inner]
    outside: Mapping[BufferAccess, SSAValue]
    rows: dict[Row, tuple[Operation, SSAValue]] = field(default_factory=dict[Row, tuple[Operation, SSAValue]])
    used: set[BufferAccess] = field(default_factory=set[BufferAccess])

    def leaf(self, leaf: Operation, work: Work, kernel: Operation) -> dict[int, Operation]:
        """Read the ops of a leaf; returns which of its reads are answered by which leaves before it."""
        values: dict[SSAValue, SSAValue] = {}
        inside: dict[int, Operation] = {}
        for number, (argument, access) in enumerate(zip(work.arguments, work.reads, strict=True)):
            row = self.rows.get((access.buffer, access.index))
            if row is not None:
                inside[number], values[argument] = row
            elif access in self.outside:
                values[argument] = self.outside[access]
                self.used.add(access)
            if argument not in values or values[argument].type != access.type:
                text = row_text(access.buffer, access.index)
                raise IllegalKernelError(f"{self.work.text} does not read {text}, which {work.text} read", kernel)
        for op in work.body:
            found = next(self.ops, None)
            if found is None or not _is_same(op, found, values):
                raise IllegalKernelError(f"{self.work.text} does not compute {op.name} of {work.text}", kernel)
            values.update(zip(op.results, found.results, strict=True))
        for write, value in zip(work.writes, work.yielded, strict=True):
            if (write.buffer, write.index) in self.rows:
                raise IllegalKernelError(f"{work.text} is computed twice", kernel)
            self.rows[write.buffer, write.index] = leaf, values[value]
        return inside


def _is(left: object, right: object) -> bool:
    return left is right


def _is_same(op: Inner, found: Inner, values: Mapping[SSAValue, SSAValue]) -> bool:
    """Whether an op, with the body that a fold has, is another one with its operands replaced."""
    same = (op.name, op.properties, op.attributes, op.types) == (
        found.name,
        found.properties,
        found.attributes,
        found.types,
    )
    if not same or not _all_same((values[operand] for operand in op.operands), found.operands):
        return False
    if len(op.arguments) != len(found.arguments):
        return False
    within = dict(zip(op.arguments, found.arguments, strict=True))
    for mine, theirs in zip_longest(op.body, found.body):
        if mine is None or theirs is None or not _is_same(mine, theirs, within):
            return False
        within.update(zip(mine.results, theirs.results, strict=True))
    return _all_same((within[value] for value in op.yielded), found.yielded)


def _all_same(left: Iterable[SSAValue], right: Iterable[SSAValue]) -> bool:
    return all(a is b for a, b in zip_longest(left, right))


def _exclude_each_other(left: Operation, right: Operation) -> bool:
    """Whether two operations stand in the two parts of one guard, so that no iteration runs both."""
    parts = dict(_guards(left))
    return any(guard in parts and parts[guard] is not region for guard, region in _guards(right))


def _guards(op: Operation) -> Iterator[tuple[IfOp, Region]]:
    """The guards round an operation, each with the part that it is in."""
    region = op.parent_region()
    while region is not None and (parent := region.parent_op()) is not None:
        if isinstance(parent, IfOp):
            yield parent, region
        region = parent.parent_region()
