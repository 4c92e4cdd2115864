"""The kernel of a fold: with what its first values are made of, and with what is made of its last ones.

Online softmax over tiles is one kernel per step: the first tile, which is partial, before the loop, the loop, the
division after it. Leaves that make first values, and nothing else, come in; leaves that read last values come in until
what is written has one shape.

A kernel asks for values block by block. So a fold is one only if all that it carries has the axes of one of its values,
if no block of that is made of another one, and if no sum or product in the kernel is asked for along other axes, save
along some that one block holds (`t mod 64 + 1` elements): all reductions along such an axis share its block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import (
    AllocOp,
    BodyOperation,
    BufferAccess,
    ComputeOp,
    FoldOp,
    ForOp,
    KernelOp,
    ProgramOp,
    YieldOp,
    enclosing_loops,
)
from tempo_ir.dialects.types import Extent, shape_of
from tempo_ir.index import Const, Domain, IndexExpressionError, compare
from tempo_ir.lowering.formation.block_graph import BlockGraph
from tempo_ir.lowering.formation.folding import fold_of
from tempo_ir.lowering.formation.fusion import LARGEST, Group, ordered
from tempo_ir.lowering.formation.kernels import kernel_of
from tempo_ir.lowering.formation.leaf import Leaf, row_of
from tempo_ir.lowering.formation.rules import Cost
from tempo_ir.lowering.kernels.axis_classes import Axis, AxisClasses, doubled, folds_of, reduced_classes, values_of
from tempo_ir.passes.simplify.shape import takes_all

OPEN_BLOCK, FIXED_BLOCK = 64, 256
"""Elements of an open axis, and of a fixed one, that one block holds on every target."""

_MADE_ONCE = (sdg.ContractOp, sdg.ReduceOp, sdg.ArgReduceOp, sdg.SoftmaxOp, sdg.ExpOp, sdg.PowOp)


@dataclass
class Folds:
    """The folds of a block, with the leaves that come into their kernels."""

    block: Block
    graph: BlockGraph
    groups: list[Group] = field(default_factory=list[Group])
    loops: dict[Operation, ForOp] = field(default_factory=dict[Operation, ForOp])
    """By leaf with a fold the loop that it stands for, which is gone."""

    def form_kernels(self) -> dict[Operation, Sequence[Operation]]:
        """Make the kernels; the leaves that each computes, in their order."""
        if not self.groups:
            return {}
        graph = self.graph
        kernels: dict[int, Operation] = {}
        leaves: dict[Operation, Sequence[Operation]] = {}
        for group in self.groups:
            taken = ordered(group)
            kernel = kernel_of(group, taken, emptied=True)
            kernels[graph.group(group.leaves[0].op)] = kernel
            leaves[kernel] = [leaf.op for leaf in taken]
        order: list[Operation] = []
        for number in graph.order():
            order += [kernels[number]] if number in kernels else [graph.items[item] for item in graph.members[number]]
        for op in graph.items:
            op.detach()
        self.block.add_ops(order)
        for op in {inner for members in leaves.values() for inner in members}:
            op.erase()
        return leaves


def fold_loops(block: Block, program: ProgramOp) -> Folds | None:
    """Put leaves with folds in the place of the loops of a block that can be kernels, and say what comes into them;
    None where no loop is a fold."""
    loops: dict[ComputeOp, ForOp] = {}
    for loop in [op for op in block.ops if isinstance(op, ForOp)]:
        if (leaf := fold_of(loop, program)) is not None:
            block.insert_op_before(leaf, loop)
            loop.detach()
            loops[leaf] = loop
    if not loops:
        return None
    folds = Folds(block, BlockGraph(block))
    gone = {op for loop in loops.values() for op in loop.walk()}
    for leaf, loop in loops.items():
        if (growth := _best(leaf, gone, folds.graph, program)) is not None:
            folds.graph = growth.graph
            folds.groups.append(growth.group())
            folds.loops[leaf] = loop
            continue
        block.insert_op_before(loop, leaf)
        folds.graph.replace(leaf, loop)
        gone -= set(loop.walk())
        leaf.detach()
        leaf.erase()
    for loop in loops.values():
        if loop.parent is None:
            loop.erase()
    return folds


def _best(leaf: ComputeOp, gone: set[Operation], graph: BlockGraph, program: ProgramOp) -> _Growth | None:
    """What makes a kernel with most leaves; None where not even the fold alone can be one."""
    for makers, readers in ((True, True), (False, True), (True, False), (False, False)):
        growth = _Growth(leaf, gone, graph.trial())
        if readers:
            growth.add_readers()
        if makers:
            growth.add_makers()
        if not growth.has_one_shape():
            continue
        group = growth.group()
        kernel = kernel_of(group, ordered(group), emptied=False)
        serves = is_one_kernel(kernel, leaf, program)
        kernel.erase()
        if serves:
            return growth
    return None


@dataclass
class _Growth:
    """Leaves that come into the kernel of a fold."""

    leaf: ComputeOp
    gone: set[Operation]
    """The loops that folds stand for, which read and write nothing any more."""
    graph: BlockGraph
    members: list[ComputeOp] = field(default_factory=list[ComputeOp])

    def __post_init__(self) -> None:
        self.members = [self.leaf]

    def _users(self, buffer: SSAValue) -> list[Operation]:
        """Who reads or writes a buffer."""
        return [op for op in dict.fromkeys(use.operation for use in buffer.uses) if op not in self.gone]

    def _join(self, op: ComputeOp) -> bool:
        """Take a leaf in, if nothing else has to run between; whether it is in."""
        own, others = self.graph.group(op), self.graph.group(self.leaf)
        if len(self.members) >= LARGEST or not self.graph.joins(own, others):
            return False
        self.graph.join(own, others)
        self.members.append(op)
        return True

    def _fitting(self, ops: Iterable[Operation]) -> list[ComputeOp]:
        """The leaves among some operations that may be computed in the kernel, in program order."""
        fitting = [
            op
            for op in dict.fromkeys(ops)
            if isinstance(op, ComputeOp) and op in self.graph.number and op not in self.members and len(op.outs) == 1
            if self._fits(Leaf.of(op))
            if len(self.graph.members[self.graph.group(op)]) == 1  # in no other fold's kernel
        ]
        return sorted(fitting, key=lambda op: self.graph.number[op])

    def _fits(self, leaf: Leaf) -> bool:
        """Whether a kernel may hold a leaf, at the point of this fold where it depends on that."""
        return leaf.cost is not Cost.ALONE and (not leaf.depends_on_point or leaf.op.point == self.leaf.point)

    def add_makers(self) -> None:
        """Take in the leaves that make the first values of the fold, and nothing else; and what costs little of the
        rest that its readers need."""
        (fold,) = folds_of(self.leaf.body.block)
        arguments = zip(self.leaf.body.block.args, self.leaf.reads, strict=True)
        waiting = [(access, Cost.DEAR) for argument, access in arguments if argument not in fold.reads]
        kept = {access.buffer for access in self.leaf.reads} - {access.buffer for access, _ in waiting}
        waiting += [(access, Cost.LIGHT) for member in self.members[1:] for access in member.reads]
        while waiting:
            access, dearest = waiting.pop()
            users = self._users(access.buffer)
            writers = [op for op in users if isinstance(op, BodyOperation) and access.buffer in op.outs]
            if not isinstance(access.buffer.owner, AllocOp) or access.buffer in kept or len(writers) != 1:
                continue
            for writer in self._fitting(writers):
                alone = not set(users) - {writer, *self.members}
                if alone and Leaf.of(writer).cost <= dearest and writer.writes[0] == access and self._join(writer):
                    waiting += [(read, dearest) for read in writer.reads]

    def add_readers(self) -> None:
        """Take in what is made of the last values, as long as what is written has several shapes, or the one value
        that is written has one reader, which is cheap and of its shape."""
        while (reader := self._next_reader()) is not None and self._join(reader):
            pass

    def _next_reader(self) -> ComputeOp | None:
        needed = self.needed()
        shapes = {shape_of(access.type) for access in needed}
        readers = [op for access in needed for op in self._users(access.buffer) if op not in self.members]
        leaves = [
            op for op in self._fitting(readers) if Leaf.of(op).cost <= Cost.HEAVY and self._reads_whole(op, needed)
        ]
        if len(shapes) > 1:
            return leaves[0] if leaves else None
        if len(readers) != 1 or not leaves or shape_of(leaves[0].writes[0].type) not in shapes:
            return None
        return leaves[0]

    @staticmethod
    def _reads_whole(op: ComputeOp, needed: Sequence[BufferAccess]) -> bool:
        rows = {access.buffer: access for access in needed}
        return all(rows.get(access.buffer, access) == access for access in op.reads)

    def needed(self) -> list[BufferAccess]:
        """The rows that others read, or the caller gets."""
        written = [write for member in self.members for write in member.writes]
        return [
            write
            for write in written
            if not isinstance(write.buffer.owner, AllocOp) or set(self._users(write.buffer)) - set(self.members)
        ]

    def has_one_shape(self) -> bool:
        """Whether all that is written has the shape of one block after the other."""
        return len({shape_of(access.type) for access in self.needed()}) == 1

    def group(self) -> Group:
        """The members, in program order, and what of theirs is written."""
        members = sorted(self.members, key=lambda op: self.graph.number[op])
        needed = self.needed()
        return Group(
            [Leaf.of(op) for op in members], shape_of(needed[0].type), {}, {row_of(access) for access in needed}
        )


def is_one_kernel(kernel: KernelOp, leaf: ComputeOp, program: ProgramOp) -> bool:
    """Whether one loop carries all values of the fold, and no sum or product is computed twice."""
    block = kernel.body.block
    classes, values = AxisClasses.of(block), values_of(block)
    excluded = doubled(classes, values)
    (fold,) = folds_of(block)
    carried = [{axis for axis in classes.of_value(value) if axis is not None} for value in fold.finals]
    widest = max(carried, key=len)
    if widest & excluded or not all(axes <= widest for axes in carried) or not _stays_in_place(fold, classes, widest):
        return False
    extents: dict[Axis, set[Extent]] = {}
    for value in values:
        for axis, extent in zip(classes.of_value(value), shape_of(value.type), strict=True):
            if axis is not None:
                extents.setdefault(axis, set()).add(extent)
    ops = [op for inner in (block, fold.body.block) for op in inner.ops if isinstance(op, _MADE_ONCE)]
    asked = {axis for op in ops for axis in classes.of_value(op.results[0]) if axis is not None} - widest
    return not asked & excluded and all(_lies_in_one_block(extents[axis], leaf, program) for axis in asked)


def _stays_in_place(fold: FoldOp, classes: AxisClasses, carried: set[Axis]) -> bool:
    """Whether a block of what is carried is made of that block alone: no op that reads it, or what is made of it, sums
    along its axes or moves along them (`g @ w`, `g / sum(g)`, `concat(g[1:], g[:1])`)."""
    block = fold.body.block
    made_of: set[SSAValue] = set(block.args[: len(fold.carried)])
    for op in block.ops:
        read = [operand for operand in op.operands if operand in made_of]
        if not read or isinstance(op, YieldOp):
            continue
        made_of.update(op.results)
        if carried & set(reduced_classes(op, classes).values()):
            return False
        kept = {axis for result in op.results for axis in classes.of_value(result)}
        for operand in read:
            for number, axis in enumerate(classes.of_value(operand)):
                if axis in carried and (axis not in kept or _moves_along(op, number)):
                    return False
    return True


def _moves_along(op: Operation, axis: int) -> bool:
    """Whether an op puts the elements of its operand at other places of an axis that its result has too."""
    match op:
        case sdg.ReverseOp():
            return op.axis == axis
        case sdg.SliceOp():
            return not takes_all(op.take[axis], shape_of(op.operand.type)[axis])
        case sdg.PadOp():
            return Const(0) != op.low[axis] or Const(0) != op.high[axis]
        case _:
            return False


def _lies_in_one_block(extents: Iterable[Extent], leaf: ComputeOp, program: ProgramOp) -> bool:
    """Whether an axis is known to be no longer than a block; it may have been written in several ways."""
    from tempo_ir.index import isl

    loops = enclosing_loops(leaf)
    domain = Domain(tuple(loop.iterator for loop in loops), tuple((o.iterator, o.lower, o.upper) for o in loops))
    for extent in extents:
        if isinstance(extent, int):
            if extent > FIXED_BLOCK:
                return False
            continue
        try:
            if not isl.prove(compare("<=", extent, OPEN_BLOCK), program.space, domain):
                return False
        except IndexExpressionError:
            return False
    return True
