"""What happens to the cells of a buffer, as the checker of storage sees it; nothing here is shared with the planner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.loop import BufferDim, BufferType, ForOp, ProgramOp
from tempo_ir.index.expr import Index
from tempo_ir.lowering.instances import Instance


@dataclass(frozen=True)
class Touch:
    """An instance that touches `cells`; `moment` orders reads and writes within it."""

    instance: Instance
    cells: Index
    moment: int

    def key(self, ranks: Mapping[int, int]) -> object:
        """What the answers depend on."""
        return self.instance.frame, self.cells, self.moment, tuple([ranks[number] for number in self.instance.time])


def first_and_last(reads: Iterable[Touch]) -> list[Touch]:
    """
    Of reads of the same cells in the same iterations the first and the last.

    What is asked of a read is that it comes after some times, or before others, of its cells: what holds of the two
    holds of those between.
    """
    alike: dict[object, list[Touch]] = {}
    for touch in reads:
        instance = touch.instance
        alike.setdefault((instance.time[:-1], instance.frame, touch.cells), []).append(touch)
    found: list[Touch] = []
    for same in alike.values():
        same.sort(key=lambda touch: (touch.instance.time[-1], touch.moment))
        found += same if len(same) < 3 else (same[0], same[-1])
    return found


@dataclass
class Content:
    """What happens to the cells of one buffer; `rank` is the number of coordinates, `stored` those that it stores."""

    buffer: SSAValue
    rank: int
    stored: tuple[int, ...]
    writes: list[Touch] = field(default_factory=list[Touch])
    reads: list[Touch] = field(default_factory=list[Touch])
    frees: list[Touch] = field(default_factory=list[Touch])
    kept: list[Index] = field(default_factory=list[Index])
    shown: list[Touch] = field(default_factory=list[Touch])
    """What was written of the array of the caller that the buffer is, before."""

    @property
    def touches(self) -> list[Touch]:
        """All of them."""
        return [*self.writes, *self.reads, *self.frees, *self.shown]

    @property
    def dims(self) -> tuple[BufferDim, ...]:
        """How each stored coordinate is stored."""
        assert isinstance(self.buffer.type, BufferType)
        return self.buffer.type.dims

    @property
    def keeps_all(self) -> bool:
        """Whether every cell has a place of its own."""
        return len(self.stored) == self.rank and all(dim.storage != "ring" for dim in self.dims)

    def ranks(self) -> dict[int, int]:
        """The numbers of loops and operations, counted anew."""
        numbers = sorted({number for touch in self.touches for number in touch.instance.time})
        return {number: rank for rank, number in enumerate(numbers)}

    def key(self) -> object:
        """Equal keys have equal answers."""
        ranks = self.ranks()
        parts = (tuple(t.key(ranks) for t in part) for part in (self.writes, self.reads, self.frees, self.shown))
        depth = len(loops_round(self.buffer))
        return self.rank, self.stored, self.dims, depth, tuple(self.kept), *parts


def loops_round(buffer: SSAValue) -> list[ForOp]:
    """The loops in which a buffer is made."""
    found: list[ForOp] = []
    current = buffer.owner
    while isinstance(current, Operation) and not isinstance(current, ProgramOp):
        if isinstance(current, ForOp):
            found.append(current)
        current = current.parent_op()
    return found
