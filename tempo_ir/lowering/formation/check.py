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
from typing import TypeAlias

from xdsl.ir import Attribute, Operation, Region, SSAValue

from tempo_ir.dialects.loop import (
    AccessOperation,
    AllocOp,
    BodyOperation,
    BufferAccess,
    BufferOperation,
    HostOp,
    IfOp,
    PointAttr,
    ProgramOp,
    YieldOp,
)
from tempo_ir.dialects.sdg.locations import location_text, value_text
from tempo_ir.index.expr import Index, index_text
from tempo_ir.lowering.proofs import IllegalError
from tempo_ir.lowering.storage.instances import Instance, instances

AT_A_POINT = frozenset(f"sdg.{name}" for name in "random floordiv mod gather scatter_add".split())
"""Ops whose value, or whose error, depends on the point at which a leaf says that it stands."""


Row: TypeAlias = tuple[SSAValue, Index]


class IllegalKernelError(IllegalError):
    """A kernel that does not compute what it should: a fault of the compiler. `op` is the operation concerned."""

    def __init__(self, message: str, op: Operation):
        super().__init__(f"internal error, illegal kernel: {message}", op)


@dataclass(frozen=True)
class Inner:
    """An op of a body."""

    name: str
    properties: Mapping[str, Attribute]
    attributes: Mapping[str, Attribute]
    operands: tuple[SSAValue, ...]
    results: tuple[SSAValue, ...]
    types: tuple[Attribute, ...]


@dataclass(frozen=True)
class Work:
    """What an operation does at one point, as it was when this was noted: the operation itself may be gone by now."""

    text: str
    point: tuple[object, ...]
    reads: tuple[BufferAccess, ...] = ()
    writes: tuple[BufferAccess, ...] = ()
    arguments: tuple[SSAValue, ...] = ()
    body: tuple[Inner, ...] = ()
    yielded: tuple[SSAValue, ...] = ()


@dataclass(frozen=True)
class Before:
    """A program as it was: what ran where, and the buffers."""

    instances: Mapping[Operation, Instance]
    frames: Mapping[Operation, tuple[object, ...]]
    work: Mapping[Operation, Work]
    buffers: Mapping[SSAValue, Attribute]


def noted(program: ProgramOp) -> Before:
    """What the proof has to know of a program before its kernels are formed."""
    found = {instance.op: instance for instance in instances(program)}
    frames = {op: instance.pattern for op, instance in found.items()}
    return Before(found, frames, {op: _work(op) for op in found}, _buffers(program))


def _buffers(program: ProgramOp) -> dict[SSAValue, Attribute]:
    return {op.buffer: op.buffer.type for op in program.walk() if isinstance(op, BufferOperation)}


def _work(op: Operation) -> Work:
    if not isinstance(op, AccessOperation):
        return Work(op.name, (tuple(op.operands), tuple(op.properties.items())))
    text = " and ".join(_row_text(write.buffer, write.index) for write in op.writes)
    where = location_text(op.location)
    at = f" at {PointAttr(op.point)}" if op.point else ""
    text = f"{text or op.name}{at}" + (f" ({where})" if where else "")
    if not isinstance(op, BodyOperation):
        return Work(text, (op.point, tuple(op.properties.items())), op.reads, op.writes)
    body = tuple(
        Inner(one.name, dict(one.properties), dict(one.attributes), tuple(one.operands), tuple(one.results),
              tuple(one.result_types))
        for one in op.body.block.ops
        if not isinstance(one, YieldOp)
    )  # fmt: skip
    return Work(text, op.point, op.reads, op.writes, tuple(op.body.block.args), body, op.yielded)


def _row_text(buffer: SSAValue, index: Index) -> str:
    return f"{value_text(buffer)}{index_text(index)}"


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
        for buffer, type in _buffers(program).items():
            if self.before.buffers.get(buffer) != type:
                raise IllegalKernelError(f"the buffer {value_text(buffer)} is not what it was", program)

    def visit(self, instance: Instance) -> None:
        """An operation as it was, or a kernel and its leaves."""
        leaves = self.kernels.get(instance.op, (instance.op,))
        for leaf in leaves:
            if leaf not in self.before.instances:
                raise IllegalKernelError(f"{_work(instance.op).text} is new", instance.op)
            origin = self.before.instances[leaf]
            same = len(origin.loops) == len(instance.loops) and all(map(_is, origin.loops, instance.loops))
            if not same or self.before.frames[leaf] != instance.pattern:
                raise IllegalKernelError(f"{self._text(leaf)} runs at other points", instance.op)
        if instance.op in self.kernels:
            self._visit_kernel(instance, leaves)
            return
        if _work(instance.op) != self.before.work[instance.op]:
            raise IllegalKernelError(f"{self._text(instance.op)} is not what it was", instance.op)
        self.homes[instance.op].append(Home(instance, {}))
        self.written[instance.op].append(instance)
        if isinstance(instance.op, HostOp):
            self.hosts.append(instance.op)

    def _visit_kernel(self, instance: Instance, leaves: Sequence[Operation]) -> None:
        """The body of a kernel is that of its leaves, one after the other."""
        kernel = _work(instance.op)
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
                row = _row_text(access.buffer, access.index)
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
            for buffer in dict.fromkeys(buffer for buffer, _ in instance.writes):
                writers[buffer].append(op)
        for reader, instance in self.before.instances.items():
            for number, (buffer, _) in enumerate(instance.reads):
                for writer in writers.get(buffer, ()):
                    self._check_pair(writer, reader, number)

    def _check_pair(self, writer: Operation, reader: Operation, number: int) -> None:
        origin = self.before.instances
        first = _comes_first(origin[writer], origin[reader])
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
            if any(_comes_first(place, home.instance) != first for place in both):
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
                text = _row_text(access.buffer, access.index)
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
    """Whether an op is another one with its operands replaced."""
    same = (op.name, op.properties, op.attributes, op.types) == (
        found.name,
        found.properties,
        found.attributes,
        found.types,
    )
    return same and _all_same((values[operand] for operand in op.operands), found.operands)


def _all_same(left: Iterable[SSAValue], right: Iterable[SSAValue]) -> bool:
    return all(a is b for a, b in zip(left, right, strict=True))


def _comes_first(left: Instance, right: Instance) -> bool:
    """Whether, in one iteration of the loops round both, the left one is over before the right one reads."""
    common = 0
    while common < min(len(left.loops), len(right.loops)) and left.loops[common] is right.loops[common]:
        common += 1
    return left.time[common] < right.time[common]


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
