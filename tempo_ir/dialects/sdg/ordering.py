"""Ops that put the elements of an axis in another order: sorting, positions in order, reversal."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.dialects.builtin import LocationAttr, UnitAttr, i64
from xdsl.irdl import irdl_op_definition, opt_prop_def

from tempo_ir.dialects.sdg.base import Operand
from tempo_ir.dialects.sdg.inference import Extents
from tempo_ir.dialects.sdg.reduction import AxisOp
from tempo_ir.dialects.types import Tensor, shape_of, tensor
from tempo_ir.index.domain import Domain


class OrderOp(AxisOp, ABC):
    """`sdg.sort %x[t] axis 0 descending in (t) : (tensor<8xf32>) -> tensor<8xf32>`: stable; NaN counts as greatest."""

    ACCEPTS: ClassVar[str] = "any"

    descending_attr = opt_prop_def(UnitAttr, prop_name="descending")

    assembly_format = (
        "custom<Accesses>(operands, $indices) `axis` $axis (`descending` $descending^)? custom<InDomain>($domain) "
        "attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        operand: Operand,
        axis: int,
        *,
        descending: bool = False,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        super().__init__(operand, axis, domain=domain, result_type=result_type, location=location)
        if descending:
            self.descending_attr = UnitAttr()

    @property
    def descending(self) -> bool:
        """Whether the greatest element comes first."""
        return self.descending_attr is not None


@irdl_op_definition
class SortOp(OrderOp):
    """The elements in order along the axis."""

    name = "sdg.sort"


@irdl_op_definition
class ArgsortOp(OrderOp):
    """The positions, as i64, that put the elements in order along the axis."""

    name = "sdg.argsort"

    @classmethod
    def infer(cls, operand: Tensor, axis: int, extents: Extents | None = None) -> Tensor:
        """i64, the operand's shape."""
        super().infer(operand, axis)
        return tensor(i64, shape_of(operand))


@irdl_op_definition
class ReverseOp(AxisOp):
    """The elements from last to first along the axis:
    `sdg.reverse %x[t] axis 0 in (t) : (tensor<8xf32>) -> tensor<8xf32>`."""

    name = "sdg.reverse"
    ACCEPTS: ClassVar[str] = "any"
