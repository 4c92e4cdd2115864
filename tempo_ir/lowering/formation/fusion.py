"""Growing groups of leaves: a leaf joins the group of its readers where that costs nothing.

Leaves are taken from the last to the first, so that a leaf's readers have found their groups before it. It joins one

- if the group may hold it without running anything in between (`BlockGraph.joins`),
- if its cost allows the worst read between it and what the kernel writes (`rules.DEAREST`): a contraction is only
  computed at the coordinates of what is written,
- if what the kernel writes keeps one shape: a value that is needed elsewhere too must be read at its own coordinates.

A leaf that only moves elements is copied into every group that reads it. So is a norm that products read: it is made of
rows that are in memory anyway, and computing it again is little beside the products (`prologues`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import AllocOp, BodyOperation, BufferAccess, ComputeOp
from tempo_ir.dialects.types import Shape, shape_of
from tempo_ir.index import Index
from tempo_ir.lowering.formation.block_graph import BlockGraph
from tempo_ir.lowering.formation.prologues import prologues
from tempo_ir.lowering.formation.rules import (
    DEAREST,
    Cost,
    Read,
    cost_of,
    is_amortised,
    is_query,
    is_weighted_sum,
    reads_of,
    work_of,
)

Row = tuple[SSAValue, Index]
"""A buffer and the rows of it that are accessed."""

Readers = dict[int, list[tuple[BodyOperation, SSAValue]]]
"""Per group the leaves in it that read a value, with the arguments that stand for it."""

AT_A_POINT = (
    sdg.RandomOp, sdg.IndexOp, sdg.ArangeOp, sdg.FloordivOp, sdg.ModOp, sdg.GatherOp, sdg.ScatterAddOp,
)  # fmt: skip

LARGEST = 64
"""Leaves of one kernel: beyond this a kernel only gets harder to compile."""


@dataclass
class Group:
    """Leaves that become one kernel, in program order, and the values among them that others need."""

    leaves: list[BodyOperation]
    shape: Shape
    asked: dict[BodyOperation, Read]
    """The worst read between each leaf and what the kernel writes; SAME of those that are only written."""
    written: set[Row]
    copies: list[BodyOperation] = field(default_factory=list[BodyOperation])
    """Leaves that stay where they are and are computed here too."""


def form_groups(block: Block) -> tuple[BlockGraph, dict[int, Group]]:
    """The groups of a block, by their number in the graph; operations that are no leaves have none."""
    graph = BlockGraph(block)
    groups: dict[int, Group] = {}
    holders: dict[BodyOperation, list[int]] = {}
    copied = prologues(graph)
    for op in reversed(graph.items):
        if isinstance(op, ComputeOp) and len(op.outs) == 1:
            holders[op] = _place(op, graph, groups, _readers(op, graph, holders), op in copied)
    return graph, groups


def _place(
    leaf: BodyOperation, graph: BlockGraph, groups: dict[int, Group], readers: Readers | None, is_copied: bool
) -> list[int]:
    """Put a leaf into a group of its readers, copies into all of them, or a group of its own; who holds it."""
    own = graph.group(leaf)
    (value,) = leaf.yielded
    cost = cost_of(leaf)
    if cost is Cost.ALONE or readers is None:
        groups[own] = Group([leaf], shape_of(value.type), {leaf: Read.SAME}, {row_of(leaf.writes[0])})
        return [own]
    if (cost is Cost.FREE or is_copied) and _copy_everywhere(leaf, cost, graph, groups, readers, is_copied):
        return list(readers)
    for number in sorted(readers, key=lambda n: graph.members[n][0]):
        needed = len(readers) > 1 or not _is_temporary(leaf) or _is_read_elsewhere(leaf, readers)
        if _accepts(groups[number], leaf, cost, readers[number], needed, is_copied) and graph.joins(own, number):
            _add(groups[number], leaf, readers[number], needed)
            graph.join(own, number)
            return [number]
    groups[own] = Group([leaf], shape_of(value.type), {leaf: Read.SAME}, {row_of(leaf.writes[0])})
    return [own]


def _readers(leaf: BodyOperation, graph: BlockGraph, holders: Mapping[BodyOperation, Sequence[int]]) -> Readers | None:
    """Per group of this block the leaves that read exactly the rows that the leaf writes, with their arguments.

    None where a kernel may not hold the value: the block reads other rows of the buffer, or writes it elsewhere.
    """
    (write,) = leaf.writes
    found: dict[int, list[tuple[BodyOperation, SSAValue]]] = {}
    users = dict.fromkeys(use.operation for use in write.buffer.uses if use.operation in graph.number)
    for reader in sorted(users, key=lambda op: graph.number[op]):
        if reader is leaf or not isinstance(reader, BodyOperation):
            continue
        if write.buffer in reader.outs:
            return None
        for argument, access in zip(reader.body.block.args, reader.reads, strict=True):
            if access.buffer is not write.buffer:
                continue
            if access.index != write.index or access.type != write.type:
                return None
            for number in holders.get(reader, ()):
                found.setdefault(number, []).append((reader, argument))
    return found


def _is_temporary(leaf: BodyOperation) -> bool:
    return isinstance(leaf.outs[0].owner, AllocOp)


def _is_read_elsewhere(leaf: BodyOperation, readers: Readers) -> bool:
    inside = {reader for pairs in readers.values() for reader, _ in pairs}
    return any(use.operation is not leaf and use.operation not in inside for use in leaf.outs[0].uses)


def _accepts(
    group: Group,
    leaf: BodyOperation,
    cost: Cost,
    readers: Sequence[tuple[BodyOperation, SSAValue]],
    needed: bool,
    is_copied: bool,
) -> bool:
    if len(group.leaves) + len(group.copies) >= LARGEST or _is_alone(group) or not _points_agree(group, leaf):
        return False
    asked = _worst(group, leaf, readers)
    if cost > DEAREST[asked] or (asked is Read.AMORTISED and cost is not Cost.FREE and not is_copied):
        return False
    return not needed or (asked is Read.SAME and shape_of(leaf.yielded[0].type) == group.shape)


def _worst(group: Group, leaf: BodyOperation, readers: Sequence[tuple[BodyOperation, SSAValue]]) -> Read:
    """The worst read between a value and what the kernel writes."""
    return max(_asked(group, leaf, reader, argument) for reader, argument in readers)


def _asked(group: Group, leaf: BodyOperation, reader: BodyOperation, argument: SSAValue) -> Read:
    asked = group.asked[reader]
    if asked is Read.WEIGHTS and isinstance(work_of(reader), sdg.SoftmaxOp):
        return asked
    if is_weighted_sum(reader, argument, leaf) and asked is Read.SAME:
        return Read.WEIGHTS
    if asked is Read.WEIGHTS and any(is_query(reader, argument, other) for other in _reading(group, reader)):
        return Read.HELD
    if is_amortised(reader, argument):
        return max(asked, Read.AMORTISED)
    return max(asked, *reads_of(reader, argument))


def _reading(group: Group, leaf: BodyOperation) -> list[BodyOperation]:
    """The leaves of a group that read what a leaf writes."""
    return [other for other in group.leaves if other is not leaf and leaf.outs[0] in other.ins]


def _is_alone(group: Group) -> bool:
    """Whether the leaf that a group grew from is one that no other joins."""
    return cost_of(group.leaves[-1]) is Cost.ALONE


def _points_agree(group: Group, leaf: BodyOperation) -> bool:
    """Whether the leaves whose value, or whose error, depends on the point still stand at one point with another."""
    if not depends_on_point(leaf):
        return True
    return all(other.point == leaf.point for other in (*group.leaves, *group.copies) if depends_on_point(other))


def depends_on_point(leaf: BodyOperation) -> bool:
    """Whether the value depends on more than what is read, or an error at run time names the point."""
    return isinstance(work_of(leaf), AT_A_POINT)


def _add(group: Group, leaf: BodyOperation, readers: Sequence[tuple[BodyOperation, SSAValue]], needed: bool) -> None:
    group.asked[leaf] = _worst(group, leaf, readers)
    group.leaves.insert(0, leaf)
    if needed:
        group.written.add(row_of(leaf.writes[0]))


def _copy_everywhere(
    leaf: BodyOperation,
    cost: Cost,
    graph: BlockGraph,
    groups: dict[int, Group],
    readers: Readers,
    is_copied: bool,
) -> bool:
    """Compute a value that costs little in each group that reads it; whether nobody else needs it.

    What it reads is still there: before storage is planned every row is written once.
    """
    own = graph.group(leaf)
    sources = graph.predecessors[own]
    accepting = [
        number
        for number, pairs in readers.items()
        if _accepts(groups[number], leaf, cost, pairs, False, is_copied) and not graph.reaches(number, sources)
    ]
    everywhere = len(accepting) == len(readers) and _is_temporary(leaf) and not _is_read_elsewhere(leaf, readers)
    if not everywhere or not readers:
        return False
    for number in accepting:
        groups[number].asked[leaf] = _worst(groups[number], leaf, readers[number])
        groups[number].copies.insert(0, leaf)
        for source in sources:
            graph.depend(source, number)
    graph.drop(own)
    return True


def external_reads(leaves: Sequence[BodyOperation]) -> list[BufferAccess]:
    """What the kernel of some leaves reads from memory, each access once."""
    produced = {row_of(write) for leaf in leaves for write in leaf.writes}
    accesses = [access for leaf in leaves for access in leaf.reads if row_of(access) not in produced]
    return list(dict.fromkeys(accesses))


def row_of(access: BufferAccess) -> Row:
    """What is accessed: a kernel that writes `%h[t]` may read `%h[0:t]` from memory."""
    return access.buffer, access.index


def ordered(group: Group) -> list[BodyOperation]:
    """The leaves and copies of a group, each after what it reads."""
    pending = [*group.copies, *group.leaves]
    writer = {row_of(write): leaf for leaf in pending for write in leaf.writes}
    found: dict[BodyOperation, None] = {}
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
