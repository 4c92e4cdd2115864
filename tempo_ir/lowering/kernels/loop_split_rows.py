"""loop-split-rows: what a kernel sums over its rows is added up in parts, one for each program, and then combined.

Before:
```mlir
loop.kernel ins(%h = %0, %d = %1, %w = %2) outs(%g, %e) {
  %3 = sdg.contract "bk,bn->nk" %h, %d : ...      // 64 * T rows b
  %4 = sdg.contract "bn,nk->bk" %d, %w : ...
  loop.yield %3, %4
}
```
After:
```mlir
loop.kernel ins(%h = %0, %d = %1, %w = %2) outs(%parts, %e) {
  %3 = sdg.contract "bk,bn->nk" %h, %d : ...
  %5 = loop.parts %3 into 8 : ...
  %4 = sdg.contract "bn,nk->bk" %d, %w : ...
  loop.yield %5, %4
}
loop.compute ins(%a = %parts) outs(%g) { sdg.sum %a axes [0] ... }
```
Blocks of rows are dealt out to the programs in turn, so that which part has which rows depends on their number alone,
and results do not depend on how many threads run the programs. It does not apply where one program has all rows. It
runs when storage is planned: the parts live as long as the program, and kernels share them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.passes import ModulePass

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import (
    AllocOp,
    BodyOperation,
    BufferAccess,
    BufferType,
    ComputeOp,
    KernelOp,
    PartsOp,
    ProgramOp,
    StorageAttr,
    YieldOp,
)
from tempo_ir.dialects.types import as_tensor
from tempo_ir.index import Domain
from tempo_ir.lowering.formation.row_bodies import RowBody
from tempo_ir.lowering.kernels.blocks import CPU, Blocks
from tempo_ir.lowering.kernels.row_blocks import is_computed_by_rows

EVERYWHERE = Domain()


@dataclass(frozen=True)
class LoopSplitRowsPass(ModulePass):
    """Sums over rows in parts, for the CPU."""

    name = "loop-split-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in [inner for inner in op.ops if isinstance(inner, ProgramOp)]:
            split_rows(program, CPU)


def split_rows(program: ProgramOp, blocks: Blocks) -> None:
    """Split the sums of the kernels of a program that are computed by rows, in place."""
    if not blocks.row_programs:
        return
    splitting = _Splitting(program, blocks)
    for leaf in [leaf for leaf in program.operations() if isinstance(leaf, KernelOp)]:
        splitting.split(leaf)


@dataclass
class _Splitting:
    """The kernels of a program while they are split; `buffers` are the parts, by their number in a kernel."""

    program: ProgramOp
    blocks: Blocks
    buffers: dict[tuple[int, Attribute], SSAValue] = field(default_factory=dict[tuple[int, Attribute], SSAValue])

    def split(self, leaf: KernelOp) -> None:
        """Let a kernel write parts of what it sums over rows, and add them up after it."""
        body = leaf.body.block
        rows = RowBody.of(body) if is_computed_by_rows(body) else None
        programs = 1 if rows is None else self.blocks.programs_of_rows(rows.extent)
        if rows is None or programs < 2 or not rows.sums:
            return
        written = {op.results[0] for op in rows.sums}
        last, block = body.last_op, leaf.parent
        assert isinstance(last, YieldOp)
        assert block is not None
        writes, combining = list(leaf.writes), list[ComputeOp]()
        values = list(last.operands)
        for number, (value, write) in enumerate(zip(leaf.yielded, leaf.writes, strict=True)):
            if value not in written:
                continue
            parts = PartsOp(value, programs)
            parts.location = leaf.location
            body.insert_op_before(parts, last)
            values[number] = parts.result
            writes[number] = self._buffer(number, parts.result.type)
            combining.append(_sum(writes[number], write, leaf))
        last.operands = values
        kernel = KernelOp(leaf.reads, writes, leaf.detach_region(leaf.body), leaf.point)
        kernel.location = leaf.location
        for op in (kernel, *combining):
            block.insert_op_before(op, leaf)
        leaf.detach()
        leaf.erase()

    def _buffer(self, number: int, kind: Attribute) -> BufferAccess:
        """Memory for the parts of a sum."""
        known = self.buffers.get((number, kind))
        if known is None:
            alloc = AllocOp(BufferType(StorageAttr(()), as_tensor(kind)))
            alloc.buffer.name_hint = "parts"
            block = self.program.body.block
            first = block.first_op
            assert first is not None
            block.insert_op_before(alloc, first)
            known = self.buffers[number, kind] = alloc.buffer
        return BufferAccess.of(known, ())


def _sum(parts: BufferAccess, write: BufferAccess, leaf: BodyOperation) -> ComputeOp:
    """The leaf that adds up parts."""
    body = Block(arg_types=[parts.type])
    total = sdg.SumOp(body.args[0], [0], domain=EVERYWHERE)
    total.location = leaf.location
    body.add_ops([total, YieldOp([total.result])])
    made = ComputeOp([parts], [write], Region(body), leaf.point)
    made.location = leaf.location
    return made
