"""Writes a storage plan into a loop program: buffers, the accesses of every operation, and copies that are no work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, UnitAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from tempo_ir.dialects.loop import (
    HOST,
    SWAP,
    AccessOperation,
    AllocOp,
    BodyOperation,
    BufferType,
    ForOp,
    IfOp,
    ProgramOp,
    YieldOp,
)
from tempo_ir.dialects.sdg.attributes import IndexAttr
from tempo_ir.dialects.types import Extent, Tensor, shape_of, tensor
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import TRUE, Expr, Index, free_symbols, negate
from tempo_ir.index.isl import ceiling
from tempo_ir.lowering.storage.liveness import Liveness
from tempo_ir.lowering.storage.plan import Planned, starts_of


@dataclass
class Rewriter:
    """
    Rewrites one program. `replaced` holds for each operation that was made anew the one it was, and which of its
    results it has.
    """

    program: ProgramOp
    liveness: Liveness
    replaced: dict[Operation, tuple[Operation, tuple[int, ...]]] = field(
        default_factory=dict[Operation, tuple[Operation, tuple[int, ...]]]
    )
    _bodies: dict[Block, Operation | None] = field(default_factory=dict[Block, Operation | None])
    """The first operation of a block that makes no buffer."""

    def rewrite(self, plan: Sequence[Planned]) -> dict[SSAValue, SSAValue]:
        """Give every memory of a plan its buffer; returns the buffer in which each buffer lies now."""
        buffers: dict[SSAValue, SSAValue] = {}
        accesses: dict[Operation, dict[tuple[bool, int], tuple[SSAValue, Index]]] = {}
        for start in starts_of(plan):
            block = start.anchor.parent
            assert block is not None
            written = start.op if start.guard == TRUE else IfOp(start.guard, Region(Block([start.op])))
            block.insert_op_before(written, start.anchor)
        for planned in plan:
            buffer = self._buffer(planned)
            buffers.update(dict.fromkeys(planned.group.members, buffer))
            for use in planned.uses:
                inner = accesses.setdefault(use.use.op, {})
                inner[use.use.writes, use.use.number] = buffer, planned.index(use.cells)
        for op, found in accesses.items():
            set_accesses(op, found)
        for op, numbers in _results(plan).items():
            self._drop_results(op, numbers)
        for buffer, place in buffers.items():
            if buffer is not place:
                assert isinstance(buffer.owner, Operation)
                _erase(buffer.owner)
        return buffers

    def _buffer(self, planned: Planned) -> SSAValue:
        """The buffer of a memory: the caller's, or a new one where it is needed."""
        output = planned.group.output
        if output is not None:
            return output.op.buffer
        alloc = AllocOp(BufferType.of(planned.stored, self._row(planned)))
        self._carry(planned, alloc)
        named = [buffer for buffer in planned.group.members if buffer.name_hint is not None]
        first = next(iter(planned.group.members))
        alloc.buffer.name_hint = named[0].name_hint if named else None
        owner = (named[0] if named else first).owner
        assert isinstance(owner, Operation)
        alloc.location = owner.location
        self._insert(alloc, self._block(planned))
        return alloc.buffer

    def _insert(self, alloc: AllocOp, block: Block) -> None:
        """Put an allocation behind what else makes buffers at the start of a block."""
        if block not in self._bodies:
            self._bodies[block] = next((op for op in block.ops if not _makes_buffer(op)), None)
        if (before := self._bodies[block]) is None:
            block.add_op(alloc)
        else:
            block.insert_op_before(alloc, before)

    @staticmethod
    def _carry(planned: Planned, alloc: AllocOp) -> None:
        """What is asked of the memory of a value is asked of the buffer that it has become; so is where it lies."""
        members = [member.op for member in planned.group.members.values() if isinstance(member.op, AllocOp)]
        ahead = [op.ahead for op in members if op.ahead is not None]
        if ahead:
            alloc.attributes[SWAP] = IntegerAttr(max(ahead), i64)
        if any(HOST in op.attributes for op in members):
            alloc.attributes[HOST] = UnitAttr()

    def _row(self, planned: Planned) -> Tensor:
        """The room of a row: extents that name a dim whose rows share slots are the greatest."""
        group = planned.group
        if not any(isinstance(extent, Expr) for extent in shape_of(group.row)):
            return group.row
        shared = {name for name, dim in zip(group.dims, planned.dims, strict=True) if dim is None or dim.slots}
        space = Space(tuple(zip(group.dims, group.extents(self.program.space), strict=True)), self.program.space.where)

        def room(extent: Extent) -> Extent:
            if isinstance(extent, int) or not free_symbols(extent) & shared:
                return extent
            return ceiling(extent, space, Domain(group.dims))

        return tensor(group.row.element_type, [room(extent) for extent in shape_of(group.row)])

    def _block(self, planned: Planned) -> Block:
        """The innermost block in no run of which a row is read that another run wrote."""
        common, private = planned.question.common_loops, self.liveness.private_loops(planned.question)
        inside = [use.use.op for use in planned.uses] if private == len(common) else [common[private]]
        chains = [_blocks(block) for block in dict.fromkeys(op.parent for op in inside) if block is not None]
        depth = 0
        while all(len(chain) > depth and chain[depth] is chains[0][depth] for chain in chains):
            depth += 1
        return chains[0][depth - 1]

    def _drop_results(self, op: BodyOperation, numbers: Sequence[int]) -> None:
        """Remove results of an operation, with what only they read; the operation itself if nothing is left."""
        kept = [number for number in range(len(op.yielded)) if number not in numbers]
        if not kept:
            remove(op)
            return
        values = [op.yielded[number] for number in kept]
        writes = [op.writes[number] for number in kept]
        block = op.body.block
        last = block.last_op
        assert last is not None
        reads = op.reads
        block.erase_op(last)
        block.add_op(YieldOp(values))
        needed = [number for number, argument in enumerate(block.args) if argument.first_use is not None]
        for argument in [argument for argument in block.args if argument.first_use is None]:
            block.erase_arg(argument)
        op.body.detach_block(block)
        smaller = type(op)([reads[number] for number in needed], writes, Region(block), op.point)
        smaller.location = op.location
        self.replaced[smaller] = op, tuple(kept)
        parent = op.parent
        assert parent is not None
        parent.insert_op_before(smaller, op)
        _erase(op)


def _results(plan: Sequence[Planned]) -> dict[BodyOperation, list[int]]:
    """The results of operations that are no work, or written elsewhere."""
    found: dict[BodyOperation, list[int]] = {}
    for planned in plan:
        for op in [op for start in planned.starts for op in start.replaced]:
            found[op] = [0]
        for copy in planned.group.copies:
            op, number = copy.result
            found.setdefault(op, []).append(number)
    return found


def _blocks(inner: Block) -> list[Block]:
    """A block and those round it, outermost first, within its program."""
    found: list[Block] = []
    block: Block | None = inner
    while block is not None:
        found.append(block)
        around = block.parent_op()
        block = None if around is None or isinstance(around, ProgramOp) else around.parent
    return found[::-1]


def _makes_buffer(op: Operation) -> bool:
    return any(isinstance(result.type, BufferType) for result in op.results)


def set_accesses(op: Operation, found: Mapping[tuple[bool, int], tuple[SSAValue, Index]]) -> None:
    """Let an operation read and write the rows given, by whether it writes and the number."""
    if isinstance(op, ForOp):
        buffer, index = found[False, 0]
        op.operands = [buffer]
        op.done_index = IndexAttr(index)
        return
    assert isinstance(op, AccessOperation)
    ins = [found.get((False, number), (read.buffer, read.index)) for number, read in enumerate(op.reads)]
    outs = [found.get((True, number), (write.buffer, write.index)) for number, write in enumerate(op.writes)]
    op.operands = [buffer for buffer, _ in (*ins, *outs)]
    op.in_indices = ArrayAttr([IndexAttr(index) for _, index in ins])
    op.out_indices = ArrayAttr([IndexAttr(index) for _, index in outs])


def remove(op: Operation) -> None:
    """Remove an operation, and the guards and loops round it that do nothing without it."""
    parent = op.parent_op()
    _erase(op)
    if isinstance(parent, ForOp) and parent.body.block.is_empty:
        remove(parent)
    elif isinstance(parent, IfOp):
        _tidy(parent)


def _tidy(guard: IfOp) -> None:
    """Remove a part of a guard that does nothing."""
    then = not guard.then.block.is_empty
    otherwise = guard.otherwise is not None and not guard.otherwise.block.is_empty
    if not then and not otherwise:
        remove(guard)
        return
    if then and (otherwise or guard.otherwise is None):
        return
    region = guard.then if then else guard.otherwise
    assert region is not None
    assert guard.parent is not None
    block = region.block
    region.detach_block(block)
    smaller = IfOp(guard.condition if then else negate(guard.condition), Region(block))
    smaller.location = guard.location
    guard.parent.insert_op_before(smaller, guard)
    _erase(guard)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()
