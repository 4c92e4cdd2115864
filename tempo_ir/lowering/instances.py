"""
What the checkers see of a loop program: each operation with its loops, guards, place in the order, and accesses.

Read from the program alone, once for all that is to be proved of it; nothing here is shared with what made the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects.loop import (
    AccessOperation,
    BodyOperation,
    BufferAccess,
    BufferType,
    ForOp,
    FreeOp,
    IfOp,
    ProgramOp,
    YieldOp,
)
from tempo_ir.dialects.operation import ops_of
from tempo_ir.index.expr import TRUE, Cond, Index, Slice, Sym, compare, conj, negate
from tempo_ir.index.hashing import HashedOnce


@dataclass(frozen=True)
class Frame(HashedOnce):
    """
    What the loops and guards round an operation say, outermost first: of each loop the iterator, the range, and whether
    it runs downwards. Equal layers have equal frames.
    """

    loops: tuple[tuple[str, Slice, bool], ...] = ()
    guard: Cond = TRUE

    __hash__ = HashedOnce.__hash__

    @cached_property
    def iterators(self) -> tuple[str, ...]:
        """The names of the iterators."""
        return tuple(name for name, _, _ in self.loops)

    @cached_property
    def holds(self) -> Cond:
        """What holds of the iterators when the operation runs."""
        inside: list[Cond] = []
        for name, within, _ in self.loops:
            iterator = Sym(name)
            inside += [compare("<=", within.start, iterator), compare("<", iterator, within.stop)]
            if within.step != 1:
                inside.append(compare("=", (iterator - within.start) % within.step, 0))
        return conj(*inside, self.guard)

    def inside(self, loop: ForOp) -> Frame:
        """In a loop."""
        return Frame((*self.loops, (loop.iterator, loop.range, loop.down)), self.guard)

    def where(self, condition: Cond) -> Frame:
        """Under a guard."""
        return Frame(self.loops, conj(self.guard, condition))


@dataclass(slots=True, eq=False)  # never changed; `frozen` would make it four times as slow to make
class Instance:
    """
    An operation as it stands in a program, with its accesses. `time` numbers the loops round it and itself.

    A loop that data ends is one too, which reads after each iteration whether it does.
    """

    op: Operation
    loops: tuple[ForOp, ...]
    frame: Frame
    time: tuple[int, ...]
    reads: tuple[BufferAccess, ...] = ()
    """What is read or, a row as a type for all, freed."""
    writes: tuple[BufferAccess, ...] = ()
    arguments: tuple[SSAValue, ...] = ()
    results: tuple[SSAValue, ...] = ()
    formula: tuple[object, ...] = ()
    """A body of at most one op, up to names; two longer ones are never equal."""


def instances(program: ProgramOp) -> tuple[Instance, ...]:
    """Everything that reads, writes or frees rows, in program order."""
    return tuple(_Walk().block(program.body.block, (), Frame(), ()))


@dataclass
class _Walk:
    count: int = 0

    def block(self, block: Block, loops: tuple[ForOp, ...], frame: Frame, time: tuple[int, ...]) -> Iterator[Instance]:
        for op in ops_of(block):
            self.count += 1
            now = (*time, self.count)
            if isinstance(op, AccessOperation):
                yield _instance(op, loops, frame, now)
            elif isinstance(op, ForOp):
                yield from self.block(op.body.block, (*loops, op), inside := frame.inside(op), now)
                self.count += 1
                if op.until is not None:
                    yield Instance(op, (*loops, op), inside, (*now, self.count), (_row(*op.until),))
            elif isinstance(op, IfOp):
                yield from self.block(op.then.block, loops, frame.where(op.condition), time)
                if op.otherwise is not None:
                    yield from self.block(op.otherwise.block, loops, frame.where(negate(op.condition)), time)
            elif isinstance(op, FreeOp):
                yield Instance(op, loops, frame, now, (_row(op.buffer, op.index),))


def _instance(op: AccessOperation, loops: tuple[ForOp, ...], frame: Frame, now: tuple[int, ...]) -> Instance:
    if not isinstance(op, BodyOperation):
        return Instance(op, loops, frame, now, op.reads, op.writes)
    block = op.regions[0].block
    return Instance(op, loops, frame, now, op.reads, op.writes, block.args, op.yielded, _formula(op, block))


def _row(buffer: SSAValue, index: Index) -> BufferAccess:
    assert isinstance(buffer.type, BufferType)
    return BufferAccess(buffer, index, buffer.type.row)


def _formula(op: BodyOperation, block: Block) -> tuple[object, ...]:
    one = block.first_op
    if one is None or isinstance(one, YieldOp):
        return ()
    if not isinstance(one.next_op, YieldOp):
        return (op,)
    return one.name, dict(one.properties), one.result_types


def comes_first(left: Instance, right: Instance) -> bool:
    """Whether, in one iteration of the loops round both, the left one is over before the right one begins."""
    common = common_loops(left, right)
    return left.time[common] < right.time[common]


def common_loops(left: Instance, right: Instance) -> int:
    """How many of the outermost loops are the same."""
    count = 0
    while count < min(len(left.loops), len(right.loops)) and left.loops[count] is right.loops[count]:
        count += 1
    return count
