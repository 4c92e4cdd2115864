"""Where the threads of a program must wait for each other.

A program is run by many threads, and Triton does not order their accesses to memory: where a program reads what it has
written, or writes what it has read, other threads may be ahead or behind. Arguments never overlap, so only accesses
through one pointer matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects.tile import memory, structure

Access = tuple[SSAValue, Operation]


@dataclass
class _Pending:
    """The accesses since the last barrier, by pointer."""

    reads: set[Access] = field(default_factory=set[Access])
    writes: set[Access] = field(default_factory=set[Access])
    adds: set[Access] = field(default_factory=set[Access])

    def copy(self) -> _Pending:
        return _Pending(set(self.reads), set(self.writes), set(self.adds))

    def include(self, other: _Pending) -> None:
        self.reads |= other.reads
        self.writes |= other.writes
        self.adds |= other.adds

    def clear(self) -> None:
        self.reads.clear()
        self.writes.clear()
        self.adds.clear()


def barriers(kernel: structure.KernelOp) -> frozenset[Operation]:
    """The accesses before which a program must wait for all of its threads."""
    found: set[Operation] = set()
    _walk(kernel.body.block, _Pending(), found)
    return frozenset(found)


def _walk(block: Block, pending: _Pending, found: set[Operation]) -> None:
    for op in block.ops:
        match op:
            case structure.ForOp():
                _loop(op, pending, found)
            case structure.IfOp():
                before = pending.copy()
                _walk(op.then.block, pending, found)
                if op.otherwise is not None:
                    _walk(op.otherwise.block, before, found)
                pending.include(before)
            case memory.AccessOp():
                _access(op, pending, found)
            case _:
                pass


def _loop(op: structure.ForOp, pending: _Pending, found: set[Operation]) -> None:
    """The body may follow itself, and may not run at all."""
    known = -1
    while known != len(found):
        known = len(found)
        inside = pending.copy()
        _walk(op.body.block, inside, found)
        pending.include(inside)


def _access(op: memory.AccessOp, pending: _Pending, found: set[Operation]) -> None:
    pointer = op.view_op.pointer
    if isinstance(op, (memory.LoadOp, memory.GatherOp)):
        own, others = pending.reads, [pending.writes, pending.adds]
    elif isinstance(op, (memory.AtomicAddOp, memory.ScatterAddOp)):
        own, others = pending.adds, [pending.reads, pending.writes]
    else:
        own, others = pending.writes, [pending.reads, pending.adds, pending.writes - {(pointer, op)}]
    if any(_touches(accesses, pointer) for accesses in others):
        found.add(op)
        pending.clear()
    own.add((pointer, op))


def _touches(accesses: Iterable[Access], pointer: SSAValue) -> bool:
    return any(other is pointer for other, _ in accesses)
