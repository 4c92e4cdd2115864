"""Which values of a program may be infinite, or no number, though its inputs are finite."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.sdg import (
    ConstantOp,
    DivOp,
    ErfOp,
    ExpOp,
    Log1pOp,
    LogOp,
    PowOp,
    RsqrtOp,
    SdgOp,
    SigmoidOp,
    SignOp,
    SoftmaxOp,
    TanhOp,
)
from tempo_ir.graphs import reachable
from tempo_ir.passes.building import number_of
from tempo_ir.passes.gradients.activity import carries_gradient

BOUNDED = (ErfOp, SigmoidOp, SignOp, SoftmaxOp, TanhOp)
"""Ops that give a bounded result of any operand."""


def unbounded(values: Iterable[SSAValue]) -> frozenset[SSAValue]:
    """Those values in the graph of `values` that come from a division, a logarithm, a power or an exponential."""
    block = next((value.owner.parent for value in values if isinstance(value.owner, Operation)), None)
    if block is None:
        return frozenset()
    origins = (result for op in block.ops if _is_origin(op) for result in op.results)
    return frozenset(reachable(origins, _following))


def _is_origin(op: Operation) -> bool:
    match op:
        case ExpOp() | LogOp() | Log1pOp() | RsqrtOp():
            return True
        case DivOp():
            return not number_of(op.accesses[1])
        case PowOp():
            exponent = number_of(op.accesses[1])
            return exponent is None or exponent < 0
        case ConstantOp():
            return op.number is not None and not math.isfinite(op.number)
        case _:
            return False


def _following(value: SSAValue) -> Iterator[SSAValue]:
    for use in value.uses:
        if isinstance(use.operation, SdgOp) and not isinstance(use.operation, BOUNDED):
            yield from (result for result in use.operation.results if carries_gradient(result))
