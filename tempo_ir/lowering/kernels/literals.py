"""Literals of several numbers: memory that is filled once, when the program starts, and read by the leaves that use
them.

Before: a leaf with `%c = sdg.constant dense<[1.0, 0.5]> : tensor<2xf32>` in its body. After:

```mlir
%literal = loop.alloc : !loop.buffer<2xf32>
loop.compute outs(%literal) { %c = sdg.constant dense<[1.0, 0.5]> ... loop.yield %c }
...
loop.compute ins(%a = %x[t], %c = %literal) ...
```
A kernel has no memory of its own for them, and building them from numbers would cost an instruction per element.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Attribute, Block, Region, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import (
    AllocOp,
    BodyOperation,
    BufferAccess,
    BufferOperation,
    BufferType,
    ComputeOp,
    ProgramOp,
    YieldOp,
)
from tempo_ir.dialects.types import as_tensor


def is_literal(op: object) -> bool:
    """Whether an op is a constant of different numbers."""
    return isinstance(op, sdg.ConstantOp) and op.uniform is None


@dataclass
class Literals:
    """The literals of a program, each in one buffer."""

    program: ProgramOp
    buffers: dict[Attribute, SSAValue] = field(default_factory=dict[Attribute, SSAValue])

    def separate(self, leaf: BodyOperation) -> BodyOperation:
        """The leaf with its literals read from memory; a leaf that only fills the memory of one stays."""
        block = leaf.body.block
        constants = [op for op in block.ops if isinstance(op, sdg.ConstantOp) and is_literal(op)]
        if not constants or (not leaf.ins and len(block.ops) == 1 + len(constants)):
            return leaf
        reads = list(leaf.reads)
        for constant in constants:
            reads.append(BufferAccess(self._buffer(constant), (), as_tensor(constant.result.type)))
            argument = block.insert_arg(constant.result.type, len(block.args))
            argument.name_hint = constant.result.name_hint
            constant.result.replace_all_uses_with(argument)
            constant.detach()
            constant.erase()
        fresh = type(leaf)(reads, leaf.writes, leaf.detach_region(leaf.body), leaf.point)
        fresh.location = leaf.location
        parent = leaf.parent
        assert parent is not None
        parent.insert_op_before(fresh, leaf)
        leaf.detach()
        leaf.erase()
        return fresh

    def _buffer(self, constant: sdg.ConstantOp) -> SSAValue:
        known = self.buffers.get(constant.value)
        if known is not None:
            return known
        alloc = AllocOp(BufferType.of((), as_tensor(constant.result.type)))
        alloc.buffer.name_hint = "literal"
        body = Block()
        copy = constant.clone()
        body.add_ops([copy, YieldOp([copy.result])])
        fill = ComputeOp([], [BufferAccess.of(alloc.buffer, ())], Region(body))
        fill.location = constant.location
        first = next((op for op in self.program.body.block.ops if not isinstance(op, BufferOperation)), None)
        assert first is not None
        self.program.body.block.insert_op_before(alloc, first)
        self.program.body.block.insert_op_before(fill, first)
        self.buffers[constant.value] = alloc.buffer
        return alloc.buffer
