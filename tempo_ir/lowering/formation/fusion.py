"""Growing groups of leaves: a leaf joins the group of its readers where that costs nothing.

Leaves are taken from the last to the first, so that a leaf's readers have found their groups before it. It joins one

- if the group may hold it without running anything in between (`BlockGraph.joins`),
- if its cost allows the worst read between it and what the kernel writes (`rules.DEAREST`): a contraction is only
  computed at the coordinates of what is written,
- if what the kernel writes keeps one shape: a value that is needed elsewhere too must be read at its own coordinates.

A leaf that only moves elements is copied into every group that reads it. So is a norm that products read: it is made of
rows that are in memory anyway, and computing it again is little beside the products (`prologues`).

Where kernels are joined along rows afterwards (`loop_fuse_rows`) a sum over all rows, as the gradient of weights is, is
not joined with what goes on with it: it is to be made with its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import AllocOp, BodyOperation, BufferAccess, ComputeOp, enclosing_loops
from tempo_ir.dialects.types import Shape, shape_of
from tempo_ir.index import Expr, free_symbols
from tempo_ir.lowering.formation.block_graph import BlockGraph
from tempo_ir.lowering.formation.leaf import Leaf, Row, row_of
from tempo_ir.lowering.formation.prologues import prologues
from tempo_ir.lowering.formation.rules import DEAREST, Cost, Read, is_amortised, is_query, is_weighted_sum, reads_of

Readers = dict[int, list[tuple[Leaf, SSAValue]]]
"""Per group the leaves in it that read a value, with the arguments that stand for it."""

LARGEST = 64
"""Leaves of one kernel: beyond this a kernel only gets harder to compile."""


@dataclass
class Group:
    """Leaves that become one kernel, in program order, and the values among them that others need."""

    leaves: list[Leaf]
    shape: Shape
    asked: dict[Leaf, Read]
    """The worst read between each leaf and what the kernel writes; SAME of those that are only written."""
    written: set[Row]
    copies: list[Leaf] = field(default_factory=list[Leaf])
    """Leaves that stay where they are and are computed here too."""

    @staticmethod
    def of(leaf: Leaf) -> Group:
        """A leaf alone, of one value."""
        (value,), (write,) = leaf.yielded, leaf.writes
        return Group([leaf], shape_of(value.type), {leaf: Read.SAME}, {row_of(write)})


def form_groups(block: Block, *, sums_apart: bool = False) -> tuple[BlockGraph, dict[int, Group]]:
    """The groups of a block, by their number in the graph; operations that are no leaves have none. With `sums_apart`
    what goes on with a sum over all rows is none of its group."""
    growth = _Growth(block, sums_apart)
    for op, leaf in reversed(growth.leaves.items()):
        if isinstance(op, ComputeOp) and len(leaf.writes) == 1:
            growth.holders[leaf] = growth.place(leaf)
    return growth.graph, growth.groups


class _Growth:
    """The groups of a block while leaves find theirs; `holders` are the groups that a leaf is in, `copied` the leaves
    that each product computes again."""

    def __init__(self, block: Block, sums_apart: bool):
        self.sums_apart = sums_apart
        self.graph = BlockGraph(block)
        self.leaves: dict[Operation, Leaf] = {
            op: Leaf.of(op) for op in self.graph.items if isinstance(op, BodyOperation)
        }
        self.copied = prologues(self.leaves)
        self.groups: dict[int, Group] = {}
        self.holders: dict[Leaf, Sequence[int]] = {}

    def place(self, leaf: Leaf) -> Sequence[int]:
        """Put a leaf into a group of its readers, copies into all of them, or a group of its own; who holds it."""
        own = self.graph.group(leaf.op)
        alone = leaf.cost is Cost.ALONE or (self.sums_apart and _sums_all_rows(leaf))
        readers = None if alone else self._readers(leaf)
        is_little = leaf.cost is Cost.FREE or leaf in self.copied
        if readers and is_little and self._copy_everywhere(leaf, readers):
            return list(readers)
        if readers:
            needed = len(readers) > 1 or not _is_temporary(leaf) or _is_read_elsewhere(leaf, readers)
            for number in sorted(readers, key=lambda group: self.graph.members[group][0]):
                asked = self._accepted(number, leaf, readers[number], needed)
                if asked is not None and self.graph.joins(own, number):
                    _add(self.groups[number], leaf, asked, needed)
                    self.graph.join(own, number)
                    return [number]
        self.groups[own] = Group.of(leaf)
        return [own]

    def _readers(self, leaf: Leaf) -> Readers | None:
        """Per group of this block the leaves that read exactly the rows that the leaf writes, with their arguments.

        None where a kernel may not hold the value: the block reads other rows of the buffer, or writes it elsewhere.
        """
        (write,) = leaf.writes
        found: Readers = {}
        number = self.graph.number
        users = dict.fromkeys(op for use in write.buffer.uses if (op := use.operation) in number)
        for reader in [self.leaves[op] for op in sorted(users, key=number.__getitem__) if op in self.leaves]:
            if reader is leaf:
                continue
            if any(other.buffer is write.buffer for other in reader.writes):
                return None
            for argument, access in zip(reader.arguments, reader.reads, strict=True):
                if access.buffer is not write.buffer:
                    continue
                if access.index != write.index or access.type != write.type:
                    return None
                for group in self.holders.get(reader, ()):
                    found.setdefault(group, []).append((reader, argument))
        return found

    def _accepted(self, number: int, leaf: Leaf, readers: Sequence[tuple[Leaf, SSAValue]], needed: bool) -> Read | None:
        """The worst read between a leaf's value and what a kernel writes that may hold it; None of one that may not."""
        group = self.groups[number]
        alone = group.leaves[-1].cost is Cost.ALONE
        if len(group.leaves) + len(group.copies) >= LARGEST or alone or not _points_agree(group, leaf):
            return None
        asked = max(_asked(group, leaf, reader, argument) for reader, argument in readers)
        if leaf.cost > DEAREST[asked]:
            return None
        if asked is Read.AMORTISED and leaf.cost is not Cost.FREE and leaf not in self.copied:
            return None
        fits = not needed or (asked is Read.SAME and shape_of(leaf.yielded[0].type) == group.shape)
        return asked if fits else None

    def _copy_everywhere(self, leaf: Leaf, readers: Readers) -> bool:
        """Compute a value that costs little in each group that reads it; whether nobody else needs it.

        What it reads is still there: before storage is planned every row is written once.
        """
        if not _is_temporary(leaf) or _is_read_elsewhere(leaf, readers):
            return False
        own = self.graph.group(leaf.op)
        sources = self.graph.predecessors[own]
        accepting: dict[int, Read] = {}
        for number, pairs in readers.items():
            asked = self._accepted(number, leaf, pairs, needed=False)
            if asked is None or self.graph.reaches(number, sources):
                return False
            accepting[number] = asked
        for number, asked in accepting.items():
            self.groups[number].asked[leaf] = asked
            self.groups[number].copies.insert(0, leaf)
            for source in sources:
                self.graph.depend(source, number)
        self.graph.drop(own)
        return True


def _sums_all_rows(leaf: Leaf) -> bool:
    """Whether a leaf sums over an axis of which a call knows the extent, and no iteration, to what has no such axis."""
    if not isinstance(leaf.work, sdg.ContractOp | sdg.SumOp):
        return False
    counted = {loop.iterator for loop in enclosing_loops(leaf.op)}
    summed = [extent for argument in leaf.arguments for extent in shape_of(argument.type) if isinstance(extent, Expr)]
    known = all(isinstance(extent, int) for extent in shape_of(leaf.yielded[0].type))
    return known and bool(summed) and all(counted.isdisjoint(free_symbols(extent)) for extent in summed)


def _is_temporary(leaf: Leaf) -> bool:
    return isinstance(leaf.buffer.owner, AllocOp)


def _is_read_elsewhere(leaf: Leaf, readers: Readers) -> bool:
    inside = {leaf.op, *(reader.op for pairs in readers.values() for reader, _ in pairs)}
    return any(use.operation not in inside for use in leaf.buffer.uses)


def _asked(group: Group, leaf: Leaf, reader: Leaf, argument: SSAValue) -> Read:
    asked = group.asked[reader]
    if asked is Read.WEIGHTS and isinstance(reader.work, sdg.SoftmaxOp):
        return asked
    if asked is Read.SAME and is_weighted_sum(reader.work, argument, leaf.work):
        return Read.WEIGHTS
    if asked is Read.WEIGHTS and any(is_query(reader.work, argument, other.work) for other in _reading(group, reader)):
        return Read.HELD
    if is_amortised(reader.work, argument):
        return max(asked, Read.AMORTISED)
    return max(asked, *reads_of(argument))


def _reading(group: Group, leaf: Leaf) -> list[Leaf]:
    """The leaves of a group that read what a leaf writes."""
    others = [other for other in group.leaves if other is not leaf]
    return [other for other in others if any(access.buffer is leaf.buffer for access in other.reads)]


def _points_agree(group: Group, leaf: Leaf) -> bool:
    """Whether the leaves whose value, or whose error, depends on the point still stand at one point with another."""
    if not leaf.depends_on_point:
        return True
    return all(other.op.point == leaf.op.point for other in (*group.leaves, *group.copies) if other.depends_on_point)


def _add(group: Group, leaf: Leaf, asked: Read, needed: bool) -> None:
    group.asked[leaf] = asked
    group.leaves.insert(0, leaf)
    if needed:
        group.written.add(row_of(leaf.writes[0]))


def external_reads(leaves: Sequence[Leaf]) -> list[BufferAccess]:
    """What the kernel of some leaves reads from memory, each access once."""
    produced = {row_of(write) for leaf in leaves for write in leaf.writes}
    accesses = [access for leaf in leaves for access in leaf.reads if row_of(access) not in produced]
    return list(dict.fromkeys(accesses))


def ordered(group: Group) -> list[Leaf]:
    """The leaves and copies of a group, each after what it reads."""
    pending = [*group.copies, *group.leaves]
    writer = {row_of(write): leaf for leaf in pending for write in leaf.writes}
    found: dict[Leaf, None] = {}
    waiting = list(reversed(pending))
    while waiting:
        leaf = waiting[-1]
        read = [writer[row_of(access)] for access in leaf.reads if row_of(access) in writer]
        missing = [other for other in read if other not in found and other is not leaf]
        if missing:
            waiting += missing
            continue
        found[waiting.pop()] = None
    return list(found)
