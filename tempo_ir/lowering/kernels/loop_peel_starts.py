"""loop-peel-starts: the first iteration of a loop reads an array of the caller where it lies, instead of a copy.

Before:
```mlir
loop.compute ins(%a = %w_first) outs(%w) { loop.yield %a : tensor<4096xf32> }
loop.for i = 0 to I {
  loop.kernel ins(%b = %w, %g = %x[i]) outs(%w) { ... }
}
```
After:
```mlir
loop.if 0 >= I {
  loop.compute ins(%a = %w_first) outs(%w) { loop.yield %a : tensor<4096xf32> }
}
loop.for i = 0 to I {
  loop.if i = 0 {
    loop.kernel ins(%b = %w_first, %g = %x[i]) outs(%w) { ... }
  } else {
    loop.kernel ins(%b = %w, %g = %x[i]) outs(%w) { ... }
  }
}
```
A step of an optimiser reads and writes its states once, so that to copy them first takes as long as half a step. It
is right since between the copy and the end of the first iteration the copy is read by that kernel alone, which then
overwrites all of it, and nothing overwrites the array: an input never is, nor a parameter but by the output of its key,
where that may lie in the same memory (`donates`), and there the kernel reads each element before it writes it.

It does not apply to what several ops of the loop read, to loops that data ends, to a kernel inside of a guard or of
another loop, to kernels that do more than elementwise work, beside which a copy is little, nor to copies of fewer than
`least` bytes, which are not worth the time to compile one more kernel. It runs when storage is planned.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import (
    DONATES,
    BodyOperation,
    BufferType,
    ForOp,
    IfOp,
    InputOp,
    OutputOp,
    ParameterOp,
    ProgramOp,
    YieldOp,
)
from tempo_ir.dialects.sdg.elementwise import BinaryOp, UnaryOp
from tempo_ir.dialects.sdg.failing import may_fail
from tempo_ir.dialects.tile.attributes import bit_width
from tempo_ir.dialects.types import element, shape_of
from tempo_ir.index import Sym, compare, negate
from tempo_ir.index.expr import Truth
from tempo_ir.passes.remarks import count
from tempo_ir.passes.utilities import check_counts

LEAST = 1 << 18
"""Bytes from which on a copy takes longer than is worth one more kernel."""

SIMPLE = (UnaryOp, BinaryOp, sdg.CastOp, sdg.SelectOp, sdg.ConstantOp, sdg.IndexOp, sdg.BroadcastOp, YieldOp)


@dataclass(frozen=True)
class LoopPeelStartsPass(ModulePass):
    """First iterations that read what the caller gave, for the CPU."""

    name = "loop-peel-starts"
    least: int = LEAST

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_counts(self)
        for program in [inner for inner in op.ops if isinstance(inner, ProgramOp)]:
            count(self, "copies avoided", peel_starts(program, self.least))


def peel_starts(program: ProgramOp, least: int = LEAST) -> int:
    """Let first iterations read what copies before the loops would bring, in place; how many copies are gone."""
    found: dict[BodyOperation, list[_Start]] = {}
    for op in list(program.walk()):
        if isinstance(op, BodyOperation) and (start := _start_of(op, least)) is not None:
            found.setdefault(start.kernel, []).append(start)
    for starts in found.values():
        _peel(starts)
    return sum(map(len, found.values()))


@dataclass(frozen=True)
class _Start:
    """A copy of an array of the caller, `given`, to a buffer, and the one kernel of the next loop that reads it."""

    copy: BodyOperation
    given: SSAValue
    buffer: SSAValue
    loop: ForOp
    kernel: BodyOperation


def _start_of(op: BodyOperation, least: int) -> _Start | None:
    """What a copy begins; None where it stays."""
    if not _is_copy(op) or _bytes(op.outs[0]) < least or not _stays(op.ins[0], op.outs[0]):
        return None
    loop = _next(op, op.outs[0])
    if not isinstance(loop, ForOp) or loop.until is not None or loop.programs is not None:
        return None
    users = [inner for inner in loop.walk() if op.outs[0] in inner.operands]
    if len(users) != 1 or not isinstance(kernel := users[0], BodyOperation) or kernel.parent is not loop.body.block:
        return None
    return _Start(op, op.ins[0], op.outs[0], loop, kernel) if _replaces(kernel, op.outs[0]) else None


def _is_copy(op: BodyOperation) -> bool:
    """Whether it copies an array of one row to a buffer of one."""
    if len(op.ins) != 1 or len(op.outs) != 1 or op.ins[0].type != op.outs[0].type:
        return False
    accesses = (*op.reads, *op.writes)
    whole = all(isinstance(one.buffer.type, BufferType) and not one.buffer.type.dims for one in accesses)
    return whole and all(isinstance(inner, YieldOp) for inner in op.body.block.ops)


def _bytes(buffer: SSAValue) -> float:
    """The size of a row, as much as can be where only a call knows it."""
    assert isinstance(buffer.type, BufferType)
    extents = shape_of(buffer.type.row)
    known = [extent for extent in extents if isinstance(extent, int)]
    return prod(known) * bit_width(element(buffer.type.row)) // 8 if len(known) == len(extents) else float("inf")


def _stays(given: SSAValue, buffer: SSAValue) -> bool:
    """Whether an array is the caller's, and overwritten by nobody but the buffer's writers."""
    owner = given.owner
    if not isinstance(owner, ParameterOp):
        return isinstance(owner, InputOp)
    outputs = [op for op in owner.parent.ops if isinstance(op, OutputOp)] if owner.parent is not None else []
    return all(op.key != owner.key or op.buffer is buffer or DONATES not in op.attributes for op in outputs)


def _next(op: Operation, buffer: SSAValue) -> Operation | None:
    """The next operation of the block that has to do with a buffer."""
    following = op.next_op
    while following is not None and not any(buffer in inner.operands for inner in following.walk()):
        following = following.next_op
    return following


def _replaces(kernel: BodyOperation, buffer: SSAValue) -> bool:
    """Whether a kernel reads all of a buffer and overwrites all of it, with elementwise work that cannot fail."""
    assert isinstance(buffer.type, BufferType)
    touched = [access for access in (*kernel.reads, *kernel.writes) if access.buffer is buffer]
    if any(access.index or access.type != buffer.type.row for access in touched):
        return False
    if buffer not in kernel.ins or list(kernel.outs).count(buffer) != 1:
        return False
    return all(isinstance(inner, SIMPLE) and not may_fail(inner) for inner in kernel.body.block.ops)


def _peel(starts: list[_Start]) -> None:
    """Let the first iteration read the arrays, and copy them where there is none."""
    loop, kernel = starts[0].loop, starts[0].kernel
    outside, inside = loop.parent, kernel.parent
    assert outside is not None
    assert inside is not None
    for start in starts:
        start.copy.detach()
    guard = IfOp(negate(compare("<", loop.lower, loop.upper)), Region(Block([start.copy for start in starts])))
    if guard.condition == Truth(False):
        guard.erase()
    else:
        outside.insert_op_before(guard, loop)
    first, given = kernel.clone(), {start.buffer: start.given for start in starts}
    for number, buffer in enumerate(kernel.ins):
        first.operands[number] = given.get(buffer, buffer)
    begins = compare("=", Sym(loop.iterator), loop.first)
    branch = IfOp(begins, Region(Block([first])), Region(Block()))
    branch.location = kernel.location
    inside.insert_op_before(branch, kernel)
    kernel.detach()
    assert branch.otherwise is not None
    branch.otherwise.block.add_op(kernel)
