"""Reductions and scans over axes. Reducing over nothing gives the identity; max, min and argmax propagate NaN."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import I64, DenseArrayBase, IntegerAttr, LocationAttr, TensorType, UnitAttr, i64
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from tempo_ir.dialects.sdg.base import AccessOp, Operand, as_access
from tempo_ir.dialects.sdg.inference import Extents, check_axes, check_axis, check_element, drop_axes
from tempo_ir.dialects.types import Tensor, shape_of, tensor
from tempo_ir.index.domain import Domain
from tempo_ir.index.expr import TRUE, Cond, as_expr, compare


class ReduceOp(AccessOp, ABC):
    """`sdg.sum %x[t] axes [0, 1] in (t) : (tensor<4x8x2xf32>) -> tensor<2xf32>`: the axes are dropped."""

    ACCEPTS: ClassVar[str] = "number"

    operand = operand_def(TensorType)
    axes_attr = prop_def(DenseArrayBase.constr(i64), prop_name="axes")
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "custom<Accesses>(operands, $indices) `axes` $axes custom<InDomain>($domain) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def __init__(
        self,
        operand: Operand,
        axes: Sequence[int],
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        result = result_type or self.infer(as_access(operand).tensor, axes)
        self.setup((operand,), (result,), domain, {"axes": DenseArrayBase.from_list(i64, axes)}, location)

    @classmethod
    def infer(cls, operand: Tensor, axes: Sequence[int], extents: Extents | None = None) -> Tensor:
        """The operand's type without the axes."""
        check_element(operand.element_type, cls.ACCEPTS, cls.name)
        shape = shape_of(operand)
        return tensor(operand.element_type, drop_axes(shape, check_axes(axes, len(shape), cls.name)))

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes reduced over."""
        return self.axes_attr.get_values()

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        return (self.infer(self.accesses[0].tensor, self.axes),)


def nonempty_claims(op: AccessOp, axes: Sequence[int]) -> Sequence[tuple[Cond, str]]:
    """That the operand has an element along each of the axes."""
    shape = shape_of(op.accesses[0].type)
    conds = [compare(">=", as_expr(shape[axis]), 1) for axis in axes]
    return [(cond, f"{op.name} over an axis that may be empty") for cond in conds if cond != TRUE]


@irdl_op_definition
class SumOp(ReduceOp):
    """The sum; 0 over nothing."""

    name = "sdg.sum"


@irdl_op_definition
class ProdOp(ReduceOp):
    """The product; 1 over nothing."""

    name = "sdg.prod"


@irdl_op_definition
class MaxOp(ReduceOp):
    """The greatest element; -inf, or the least integer, over nothing; any of booleans."""

    name = "sdg.max"
    ACCEPTS: ClassVar[str] = "any"


@irdl_op_definition
class MinOp(ReduceOp):
    """The least element; inf, or the greatest integer, over nothing; all of booleans."""

    name = "sdg.min"
    ACCEPTS: ClassVar[str] = "any"


@irdl_op_definition
class MeanOp(ReduceOp):
    """The mean of floats; its axes must not be empty, which is a precondition where an extent is dynamic."""

    name = "sdg.mean"
    ACCEPTS: ClassVar[str] = "float"

    def claims(self) -> Sequence[tuple[Cond, str]]:
        return nonempty_claims(self, self.axes)


class AlongAxisOp(AccessOp, ABC):
    """Base of the ops that name one axis."""

    axis_attr = prop_def(IntegerAttr[I64], prop_name="axis")
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "custom<Accesses>(operands, $indices) `axis` $axis custom<InDomain>($domain) attr-dict "
        "`:` functional-type(operands, results)"
    )

    @property
    def axis(self) -> int:
        """The axis, counted from 0."""
        return self.axis_attr.value.data


class AxisOp(AlongAxisOp, ABC):
    """Base of the ops along one axis of their operand."""

    ACCEPTS: ClassVar[str] = "number"

    operand = operand_def(TensorType)

    def __init__(
        self,
        operand: Operand,
        axis: int,
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        result = result_type or self.infer(as_access(operand).tensor, axis)
        self.setup((operand,), (result,), domain, {"axis": IntegerAttr(axis, i64)}, location)

    @classmethod
    def infer(cls, operand: Tensor, axis: int, extents: Extents | None = None) -> Tensor:
        """The operand's type: elements move or accumulate along the axis."""
        check_element(operand.element_type, cls.ACCEPTS, cls.name)
        check_axis(axis, operand.get_num_dims(), cls.name)
        return operand

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        return (self.infer(self.accesses[0].tensor, self.axis),)


class ArgReduceOp(AxisOp, ABC):
    """`sdg.argmax %x[t] axis 0 in (t) : (tensor<1000xf32>) -> tensor<i64>`: a position; the axis is dropped."""

    ACCEPTS: ClassVar[str] = "any"

    @classmethod
    def infer(cls, operand: Tensor, axis: int, extents: Extents | None = None) -> Tensor:
        """i64, the operand's shape without the axis."""
        check_element(operand.element_type, cls.ACCEPTS, cls.name)
        shape = shape_of(operand)
        return tensor(i64, drop_axes(shape, (check_axis(axis, len(shape), cls.name),)))

    def claims(self) -> Sequence[tuple[Cond, str]]:
        return nonempty_claims(self, (self.axis,))


@irdl_op_definition
class ArgmaxOp(ArgReduceOp):
    """The position of the greatest element, the first of ties; the axis must not be empty."""

    name = "sdg.argmax"


@irdl_op_definition
class ArgminOp(ArgReduceOp):
    """The position of the least element, the first of ties; the axis must not be empty."""

    name = "sdg.argmin"


@irdl_op_definition
class SoftmaxOp(AxisOp):
    """`exp(x - max) / sum`, along the axis; a row of -inf alone gives zeros."""

    name = "sdg.softmax"
    ACCEPTS: ClassVar[str] = "float"


class ScanOp(AxisOp, ABC):
    """`sdg.cumsum %x[t] axis 0 reverse in (t) : (tensor<8xf32>) -> tensor<8xf32>`: element n combines elements 0 to n,
    or, in reverse, n to the last."""

    reverse_attr = opt_prop_def(UnitAttr, prop_name="reverse")

    assembly_format = (
        "custom<Accesses>(operands, $indices) `axis` $axis (`reverse` $reverse^)? custom<InDomain>($domain) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def __init__(
        self,
        operand: Operand,
        axis: int,
        *,
        reverse: bool = False,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        super().__init__(operand, axis, domain=domain, result_type=result_type, location=location)
        if reverse:
            self.reverse_attr = UnitAttr()

    @property
    def reverse(self) -> bool:
        """Whether the scan runs from the last element to the first."""
        return self.reverse_attr is not None


@irdl_op_definition
class CumsumOp(ScanOp):
    """Running sums."""

    name = "sdg.cumsum"


@irdl_op_definition
class CumprodOp(ScanOp):
    """Running products."""

    name = "sdg.cumprod"
