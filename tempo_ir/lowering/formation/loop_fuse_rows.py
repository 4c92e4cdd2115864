"""loop-fuse-rows: kernels that go on with the rows of one another become one kernel, computed block by block of rows.

Before, over 64 * T rows:
```mlir
loop.kernel ins(%x = %obs, %w = %0, %b = %1) outs(%h) { /* tanh(x @ w + b) */ }
loop.compute ins(%a = %h, %b = %2) outs(%y) { sdg.contract "bk,nk->bn" ... }
loop.kernel ins(%a = %y, %b = %target) outs(%d) { /* y - target */ }
loop.compute ins(%a = %h, %b = %d) outs(%g) { sdg.contract "bk,bn->nk" ... }
```
After:
```mlir
loop.kernel ins(%x = %obs, %w = %0, %b = %1, %c = %2, %target_1 = %target) outs(%g) {
  %3 = sdg.contract "bk,nk->bn" %x, %w ...    // 64 rows at a time: what is made of them stays in the nearest cache,
  ...                                         // is written where somebody else reads it,
  %g_1 = sdg.contract "bk,bn->nk" %h, %d ...  // and is summed as it comes
  loop.yield %g_1
}
```
The forward pass of a network, its loss, the backward pass and the gradients of its weights are one kernel; of the
arrays with a row per sample nothing is left but what is read elsewhere.

Which axis is that of rows, and which ops keep it, `row_bodies` says. Kernels join where one reads what another writes,
if nothing has to run in between; of two that only read the same each stays alone. It does not apply to rows of a few,
to columns or weights that do not lie in a cache, to what reads a sum over rows, to a kernel with one product alone, to
draws, to what may fail, nor to weights, whose rows are columns of what is made of them. loop-lower-kernels{target=cpu}
takes such kernels, GPUs do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import DONATES, AllocOp, BodyOperation, BufferAccess, OutputOp, ParameterOp, ProgramOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.index import Const, Slice
from tempo_ir.lowering.formation.before import noted
from tempo_ir.lowering.formation.block_graph import BlockGraph
from tempo_ir.lowering.formation.check import check_kernels
from tempo_ir.lowering.formation.fusion import Group
from tempo_ir.lowering.formation.leaf import Leaf, Row, row_of
from tempo_ir.lowering.formation.loop_form_kernels import blocks_of, rebuild
from tempo_ir.lowering.formation.row_bodies import (
    RowBody,
    has_product_axes,
    is_row_by_row,
    product_axes,
    row_axes,
    rows_along,
    yielded_by,
)
from tempo_ir.lowering.kernels.axis_classes import Axis, AxisClasses, values_of
from tempo_ir.lowering.proofs import proving

LEAST_ROWS = 2048
"""Rows of a known number from which on arrays of them are worth keeping out of memory; fewer lie in caches anyway."""

LARGEST = 256
"""Ops of one kernel: beyond this a kernel only gets harder to compile."""

HELD = 1 << 16
"""Elements of weights, and of sums, that a program has in its caches at most."""

COLUMNS = 1 << 11
"""Columns of all values of one row together."""


@dataclass(frozen=True)
class LoopFuseRowsPass(ModulePass):
    """Join kernels along rows. `check` proves the result."""

    name = "loop-fuse-rows"
    check: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in [inner for inner in op.ops if isinstance(inner, ProgramOp)]:
            blocks = [fused for block in blocks_of(program) if (fused := _fused(block)) is not None]
            if not self.check or not blocks:
                _rebuild(program, blocks)
                continue
            with proving():
                before = noted(program)
            kernels = _rebuild(program, blocks)
            with proving():
                check_kernels(program, before, kernels)


@dataclass(frozen=True)
class _Fused:
    """A block, and the groups of its leaves that are to be joined."""

    block: Block
    graph: BlockGraph
    groups: Mapping[int, Group]


def _fused(block: Block) -> _Fused | None:
    """The groups of a block; None where nothing is joined."""
    if sum(isinstance(inner, sdg.ContractOp) for op in block.ops for inner in _body(op)) < 2:
        return None
    graph = BlockGraph(block)
    bodies = [op for op in graph.items if isinstance(op, BodyOperation)]
    known = [op for op in bodies if all(is_row_by_row(inner) for inner in op.body.block.ops)]
    if not has_product_axes([op.body.block for op in known], LEAST_ROWS):
        return None
    groups = _Rows(graph, [Leaf.of(op) for op in known]).groups()
    return _Fused(block, graph, groups) if groups else None


def _rebuild(program: ProgramOp, blocks: Sequence[_Fused]) -> dict[Operation, Sequence[Operation]]:
    """Join the kernels of all blocks; returns for each new one those that it computes, in their order."""
    kernels: dict[Operation, Sequence[Operation]] = {}
    for fused in blocks:
        kernels.update(rebuild(fused.block, fused.graph, fused.groups))
    for alloc in [op for op in program.operations() if isinstance(op, AllocOp)]:
        if alloc.results[0].first_use is None:
            alloc.detach()
            alloc.erase()
    return kernels


def _body(op: Operation) -> Iterator[Operation]:
    """The ops of a leaf; none of another operation."""
    return iter(op.body.block.ops if isinstance(op, BodyOperation) else ())


@dataclass
class _Family:
    """The leaves of a block that are computed by rows along one axis, in the groups that they are joined in."""

    graph: BlockGraph
    leaves: dict[Operation, Leaf] = field(default_factory=dict[Operation, Leaf])
    bodies: dict[Leaf, RowBody] = field(default_factory=dict[Leaf, RowBody])
    sums: set[Row] = field(default_factory=set[Row])
    """The rows of buffers that are sums over the rows."""

    def group(self, leaf: Leaf) -> list[Leaf]:
        """The leaves that a leaf is joined with, in program order."""
        items = self.graph.members[self.graph.group(leaf.op)]
        return [self.leaves[self.graph.items[item]] for item in items]


class _Rows:
    """The leaves of a block while they are joined along rows."""

    def __init__(self, graph: BlockGraph, leaves: Sequence[Leaf]):
        self.graph = graph
        self.leaves = leaves
        self.classes = _classes_of(leaves)
        self.having: dict[Axis, dict[Leaf, None]] = {}
        """The leaves that have an axis of a class."""
        for leaf in self.leaves:
            for value in values_of(leaf.op.body.block):
                for found in self.classes.of_value(value):
                    if found is not None:
                        self.having.setdefault(found, {})[leaf] = None

    def groups(self) -> dict[int, Group]:
        """What is joined, by its number in the graph, in which it is joined."""
        taken: set[Leaf] = set()
        found: list[list[Leaf]] = []
        for axis in product_axes([leaf.op.body.block for leaf in self.leaves], self.classes, LEAST_ROWS):
            having = self.having[self.classes.find(axis)]
            for along in row_axes([leaf.op.body.block for leaf in having], self.classes, axis):
                family = self._family([leaf for leaf in having if leaf not in taken], along)
                if family is None:
                    continue
                for leaves in _joined(family):
                    if _gains(leaves, family.bodies) and _are_rows_alone(leaves):
                        found.append(leaves)
                        taken.update(leaves)
        groups: dict[int, Group] = {}
        for leaves in found:
            number = _join_all(self.graph, leaves)
            if number is not None:
                groups[number] = Group(leaves, (), {}, set(_written(leaves)))
        return groups

    def _family(self, leaves: Sequence[Leaf], along: Sequence[Axis]) -> _Family | None:
        """The leaves that are computed by rows along axes; None where there are no two products among them."""
        bodies: dict[Leaf, RowBody] = {}
        for leaf in leaves:
            if all(_is_there(access) for access in leaf.reads):
                body = rows_along(leaf.op.body.block, self.classes, along)
                if body is not None and not _has_rows_of_weights(leaf, body):
                    bodies[leaf] = body
        if sum(isinstance(op, sdg.ContractOp) for op in _ops(bodies)) < 2:
            return None
        family = _Family(self.graph.trial())
        for leaf, body in bodies.items():
            family.leaves[leaf.op] = leaf
            family.bodies[leaf] = body
            written = {op.results[0] for op in body.sums}
            pairs = zip(leaf.writes, yielded_by(leaf.op.body.block), strict=True)
            family.sums |= {row_of(write) for write, value in pairs if value in written}
        return family


def _classes_of(leaves: Sequence[Leaf]) -> AxisClasses:
    """The axis classes of leaves: what one reads has the axes of what another writes, or reads."""
    classes = AxisClasses()
    known: dict[Row, SSAValue] = {}
    for leaf in leaves:
        classes.visit(leaf.op.body.block)
        known.update((row_of(write), value) for write, value in zip(leaf.writes, leaf.yielded, strict=True))
    for leaf in leaves:
        for read, argument in zip(leaf.reads, leaf.arguments, strict=True):
            value = known.setdefault(row_of(read), argument)
            if value.type == argument.type:
                classes.tie_all(value, argument)
    return classes


def _are_rows_alone(leaves: Sequence[Leaf]) -> bool:
    """Whether leaves have an axis of rows that they know of without others: their kernel is all that is lowered."""
    classes = _classes_of(leaves)
    bodies = [leaf.op.body.block for leaf in leaves]
    choices = [along for axis in product_axes(bodies, classes) for along in row_axes(bodies, classes, axis)]
    return any(all(rows_along(body, classes, along) is not None for body in bodies) for along in choices)


def _gains(leaves: Sequence[Leaf], bodies: Mapping[Leaf, RowBody]) -> bool:
    """Whether a group is worth a kernel: it goes from one product to another, and what a program has of it beside
    memory lies in caches."""
    rows = {value: axes for leaf in leaves for value, axes in bodies[leaf].axes.items()}
    products = [op for op in _ops(leaves) if isinstance(op, sdg.ContractOp)]
    if len(products) < 2 or not any(op.result in rows for op in products) or len(list(_ops(leaves))) > LARGEST:
        return False
    made = {row_of(write) for leaf in leaves for write in leaf.writes}
    held, columns = 0, 0
    for leaf in leaves:
        outside = [a for a, read in zip(leaf.arguments, leaf.reads, strict=True) if row_of(read) not in made]
        for value in [*outside, *(result for op in leaf.op.body.block.ops for result in op.results)]:
            own = [extent for axis, extent in enumerate(shape_of(value.type)) if axis not in rows.get(value, ())]
            size = prod(extent if isinstance(extent, int) else 1 for extent in own)
            if value in rows:
                columns += size
            elif all(isinstance(extent, int) for extent in own):
                held += size
    return held <= HELD and columns <= COLUMNS


def _ops(leaves: Iterable[Leaf]) -> Iterator[Operation]:
    for leaf in leaves:
        yield from leaf.op.body.block.ops


def _has_rows_of_weights(leaf: Leaf, body: RowBody) -> bool:
    """Whether what would be rows are those of weights: of a product of few rows these are the columns."""
    owners = [read.buffer.owner for read, value in zip(leaf.reads, leaf.arguments, strict=True) if value in body.rows]
    return any(
        isinstance(owner, ParameterOp) or (isinstance(owner, OutputOp) and DONATES in owner.attributes)
        for owner in owners
    )


def _is_there(access: BufferAccess) -> bool:
    """Whether rows are read from the first on, so that they lie one after the other in memory whatever is kept."""
    ranges = [entry for entry in access.index if isinstance(entry, Slice)]
    whole = access.type == BufferAccess.of(access.buffer, access.index).type
    return not ranges or (whole and len(ranges) == 1 and ranges[0].start == Const(0) and ranges[0].step == 1)


def _joined(family: _Family) -> list[list[Leaf]]:
    """The groups of a family: who reads what another writes joins it, where it may."""
    makers: dict[Row, Leaf] = {}
    for leaf in family.leaves.values():
        for read in leaf.reads:
            maker = makers.get(row_of(read))
            if maker is None or row_of(read) in family.sums:
                continue
            first, second = family.graph.group(maker.op), family.graph.group(leaf.op)
            if first == second or not _agree([*family.group(maker), *family.group(leaf)], family.sums):
                continue
            if family.graph.joins(first, second):
                family.graph.join(second, first)
        makers.update((row_of(write), leaf) for write in leaf.writes)
    numbers = dict.fromkeys(family.graph.group(op) for op in family.leaves)
    groups = [[family.leaves[family.graph.items[item]] for item in family.graph.members[number]] for number in numbers]
    return [leaves for leaves in groups if len(leaves) > 1]


def _agree(leaves: Sequence[Leaf], sums: set[Row]) -> bool:
    """Whether leaves may be one: none reads a sum of another, each buffer that they write is read as it is written, and
    they stand at one point as far as it shows."""
    written = {write.buffer: write for leaf in leaves for write in leaf.writes}
    if len(written) != sum(len(leaf.writes) for leaf in leaves):
        return False
    for read in [read for leaf in leaves for read in leaf.reads]:
        write = written.get(read.buffer)
        if write is not None and (row_of(write) != row_of(read) or write.type != read.type or row_of(read) in sums):
            return False
    return len({leaf.op.point for leaf in leaves if leaf.depends_on_point}) <= 1


def _join_all(graph: BlockGraph, leaves: Sequence[Leaf]) -> int | None:
    """Join leaves that may be one on their own; the number of their group, None where others were joined meanwhile so
    that they no longer may."""
    trial = graph.trial()
    for target in (trial, graph):
        number = target.group(leaves[0].op)
        waiting = list(leaves[1:])
        while waiting:
            ready = next((leaf for leaf in waiting if target.joins(target.group(leaf.op), number)), None)
            if ready is None:
                return None
            target.join(target.group(ready.op), number)
            waiting.remove(ready)
    return graph.group(leaves[0].op)


def _written(leaves: Sequence[Leaf]) -> list[Row]:
    """What is read elsewhere of what leaves write."""
    inside = {leaf.op for leaf in leaves}
    return [
        row_of(write)
        for leaf in leaves
        for write in leaf.writes
        if not isinstance(write.buffer.owner, AllocOp) or any(use.operation not in inside for use in write.buffer.uses)
    ]
