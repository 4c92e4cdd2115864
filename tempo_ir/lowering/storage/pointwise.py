"""Which reads of a kernel are element by element: what the checker of storage knows of ops, and shares with nobody."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tempo_ir.dialects.loop import BodyOperation, HostOp, YieldOp
from tempo_ir.dialects.sdg import ReduceOp, SdgOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.index.expr import Slice
from tempo_ir.lowering.instances import Instance

POINTWISE = frozenset(
    f"sdg.{name}"
    for name in (
        "neg abs sign exp log sqrt rsqrt tanh sigmoid erf sin cos floor ceil round not cast stop_gradient select "
        "add sub mul div pow floordiv mod minimum maximum and or xor lt le gt ge eq ne"
    ).split()
)
"""Ops whose result at an element depends on that element of the operands only, where shapes are equal."""
REDUCTIONS = frozenset(f"sdg.{name}" for name in "sum prod max min mean".split())
"""Ops whose result at an element depends on the elements along some axes only."""


def reads_in_place(instance: Instance, number: int) -> bool:
    """
    Whether a kernel reads an argument only element by element, for results of its shape; of a window of rows, one
    element of each row for the element at that place of its one result. A host call is given copies.
    """
    op = instance.op
    if isinstance(op, HostOp):
        return True
    if not isinstance(op, BodyOperation):
        return False
    depth = sum(isinstance(entry, Slice) for entry in instance.reads[number].index)
    argument = op.body.block.args[number]
    shape = shape_of(argument.type)[depth:]
    if any(shape_of(value.type) != shape for value in op.yielded) or (depth > 0 and len(op.yielded) != 1):
        return False
    whole: dict[SSAValue, bool] = {argument: depth > 0}  # whether a value still has the axes of the window
    for inner in op.body.block.ops:
        reached = [whole[operand] for operand in inner.operands if operand in whole]
        if isinstance(inner, YieldOp):
            return not any(reached)
        if not reached:
            continue
        windowed = any(reached)
        if inner.name in REDUCTIONS and isinstance(inner, ReduceOp):
            if not windowed or sorted(inner.axes) != list(range(depth)):
                return False
            windowed = False
        elif not isinstance(inner, SdgOp) or inner.name not in POINTWISE:
            return False
        for result in inner.results:
            extents = shape_of(result.type)
            windowed = windowed or len(extents) == len(shape) + depth > len(shape)
            if extents != (shape_of(argument.type) if windowed else shape):
                return False
            whole[result] = windowed
    return True
