"""sdg-fold-constants: what depends on constants alone is computed now.

Before:

    %a = sdg.constant 2.0 : tensor<4xf32>
    %b = sdg.constant 3.0 : tensor<f32>
    %c = sdg.mul %a, %b in (t) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %n = sdg.index 7 : tensor<i64>
    %r = sdg.arange [0:3] : tensor<3xi64>
    %s = sdg.mul %r, %r : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>

After:

    %c = sdg.constant 6.0 : tensor<4xf32>
    %n = sdg.constant 7 : tensor<i64>
    %s = sdg.constant dense<[0, 1, 4]> : tensor<3xi64>

The value is the reference interpreter's, so folding changes no bit. Elementwise ops of numbers fold to a number
whatever their shape; other results fold if they, and what they are made of, hold at most `limit` elements, for a
constant is memory too. `sdg.arange` alone, cast or reshaped, stays: counting costs no memory. Random draws are no
constants. Results that are not finite and not one number stay computed (a dense literal cannot spell them), and so does
an op that has no value, such as an integer division by zero: that is the error of the run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, Float64Type, ModuleOp, TensorType
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from tempo_ir.dialects.sdg import (
    NO_DIMS,
    Access,
    AccessOp,
    ArangeOp,
    BinaryOp,
    BroadcastOp,
    CastOp,
    ConstantOp,
    IndexOp,
    MergeOp,
    PadOp,
    ReshapeOp,
    SdgOp,
    SelectOp,
    SliceOp,
    UnaryOp,
)
from tempo_ir.dialects.types import Tensor, as_tensor, dtype_name, element, shape_of
from tempo_ir.index import Const, free_symbols
from tempo_ir.passes.building import Constructor, symbols_of
from tempo_ir.passes.remarks import remark
from tempo_ir.passes.utilities import check_counts, is_readable, programs, replace_proved, run_patterns
from tempo_ir.reference.dtypes import Array, numpy_dtype
from tempo_ir.reference.errors import ExecutionError
from tempo_ir.reference.operations import evaluate

POINTWISE = (UnaryOp, BinaryOp, SelectOp, CastOp, BroadcastOp, ReshapeOp)
"""Ops whose result has equal elements where each operand has."""

RELABELLING = (CastOp, ReshapeOp, BroadcastOp)
"""Ops that compute nothing of an `sdg.arange`."""


@dataclass(frozen=True)
class SdgFoldConstantsPass(ModulePass):
    """Compute what depends on constants alone."""

    name = "sdg-fold-constants"

    limit: int = 64
    """The most elements that a folded result may have, unless they are one number."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_counts(self)
        for program in programs(op):
            run_patterns(program.body, FoldConstants(self.limit))


@dataclass
class FoldConstants(RewritePattern):
    """An op whose operands are constants becomes one."""

    limit: int

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        folded = self._folded(op)
        if folded is None or not isinstance(op, SdgOp) or not is_readable(op, ()):
            return
        rewriter.insert(folded)
        replace_proved(op, Access(folded.result), rewriter)

    def _folded(self, op: Operation) -> ConstantOp | None:
        if isinstance(op, IndexOp):
            value = op.expression
            return ConstantOp(value.value, as_tensor(op.result.type)) if isinstance(value, Const) else None
        if not isinstance(op, AccessOp) or isinstance(op, MergeOp) or len(op.results) != 1:
            return None
        operands = [access.value.owner for access in op.accesses]
        known = [owner for owner in operands if isinstance(owner, ConstantOp) or is_counting(owner)]
        if len(known) != len(operands) or not known or not is_timeless(op):
            return None
        constants = [owner for owner in known if isinstance(owner, ConstantOp)]
        if len(constants) == len(known) and (number := _number(op, constants)) is not None:
            return number
        if not constants and isinstance(op, RELABELLING):  # counting is as cheap as reading a literal
            return None
        return self._literal(op, [owner for owner in known if isinstance(owner, SdgOp)])

    def _literal(self, op: AccessOp, operands: Sequence[SdgOp]) -> ConstantOp | None:
        """The result, element by element, where it is small."""
        types = [as_tensor(op.results[0].type), *(as_tensor(operand.results[0].type) for operand in operands)]
        if any(_size(t) > self.limit for t in types):
            return None
        value = _evaluated(op, [_value(operand) for operand in operands])
        return None if value is None else _constant(value, types[0])


def is_counting(op: Operation | Block) -> bool:
    """Whether an op makes the integers of a range that is known now, or these cast, in other axes."""
    if isinstance(op, ArangeOp):
        return not free_symbols(op.range)
    return isinstance(op, RELABELLING) and is_counting(op.accesses[0].value.owner) and is_timeless(op)


def _value(op: SdgOp) -> Array:
    """The value of a constant, or of counting."""
    return evaluate(op, [_value(as_sdg(access.value.owner)) for access in op.accesses], {}, dims={})[0]


def as_sdg(op: Operation | Block) -> SdgOp:
    """An op as what it is known to be."""
    assert isinstance(op, SdgOp)
    return op


def is_timeless(op: AccessOp) -> bool:
    """Whether an op of constants is the same at every point: its properties and shape mention no dim or bound."""
    symbols = symbols_of(shape_of(op.results[0].type)) & set(op.domain.dims)
    if isinstance(op, SliceOp):
        symbols |= free_symbols(op.take)
    if isinstance(op, PadOp):
        symbols |= free_symbols((*op.low, *op.high))
    return not symbols


def _number(op: AccessOp, operands: Sequence[ConstantOp]) -> ConstantOp | None:
    """The result where each operand is one number, and so is what the op makes of them, in whatever shape."""
    if not isinstance(op, POINTWISE) or any(operand.number is None for operand in operands):
        return None
    scalars = [np.asarray(operand.number, numpy_dtype(element(operand.result.type))) for operand in operands]
    value = scalars[0] if isinstance(op, BroadcastOp | ReshapeOp) else _evaluated(op, scalars)
    return None if value is None else ConstantOp(value.item(), as_tensor(op.results[0].type))


def folded_number(kind: type[BinaryOp], lhs: ConstantOp, rhs: ConstantOp) -> ConstantOp | None:
    """An op of two constants that are one number each, as one, not yet inserted; None where it has no value."""
    op = cast(Constructor, kind)(Access(lhs.result), Access(rhs.result), domain=NO_DIMS)
    assert isinstance(op, AccessOp)
    folded = _number(op, (lhs, rhs))
    op.erase()
    return folded


def _size(tensor_type: Tensor) -> float:
    """How many elements there are; infinitely many where that is known at run time only."""
    extents = [extent if isinstance(extent, int) else math.inf for extent in shape_of(tensor_type)]
    return 0 if 0 in extents else math.prod(extents)


def _evaluated(op: AccessOp, operands: Sequence[Array]) -> Array | None:
    """The value by the reference interpreter; None where there is none."""
    try:
        return evaluate(op, operands, {}, dims={})[0]
    except ExecutionError as error:
        remark(op, f"not folded: {error}")
        return None


def _constant(value: Array, result_type: Tensor) -> ConstantOp | None:
    """A constant with these elements; None where no literal spells them."""
    numbers = value.reshape(-1).tolist()
    if not numbers:
        return ConstantOp(0, result_type)
    if all(repr(number) == repr(numbers[0]) for number in numbers):
        return ConstantOp(numbers[0], result_type)
    if dtype_name(result_type.element_type) in ("f16", "bf16") or not np.all(np.isfinite(value)):
        return None
    literal_type = cast(TensorType[Float64Type], result_type)  # its stubs know one element type at a time
    return ConstantOp(DenseIntOrFPElementsAttr.from_list(literal_type, numbers), result_type)
