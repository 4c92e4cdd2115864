"""
Which reads of a leaf or kernel may lie in memory that it writes.

A kernel reads all that one block of elements needs before it writes that block, for all of its results at once, and
blocks are disjoint. So a row may be overwritten where it was read if the kernel reads each of its elements for the
element of the same place only, and all results have one shape: `w = w - rate * g`. A contraction, a reduction, a
broadcast or a transpose reads elements that another block may have overwritten.

The same holds of the rows of a window that are reduced over the window alone, `h[t] = f(sum(h[t - 3:t]))`: the kernel
reads the elements of one place in all rows before it writes the one in that place. So such a recurrence needs a slot
for each row that it reads, and none for the row that it writes.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from tempo_ir.dialects.loop import BodyOperation, HostOp, YieldOp
from tempo_ir.dialects.sdg import CastOp, SelectOp, StopGradientOp
from tempo_ir.dialects.sdg.elementwise import BinaryOp, UnaryOp
from tempo_ir.dialects.sdg.reduction import ReduceOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.index.expr import Slice
from tempo_ir.lowering.storage.uses import Use

ELEMENTWISE = (UnaryOp, BinaryOp, CastOp, SelectOp, StopGradientOp)


def may_be_overwritten(read: Use) -> bool:
    """Whether a row read may lie where the same operation writes another row."""
    op = read.op
    if isinstance(op, HostOp):
        return True  # it is given copies
    if not isinstance(op, BodyOperation):
        return False
    argument = op.body.block.args[read.number]
    window = sum(isinstance(entry, Slice) for entry in read.index)
    rows, row = shape_of(argument.type), shape_of(argument.type)[window:]
    if any(shape_of(type) != row for type in op.out_types.data) or (window and len(op.outs) > 1):
        return False
    waiting: list[SSAValue] = [argument]
    seen: set[SSAValue] = set()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        shape = shape_of(value.type)
        if shape not in (rows, row):
            return False
        for use in value.uses:
            reader = use.operation
            if isinstance(reader, YieldOp):
                continue
            reduces = isinstance(reader, ReduceOp) and shape == rows and set(reader.axes) == set(range(window))
            if not reduces and not isinstance(reader, ELEMENTWISE):
                return False
            waiting += reader.results
    return True
