"""Which ops can fail when they run; the error is that of the run, so that they may run at their needed points alone."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.sdg.elementwise import FloordivOp, ModOp
from tempo_ir.dialects.sdg.shape_ops import GatherOp, ScatterAddOp
from tempo_ir.dialects.sdg.sources import ConstantOp
from tempo_ir.dialects.types import element, is_float


def may_fail(op: Operation) -> bool:
    """Whether an op can fail when it runs: an integer division by what is no constant but 0, or rows by number."""
    if isinstance(op, FloordivOp | ModOp):
        return not is_float(element(op.result.type)) and may_be_zero(op.operands[1])
    return isinstance(op, GatherOp | ScatterAddOp)


def may_be_zero(value: SSAValue) -> bool:
    """Whether an element of a value may be 0, as far as constants tell."""
    op = value.owner
    if not isinstance(op, ConstantOp):
        return True
    if isinstance(op.value, DenseIntOrFPElementsAttr):
        return 0 in op.value.get_values()
    return op.value.data == 0
