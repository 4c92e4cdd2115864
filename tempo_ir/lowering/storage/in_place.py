"""
Which reads of a leaf or kernel may lie in memory that it writes.

A kernel reads all that one block of elements needs before it writes that block, for all of its results at once, and
blocks are disjoint. So a row may be overwritten where it was read if the kernel reads each of its elements for the
element of the same place only, and all results have one shape: `w = w - rate * g`. A contraction, a reduction, a
broadcast or a transpose reads elements that another block may have overwritten.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from tempo_ir.dialects.loop import BodyOperation, YieldOp
from tempo_ir.dialects.sdg import CastOp, SelectOp, StopGradientOp
from tempo_ir.dialects.sdg.elementwise import BinaryOp, UnaryOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.lowering.storage.uses import Use

ELEMENTWISE = (UnaryOp, BinaryOp, CastOp, SelectOp, StopGradientOp)


def may_be_overwritten(read: Use) -> bool:
    """Whether the row read may lie where the same operation writes another row."""
    op = read.op
    if not isinstance(op, BodyOperation) or read.slices:
        return False
    argument = op.body.block.args[read.number]
    shape = shape_of(argument.type)
    if any(shape_of(type) != shape for type in op.out_types.data):
        return False
    waiting: list[SSAValue] = [argument]
    seen: set[SSAValue] = set()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if shape_of(value.type) != shape:
            return False
        for use in value.uses:
            if isinstance(use.operation, YieldOp):
                continue
            if not isinstance(use.operation, ELEMENTWISE):
                return False
            waiting += use.operation.results
    return True
