# pyright: basic
"""
Proof that a loop program whose buffers were given less memory still reads what it read before.

`before` has a row for every point, each written once. `after` is the same program, its loops and guards included,
with other buffers: dims may be rings or have one slot, several values may share a buffer (donation, states), copies
between values that share one may be gone, rows may be freed. It proves for all sizes that each read of a row finds
what the row's writer left: the writer ran before, and neither another writer nor a free came to that place in
between. What an op reads and overwrites itself must be read element by element.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects.loop import (
    AccessOperation,
    BodyOperation,
    BufferAccess,
    BufferType,
    FreeOp,
    OutputOp,
    ProgramOp,
    YieldOp,
)
from tempo_ir.dialects.sdg import BinaryOp, CastOp, SelectOp, StopGradientOp, UnaryOp, op_text, value_text
from tempo_ir.dialects.types import shape_of
from tempo_ir.index.expr import TRUE, Index
from tempo_ir.index.isl import Map, counterexample, read_map
from tempo_ir.lowering.schedule.occurrences import Frame, Occurrence, Timeline, named, occurrences

ELEMENTWISE = (UnaryOp, BinaryOp, SelectOp, CastOp, StopGradientOp)


class IllegalStorageError(PassFailedException):
    """A buffer that loses a row before its last reader: a fault of the compiler. `op` is the reader."""

    def __init__(self, message: str, op: Operation):
        super().__init__(f"internal error, illegal storage: {message}")
        self.op = op


@dataclass(frozen=True)
class StorageClaim:
    """
    Two programs and how they belong together: for each op of `after` that reads or writes rows the op of `before` that
    it was, and for each buffer of `before` the buffer of `after` that holds its rows.
    """

    before: ProgramOp
    after: ProgramOp
    counterparts: Mapping[Operation, Operation]
    memory: Mapping[SSAValue, SSAValue]


@dataclass(frozen=True)
class Write:
    """One of the rows that an op writes in each iteration."""

    at: Occurrence
    buffer: SSAValue
    index: Index


@dataclass(frozen=True)
class Source:
    """Where rows come from: the iterations of a write, or, without one, what a buffer of `before` held at the start."""

    write: Write | None
    buffer: SSAValue
    reads: Map


def check_storage(claim: StorageClaim) -> None:
    """
    Prove that every read of `after` finds what the same read of `before` found, and every output its result.

    Raises IllegalStorageError with the reader and an iteration where that is not so.
    """
    checker = _StorageChecker(claim, Timeline(claim.after.space))
    for buffer in claim.memory:
        checker.check_sharing(buffer)
    for dropped in checker.dropped:
        checker.check_dropped_copy(dropped)
    for found in occurrences(claim.after):
        if isinstance(found.op, AccessOperation):
            checker.check_accesses(found)
    for op in claim.before.body.block.ops:
        if isinstance(op, OutputOp):
            checker.check_output(op)


@dataclass
class _StorageChecker:
    """One claim; `writers` is of `before`, `disturbers` and `now` are of `after`, the last by the op of `before`."""

    claim: StorageClaim
    timeline: Timeline
    writers: dict[SSAValue, list[tuple[Occurrence, BufferAccess]]] = field(default_factory=dict)
    disturbers: dict[SSAValue, list[Write]] = field(default_factory=dict)
    now: dict[Operation, Occurrence] = field(default_factory=dict)

    def __post_init__(self) -> None:
        counterparts = self.claim.counterparts
        for found in occurrences(self.claim.after):
            if isinstance(found.op, AccessOperation):
                self.now[counterparts[found.op]] = found
                for write in found.op.writes:
                    self.disturbers.setdefault(write.buffer, []).append(Write(found, write.buffer, write.index))
            elif isinstance(found.op, FreeOp):
                self.disturbers.setdefault(found.op.buffer, []).append(Write(found, found.op.buffer, found.op.index))
        for found in occurrences(self.claim.before):
            if isinstance(found.op, AccessOperation):
                for write in found.op.writes:
                    self.writers.setdefault(write.buffer, []).append((found, write))

    @property
    def dropped(self) -> Iterator[Occurrence]:
        """The ops of `before` that `after` has not."""
        found = {found.op: found for writers in self.writers.values() for found, _ in writers}
        return (occurrence for op, occurrence in found.items() if op not in self.now)

    def check_sharing(self, buffer: SSAValue) -> None:
        """A buffer keeps the dims that it keeps in their order, and its name if the caller knows it by one."""
        kept, dims = self._type(self.claim.memory[buffer]).dim_names, self._type(buffer).dim_names
        if kept != tuple(dim for dim in dims if dim in kept):
            owner = buffer.owner
            assert isinstance(owner, Operation)
            raise IllegalStorageError(
                f"{value_text(buffer)} over ({', '.join(dims)}) is kept as ({', '.join(kept)})", owner
            )

    def check_dropped_copy(self, copy: Occurrence) -> None:
        """What is gone is a copy between rows that now lie in one place."""
        op = copy.op
        if not isinstance(op, BodyOperation) or not _is_copy(op):
            raise IllegalStorageError(f"{op_text(op)} is no copy, and gone", op)
        for value, write in zip(op.yielded, op.writes, strict=True):
            read = _read_of(op, value)
            same = self.claim.memory[read.buffer] is self.claim.memory[write.buffer]
            source, target = self._places(copy, read.buffer, read.index), self._places(copy, write.buffer, write.index)
            if not same or not source.is_equal(target):
                raise IllegalStorageError(f"{op_text(op)} copies between two places, and is gone", op)

    def check_accesses(self, reader: Occurrence) -> None:
        """Each read of an op finds its rows; each index is what it was, but for dims that are not stored."""
        op, was = reader.op, self.claim.counterparts[reader.op]
        assert isinstance(op, AccessOperation)
        assert isinstance(was, AccessOperation)
        pairs = [*zip(op.reads, was.reads, strict=True), *zip(op.writes, was.writes, strict=True)]
        for access, old in pairs:
            if access.buffer is not self.claim.memory[old.buffer] or access.index != self._kept(old.buffer, old.index):
                raise IllegalStorageError(f"{op_text(op)} does not access the rows of {value_text(old.buffer)}", op)
        for number, old in enumerate(was.reads):
            rows = self.timeline.rows(reader.frame, old.index)
            for source in self._sources(old.buffer, rows, ()):
                self._check_source(reader, source)
            self._check_overwriting(reader, number)

    def check_output(self, output: OutputOp) -> None:
        """At the end an output holds what was written to it."""
        end = Occurrence(output, Frame(), (sys.maxsize,))
        for found, write in self.writers.get(output.buffer, ()):
            written = self.timeline.rows(found.frame, write.index).range()
            rows = Map.from_domain_and_range(self.timeline.points((), TRUE), written)
            for source in self._sources(output.buffer, rows, ()):
                self._check_source(end, source)

    def _sources(self, buffer: SSAValue, rows: Map, passed: tuple[SSAValue, ...]) -> Iterator[Source]:
        """Who left the rows that a reader reads: through copies that are gone, their sources."""
        if buffer in passed:
            owner = buffer.owner
            assert isinstance(owner, Operation)
            raise IllegalStorageError(f"{value_text(buffer)} is only copied, never computed", owner)
        if buffer not in self.writers:
            yield Source(None, buffer, rows)
        for found, write in self.writers.get(buffer, ()):
            written = self.timeline.rows(found.frame, write.index)
            now = self.now.get(found.op)
            if now is not None:
                place = Write(now, self.claim.memory[buffer], self._kept(buffer, write.index))
                yield Source(place, buffer, rows.apply_range(written.reverse()))
                continue
            copy = found.op
            assert isinstance(copy, BodyOperation)
            value = copy.yielded[list(copy.writes).index(write)]
            read = _read_of(copy, value)
            through = rows.apply_range(written.reverse()).apply_range(self.timeline.rows(found.frame, read.index))
            yield from self._sources(read.buffer, through, (*passed, buffer))

    def _check_source(self, reader: Occurrence, source: Source) -> None:
        if source.reads.is_empty():
            return
        write, buffer = source.write, self.claim.memory[source.buffer]
        if write is not None:
            late = source.reads.subtract(self.timeline.before(write.at, reader).reverse())
            self._refuse(reader, late, f"reads {value_text(source.buffer)} before it is written")
            left = self._places_of(write)
        for disturber in self.disturbers.get(buffer, ()):
            there = self._places_of(disturber).reverse()
            if write is None:
                touched = self._ring(source.buffer, source.reads).apply_range(there)
            else:
                touched = source.reads.apply_range(
                    left.apply_range(there).intersect(self.timeline.before(write.at, disturber.at))
                )
            lost = touched.intersect(self.timeline.before(disturber.at, reader).reverse())
            verb = "frees" if isinstance(disturber.at.op, FreeOp) else "overwrites"
            self._refuse(reader, lost, f"reads {value_text(source.buffer)} after {op_text(disturber.at.op)} {verb} it")

    def _check_overwriting(self, reader: Occurrence, number: int) -> None:
        """Where an op overwrites what it reads, it reads that element by element."""
        op = reader.op
        assert isinstance(op, AccessOperation)
        read = op.reads[number]
        there = self._places_of(Write(reader, read.buffer, read.index))
        for write in op.writes:
            if write.buffer is not read.buffer:
                continue
            same = there.intersect(self._places_of(Write(reader, write.buffer, write.index)))
            if not same.is_empty() and not _is_read_by_element(op, number):
                self._refuse(reader, same, f"overwrites {value_text(read.buffer)} while it still reads it")

    def _refuse(self, reader: Occurrence, pairs: Map, what: str) -> None:
        if pairs.is_empty():
            return
        points = named(pairs.domain(), reader.frame.iterators)
        raise IllegalStorageError(f"{op_text(reader.op)} {what}: {counterexample(points)}", reader.op)

    def _places(self, at: Occurrence, old: SSAValue, index: Index) -> Map:
        """The places, in the buffer of now, of the rows that a buffer of `before` had at an index."""
        return self._places_of(Write(at, self.claim.memory[old], self._kept(old, index)))

    def _places_of(self, write: Write) -> Map:
        return self._in_memory(write.buffer, self.timeline.rows(write.at.frame, write.index))

    def _in_memory(self, buffer: SSAValue, rows: Map) -> Map:
        """Rows of a buffer to their places: point `t` of a ring of four lies in place `t mod 4`."""
        dims = self._type(buffer).dims
        if not any(dim.storage == "ring" for dim in dims):
            return rows
        names = [f"d{number}" for number in range(len(dims))]
        places = [
            f"{name} mod {dim.slots}" if dim.storage == "ring" else name for name, dim in zip(names, dims, strict=True)
        ]
        return rows.apply_range(read_map(f"{{ [{', '.join(names)}] -> [{', '.join(places)}] }}"))

    def _ring(self, old: SSAValue, rows: Map) -> Map:
        """Rows of a buffer of `before` to their places in the buffer of now."""
        dims, kept = self._type(old).dim_names, self._type(self.claim.memory[old]).dim_names
        names = [f"d{number}" for number in range(len(dims))]
        left = [name for name, dim in zip(names, dims, strict=True) if dim in kept]
        projected = rows.apply_range(read_map(f"{{ [{', '.join(names)}] -> [{', '.join(left)}] }}"))
        return self._in_memory(self.claim.memory[old], projected)

    def _kept(self, old: SSAValue, index: Index) -> Index:
        """An index without the entries of dims that have one slot now."""
        kept = self._type(self.claim.memory[old]).dim_names
        return tuple(entry for dim, entry in zip(self._type(old).dim_names, index, strict=True) if dim in kept)

    def _type(self, buffer: SSAValue) -> BufferType:
        assert isinstance(buffer.type, BufferType)
        return buffer.type


def _read_of(copy: BodyOperation, value: SSAValue) -> BufferAccess:
    """The read that a copy passes on as a value."""
    return next(read for read, argument in zip(copy.reads, copy.body.block.args, strict=True) if argument is value)


def _is_copy(op: BodyOperation) -> bool:
    """Whether a body only passes arguments on."""
    return isinstance(op.body.block.first_op, YieldOp) and all(value in op.body.block.args for value in op.yielded)


def _is_read_by_element(op: AccessOperation, number: int) -> bool:
    """Whether each element of a read goes into the same element of what is written, and nowhere else."""
    if not isinstance(op, BodyOperation):
        return False
    waiting: list[SSAValue] = [op.body.block.args[number]]
    shape = shape_of(waiting[0].type)
    while waiting:
        for use in waiting.pop().uses:
            if isinstance(use.operation, YieldOp):
                continue
            if not isinstance(use.operation, ELEMENTWISE) or shape_of(use.operation.results[0].type) != shape:
                return False
            waiting.append(use.operation.results[0])
    return True
