"""Where the threads of a program must wait for each other.

A program is run by many threads, and Triton does not order their accesses to memory: where a program reads what it has
written, or writes what it has read, other threads may be ahead or behind. Arguments never overlap, so only accesses
through one pointer matter, and of those the ones that are not proved to touch other elements: rows that a recurrence
writes one after the other need no barrier.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Block, Operation

from tempo_ir.dialects.tile import memory, structure
from tempo_ir.lowering.tiles.indices import Indices
from tempo_ir.lowering.tiles.places import Places
from tempo_ir.lowering.tiles.repetition import Repetition


@dataclass
class _Pending:
    """The accesses since the last barrier."""

    reads: set[memory.AccessOp] = field(default_factory=set[memory.AccessOp])
    writes: set[memory.AccessOp] = field(default_factory=set[memory.AccessOp])
    adds: set[memory.AccessOp] = field(default_factory=set[memory.AccessOp])

    def copy(self) -> _Pending:
        return _Pending(set(self.reads), set(self.writes), set(self.adds))

    def include(self, other: _Pending) -> None:
        self.reads |= other.reads
        self.writes |= other.writes
        self.adds |= other.adds

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.reads) + len(self.writes) + len(self.adds)

    def clear(self) -> None:
        self.reads.clear()
        self.writes.clear()
        self.adds.clear()


def barriers(kernel: structure.KernelOp) -> frozenset[Operation]:
    """The accesses before which a program must wait for all of its threads."""
    search = _Search(Repetition(Places(Indices(kernel))))
    search.block(kernel.body.block, _Pending())
    return frozenset(search.found)


@dataclass
class _Search:
    """Follows the accesses of a kernel."""

    repetition: Repetition
    found: set[Operation] = field(default_factory=set[Operation])

    def block(self, block: Block, pending: _Pending) -> None:
        for op in block.ops:
            match op:
                case structure.ForOp():
                    self.loop(op, pending)
                case structure.IfOp():
                    before = pending.copy()
                    self.block(op.then.block, pending)
                    if op.otherwise is not None:
                        self.block(op.otherwise.block, before)
                    pending.include(before)
                case memory.AccessOp():
                    self.access(op, pending)
                case _:
                    pass

    def loop(self, op: structure.ForOp, pending: _Pending) -> None:
        """The body may follow itself, and may not run at all."""
        known = -1, -1
        while known != (len(self.found), pending.count):
            known = len(self.found), pending.count
            inside = pending.copy()
            self.block(op.body.block, inside)
            pending.include(inside)

    def access(self, op: memory.AccessOp, pending: _Pending) -> None:
        if isinstance(op, (memory.LoadOp, memory.GatherOp)):
            own, others = pending.reads, [pending.writes, pending.adds]
        elif isinstance(op, (memory.AtomicAddOp, memory.ScatterAddOp)):
            own, others = pending.adds, [pending.reads, pending.writes]
        else:
            own, others = pending.writes, [pending.reads, pending.adds, pending.writes - {op}]
        if any(self.repetition.may_meet(before, op) for accesses in others for before in accesses):
            self.found.add(op)
            pending.clear()
        own.add(op)
