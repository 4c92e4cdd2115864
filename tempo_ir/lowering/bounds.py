# pyright: basic
"""
Proof that a loop program stays inside of its buffers, from the program text alone, for all sizes that it admits.

- no iterator is ever negative: all that reads index expressions takes names to be at least 0;
- every row that is read, written or freed lies inside of the extent of its buffer, be it a ring or that of the
  caller's array;
- what is read or written of a row is no more than the buffer has room for.

Questions are asked once per pattern of loops, guards, index and extents, so that equal layers cost one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import SSAValue

from tempo_ir.dialects.loop import AccessOperation, BufferAccess, BufferDim, BufferType, ForOp, FreeOp, ProgramOp
from tempo_ir.dialects.sdg.locations import op_text, value_text
from tempo_ir.dialects.types import Shape, Tensor, shape_of
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import Const, Entry, Expr, Index, Slice, Sym, as_expr, index_text
from tempo_ir.index.isl import Set, Writer, counterexample, encode, entry_text, params_set, read_set, tuple_text
from tempo_ir.index.rules import PROGRAM_FACTS, at_least_zero, simplify
from tempo_ir.lowering.instances import Frame, Instance, instances
from tempo_ir.lowering.proofs import IllegalError


class OutOfBoundsError(IllegalError):
    """A loop program that leaves its buffers."""


def check_bounds(program: ProgramOp, read: Sequence[Instance] | None = None) -> None:
    """
    Prove that a program, of which `read` was read, stays inside of its buffers.

    Raises OutOfBoundsError with the op, the rows and a point.
    """
    check_bounds_of(instances(program) if read is None else read, program.space)


def check_bounds_of(some: Iterable[Instance], space: Space) -> None:
    """Prove it of some operations of a program. Raises OutOfBoundsError."""
    checker = _Checker(space)
    for instance in some:
        checker.check_loops(instance)
        if isinstance(instance.op, AccessOperation):
            for access in (*instance.reads, *instance.writes):
                checker.check_access(instance, access)
            continue
        for access in instance.reads:  # of a free, or of the condition that ends a loop
            checker.check_rows(instance, access.buffer, access.index)


@dataclass
class _Checker:
    """The questions of one program; `answers` remembers those that were asked."""

    space: Space
    answers: dict[object, str | None] = field(default_factory=dict)
    right: set[object] = field(default_factory=set)
    seen: set[ForOp] = field(default_factory=set)

    def check_loops(self, instance: Instance) -> None:
        """The iterators round an operation are not negative, outermost first."""
        for depth, loop in enumerate(instance.loops):
            if loop in self.seen:
                continue
            self.seen.add(loop)
            if at_least_zero(loop.lower, PROGRAM_FACTS):
                continue
            outer = Frame(instance.frame.loops[: depth + 1], instance.frame.guard)
            writer = Writer(outer.iterators, self.space.params)
            fault = self._asked(outer, writer, f"{encode(loop.iterator)} < 0", ("loop", loop.lower))
            if fault is not None:
                raise OutOfBoundsError(f"the iterator of {op_text(loop)} is negative: {fault}", loop)

    def check_access(self, instance: Instance, access: BufferAccess) -> None:
        """The rows are there and have room for what is taken."""
        buffer, index = access.buffer, access.index
        assert isinstance(buffer.type, BufferType)
        dims = buffer.type.dims
        if index or dims:
            question = (instance.frame, index, dims)
            if question not in self.right:
                self.check_rows(instance, buffer, index)
                self.right.add(question)
        self.check_room(instance, buffer, index, access.type)

    def check_rows(self, instance: Instance, buffer: SSAValue, index: Index) -> None:
        """The rows at an index are there; of a range without points nothing is accessed, whatever the other entries."""
        assert isinstance(buffer.type, BufferType)
        if len(index) != len(buffer.type.dims):
            raise OutOfBoundsError(f"{_text(buffer, index)} has not an entry for each dim stored", instance.op)
        ends = [self._end(dim) for dim in buffer.type.dims]
        open_ = [
            (entry, end) for entry, end in zip(index, ends, strict=True) if not _is_seen(instance.loops, entry, end)
        ]
        if not open_:
            return
        writer = Writer(instance.frame.iterators, self.space.params)
        seen = [entry for entry in index if isinstance(entry, Slice) and all(entry != other for other, _ in open_)]
        something = [f"{writer.expr(entry.start)} < {writer.expr(entry.stop)}" for entry in seen]
        wrong = " and ".join([*something, self._outside(writer, open_)])
        fault = self._asked(instance.frame, writer, wrong, ("rows", tuple(open_), tuple(seen)))
        if fault is not None:
            what = "freed" if isinstance(instance.op, FreeOp) else "accessed"
            message = f"{_text(buffer, index)} is {what} outside of the rows of its buffer, {buffer.type}: {fault}"
            raise OutOfBoundsError(message, instance.op)

    def _end(self, dim: BufferDim) -> Expr:
        """One past the last row, of a ring too, which may have fewer places than slots where it has fewer rows."""
        return self.space.bound(dim.name) if dim.extent is None else dim.extent

    @staticmethod
    def _outside(writer: Writer, entries: Sequence[tuple[Entry, Expr]]) -> str:
        """That one of the rows at the entries, of which some may be empty, is not there."""
        rows = [f"row{number}'" for number in range(len(entries))]
        taken = [entry_text(writer, entry, row) for (entry, _), row in zip(entries, rows, strict=True)]
        wrong = [f"{row} < 0" for row in rows]
        wrong += [f"{row} >= {writer.expr(end)}" for (_, end), row in zip(entries, rows, strict=True)]
        return f"exists ({', '.join(rows)} : {' and '.join(taken)} and ({' or '.join(wrong)}))"

    def check_room(self, instance: Instance, buffer: SSAValue, index: Index, taken: Tensor) -> None:
        """Rows have room for what is read or written of them, where there are any; as many are taken as the index
        has."""
        assert isinstance(buffer.type, BufferType)
        ranges = [entry for entry in index if isinstance(entry, Slice)]
        slices = len(ranges)
        if not slices and isinstance(taken.encoding, NoneAttr) and taken == buffer.type.row:
            return
        room, extents = shape_of(buffer.type.accessed(index)), shape_of(taken)
        writer = Writer(instance.frame.iterators, self.space.params)
        wrong = tuple(_too_large(extents, room, slices))
        if not wrong:
            return
        some = [f"{writer.expr(entry.start)} < {writer.expr(entry.stop)}" for entry in ranges]
        faults = [
            " and ".join([f"{writer.expr(left)} {relation} {writer.expr(right)}", *(some if relation == ">" else ())])
            for left, relation, right in wrong
        ]
        fault = self._asked(instance.frame, writer, f"({' or '.join(faults)})", ("room", wrong, tuple(ranges)))
        if fault is not None:
            message = f"{taken} does not fit into {_text(buffer, index)} of {buffer.type}: {fault}"
            raise OutOfBoundsError(message, instance.op)

    def _asked(self, frame: Frame, writer: Writer, wrong: str, question: object) -> str | None:
        """A point at which an operation runs and something is wrong; None if there is none."""
        key = (frame, question)
        if key not in self.answers:
            held = writer.cond(frame.holds)
            names = [encode(name) for name in frame.iterators]
            points = read_set(writer.declared(f"{tuple_text('', names)} : ({held}) and {writer.natural()} and {wrong}"))
            self.answers[key] = self._example(points)
        return self.answers[key]

    def _example(self, points: Set) -> str | None:
        return counterexample(points.intersect_params(params_set(self.space)))


def _is_seen(loops: Sequence[ForOp], entry: Entry, end: Expr) -> bool:
    """Whether an entry is seen to be inside without isl: the iterator of a loop over the rows, or a range of them."""
    if isinstance(entry, Slice):
        return entry.start == Const(0) and entry.stop == end
    return any(Sym(loop.iterator) == entry and loop.upper == end for loop in loops)


def _too_large(extents: Shape, room: Shape, slices: int) -> Iterator[tuple[Expr, str, Expr]]:
    """What would have to hold of the extents of axes for a tensor not to fit; nothing for those that are equal."""
    for axis, (extent, space) in enumerate(zip(extents, room, strict=True)):
        left, right = simplify(as_expr(extent), PROGRAM_FACTS), simplify(as_expr(space), PROGRAM_FACTS)
        if axis < slices and left != right:
            yield left, "!=", right
        elif left != right and not at_least_zero(right - left, PROGRAM_FACTS):
            yield left, ">", right


def _text(buffer: SSAValue, index: Index) -> str:
    return f"{value_text(buffer)}{index_text(index)}"
