"""In which order the axes of a buffer lie in memory: where a window of a dim is contracted beside axes that only name
independent problems, as the heads of attention, each problem's window is one stretch of memory.

Before: `%k = loop.alloc : !loop.buffer<(t: growing) 4x8x32xf32>`, read by `contract "bhgd,nbhd->bhgn"` at
`%k[0:t + 1]`: each head reads 128 bytes of every kilobyte. After: `(t: growing inside 2) 4x8x32xf32`.

It does not apply to what the caller gives or gets; where some window is read by anything else; where the axes beside
are summed or belong to one operand only; where rows are copied to the host. Keys are not turned round besides, so that
lanes would be positions (`inside 3`): no sums across lanes, but each step writes as many lines as a key has elements,
and windows are as many streams (measured: decoding 1024 tokens takes 1.1 to 1.5 times as long).
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import (
    AccessOperation,
    AllocOp,
    AttendOp,
    BodyOperation,
    BufferAccess,
    BufferType,
    FoldOp,
    ProgramOp,
    SharesOp,
    StorageAttr,
    TransferOp,
)
from tempo_ir.dialects.types import Extent, shape_of
from tempo_ir.index import Const, Entry, Slice, as_expr


def order_axes(program: ProgramOp) -> None:
    """Choose the order of every buffer of a program whose kernels are formed and whose storage is planned."""
    for op in [op for op in program.operations() if isinstance(op, AllocOp)]:
        count = outer_axes(op.buffer)
        if count == 0:
            continue
        assert isinstance(op.buffer.type, BufferType)
        *dims, last = op.buffer.type.dims
        ordered = StorageAttr((*dims, replace(last, inside=count)))
        fresh = AllocOp(BufferType(ordered, op.buffer.type.row))
        fresh.attributes.update(op.attributes)
        fresh.location = op.location
        fresh.buffer.name_hint = op.buffer.name_hint
        block = op.parent
        assert block is not None
        block.insert_op_before(fresh, op)
        op.buffer.replace_all_uses_with(fresh.buffer)
        op.detach()
        op.erase()


def outer_axes(buffer: SSAValue) -> int:
    """How many of the row's axes should lie outside of the last stored dim."""
    assert isinstance(buffer.type, BufferType)
    row = shape_of(buffer.type.row)
    if not buffer.type.dims or len(row) < 2 or not all(isinstance(extent, int) for extent in row):
        return 0
    counts: list[int] = []
    for user in dict.fromkeys(use.operation for use in buffer.uses):
        if isinstance(user, TransferOp):
            return 0  # a row is one stretch of memory
        if not isinstance(user, AccessOperation):
            continue
        for number, access in enumerate(user.reads):
            if access.buffer is buffer and any(isinstance(entry, Slice) for entry in access.index):
                counts.append(_of_window(user, number, access))
    return min(counts, default=0)


def _of_window(user: AccessOperation, number: int, access: BufferAccess) -> int:
    """The leading axes of the row that name independent problems to everything that reads the window."""
    if not isinstance(user, BodyOperation):
        return 0
    *others, last = access.index
    if not isinstance(last, Slice) or any(isinstance(entry, Slice) for entry in others):
        return 0
    argument = user.body.block.args[number]
    return min((_of_reader(use.operation, argument) for use in argument.uses), default=0)


def _of_reader(op: Operation, argument: SSAValue) -> int:
    if isinstance(op, FoldOp):
        inside = [inner for inner, outside in zip(op.body.block.args, op.operands, strict=True) if outside is argument]
        return min((_of_reader(use.operation, inner) for inner in inside for use in inner.uses), default=0)
    if isinstance(op, sdg.SliceOp) and all(map(_is_whole, op.take[1:], shape_of(argument.type)[1:])):
        return min((_of_reader(use.operation, op.result) for use in op.result.uses), default=0)
    if not isinstance(op, sdg.ContractOp | SharesOp | AttendOp) or len(op.inputs) != 2 or op.inputs[0] is op.inputs[1]:
        return 0
    inputs, output = op.letters
    number = list(op.inputs).index(argument)
    count = 0
    for letter in inputs[number][1:-1]:
        if letter not in inputs[1 - number] or letter not in output:
            break
        count += 1
    return count


def _is_whole(entry: Entry, extent: Extent) -> bool:
    """Whether an entry takes all of an axis."""
    return isinstance(entry, Slice) and entry == Slice(Const(0), as_expr(extent))
