"""The operations of one block of a loop program, the order that their buffers force, and groups that run as one."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects.loop import AccessOperation, BufferOperation, HostOp

HOST = "host"
"""Host calls stand in one order, as if all of them wrote one place."""

Place = SSAValue | str


class BlockGraph:
    """Items are the operations of a block, numbered in program order; a group is a set of items that run as one.

    Two items keep their order if one writes a buffer that the other reads or writes. Groups start as single items, with
    their numbers; `joins` asks whether two of them may become one, `join` makes them one, and `order` lists the groups
    so that every dependence holds. Dependences are kept between groups.
    """

    def __init__(self, block: Block):
        self.items = [op for op in block.ops if not isinstance(op, BufferOperation)]
        self.number = {op: number for number, op in enumerate(self.items)}
        self.group_of = list(range(len(self.items)))
        self.members: dict[int, list[int]] = {number: [number] for number in self.group_of}
        self.successors: dict[int, set[int]] = {number: set() for number in self.group_of}
        self.predecessors: dict[int, set[int]] = {number: set() for number in self.group_of}
        self.ranks = list(self.group_of)
        self._connect()

    def trial(self) -> BlockGraph:
        """A copy, in which groups may be joined without joining them here."""
        copy = BlockGraph.__new__(BlockGraph)
        copy.items, copy.number = self.items, self.number
        copy.group_of = list(self.group_of)
        copy.members = {group: list(members) for group, members in self.members.items()}
        copy.successors = {group: set(following) for group, following in self.successors.items()}
        copy.predecessors = {group: set(before) for group, before in self.predecessors.items()}
        copy.ranks = list(self.ranks)
        return copy

    def replace(self, item: Operation, replacement: Operation) -> None:
        """Another operation in the place of an item, which needs and makes nothing more."""
        number = self.number.pop(item)
        self.items[number] = replacement
        self.number[replacement] = number

    def _connect(self) -> None:
        writer: dict[Place, int] = {}
        readers: dict[Place, list[int]] = defaultdict(list)
        for number, op in enumerate(self.items):
            reads, writes = places(op)
            for place in reads - writes:
                if place in writer:
                    self.depend(writer[place], number)
                readers[place].append(number)
            for place in writes:
                if place in writer:
                    self.depend(writer[place], number)
                for reader in readers.pop(place, []):
                    self.depend(reader, number)
                writer[place] = number

    def depend(self, first: int, second: int) -> None:
        """The group `second` must run after the group `first`, to which it does not lead."""
        if first == second:
            return
        self.successors[first].add(second)
        self.predecessors[second].add(first)
        ranks = self.ranks
        if ranks[first] > ranks[second]:
            after = self._closure(second, self.successors, lambda group: ranks[group] < ranks[first])
            before = self._closure(first, self.predecessors, lambda group: ranks[group] > ranks[second])
            moved = [*sorted(before, key=ranks.__getitem__), *sorted(after, key=ranks.__getitem__)]
            for group, rank in zip(moved, sorted(ranks[group] for group in moved), strict=True):
                ranks[group] = rank

    @staticmethod
    def _closure(start: int, following: Mapping[int, Collection[int]], inside: Callable[[int], bool]) -> set[int]:
        """A group and all that it leads to along groups that are inside."""
        seen, waiting = {start}, [start]
        while waiting:
            found = [group for group in following[waiting.pop()] if group not in seen and inside(group)]
            seen.update(found)
            waiting += found
        return seen

    def group(self, op: Operation) -> int:
        """The group that an operation of the block belongs to."""
        return self.group_of[self.number[op]]

    def joins(self, first: int, second: int) -> bool:
        """Whether two groups may become one: no chain of dependences leads from one to the other through a third."""
        start, end = sorted((first, second), key=self.ranks.__getitem__)
        return not self._reaches(self.successors[start] - {end}, (end,))

    def reaches(self, start: int, groups: Collection[int]) -> bool:
        """Whether one of the groups must run after the group `start`."""
        return self._reaches(self.successors[start], groups)

    def _reaches(self, first: Collection[int], targets: Collection[int]) -> bool:
        ranks = self.ranks
        last = max((ranks[target] for target in targets), default=-1)
        waiting = [group for group in first if ranks[group] <= last]
        seen = set(waiting)
        while waiting:
            group = waiting.pop()
            if group in targets:
                return True
            found = [after for after in self.successors[group] if after not in seen and ranks[after] <= last]
            seen.update(found)
            waiting += found
        return False

    def join(self, first: int, second: int) -> None:
        """Make two groups one, which keeps the number of `second`."""
        for item in self.members[first]:
            self.group_of[item] = second
        self.members[second] = sorted(self.members[second] + self.members.pop(first))
        before, after = self._cut(first)
        for group in before:
            self.depend(group, second)
        for group in after:
            self.depend(second, group)

    def drop(self, group: int) -> None:
        """Take a group of one item out: what waited for it waits for what it waited for, such as other writers of its
        buffer."""
        (_,) = self.members.pop(group)
        before, after = self._cut(group)
        for second in after:
            for first in before:
                self.depend(first, second)

    def _cut(self, group: int) -> tuple[set[int], set[int]]:
        """Take a group out of the graph; gives the groups before and after it."""
        before, after = self.predecessors.pop(group), self.successors.pop(group)
        for other in before:
            self.successors[other].discard(group)
        for other in after:
            self.predecessors[other].discard(group)
        return before, after

    def order(self) -> list[int]:
        """The groups in an order that keeps every dependence, otherwise by their last items."""
        waiting = {group: len(before) for group, before in self.predecessors.items()}
        ready = [(self.members[group][-1], group) for group, count in waiting.items() if not count]
        heapq.heapify(ready)
        found: list[int] = []
        while ready:
            _, group = heapq.heappop(ready)
            found.append(group)
            for following in self.successors[group]:
                waiting[following] -= 1
                if not waiting[following]:
                    heapq.heappush(ready, (self.members[following][-1], following))
        assert len(found) == len(self.members), "groups must not depend on each other in a circle"
        return found


def places(op: Operation) -> tuple[set[Place], set[Place]]:
    """The buffers that an operation reads and those that it writes, with everything inside it."""
    if isinstance(op, AccessOperation):
        operands, read = tuple(op.operands), len(op.in_types.data)
        host = (HOST,) if isinstance(op, HostOp) else ()
        return set(operands[:read]), {*operands[read:], *host}
    reads: set[Place] = set()
    writes: set[Place] = set(op.operands)
    for inner in [inner for region in op.regions for block in region.blocks for inner in block.ops]:
        read, written = places(inner)
        reads |= read
        writes |= written
    return reads, writes
