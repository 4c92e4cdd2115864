"""Elementwise ops. Operands share one element type (a cast is explicit) and broadcast as in numpy, aligned right."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import LocationAttr, TensorType, i1
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Commutative, Pure

from tempo_ir.dialects.sdg.base import AccessOp, Operand, as_access
from tempo_ir.dialects.sdg.inference import Extents, check_element, elementwise, same_element
from tempo_ir.dialects.types import Tensor, dtype_name, element, shape_of, tensor
from tempo_ir.index.domain import Domain


class UnaryOp(AccessOp, ABC):
    """`sdg.exp %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>`: shape and element type are those of the operand."""

    ACCEPTS: ClassVar[str] = "float"

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        operand: Operand,
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        self.setup((operand,), (result_type or self.infer(as_access(operand).tensor),), domain, {}, location)

    @classmethod
    def infer(cls, operand: Tensor, extents: Extents | None = None) -> Tensor:
        """The operand's type."""
        check_element(operand.element_type, cls.ACCEPTS, cls.name)
        return operand

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        return (self.infer(self.accesses[0].tensor),)


@irdl_op_definition
class NegOp(UnaryOp):
    """`-x`; integers wrap."""

    name = "sdg.neg"
    ACCEPTS: ClassVar[str] = "number"


@irdl_op_definition
class AbsOp(UnaryOp):
    """`|x|`; the least integer stays itself."""

    name = "sdg.abs"
    ACCEPTS: ClassVar[str] = "number"


@irdl_op_definition
class SignOp(UnaryOp):
    """-1, 0 or 1; NaN stays NaN."""

    name = "sdg.sign"
    ACCEPTS: ClassVar[str] = "number"


@irdl_op_definition
class ExpOp(UnaryOp):
    """`e ** x`."""

    name = "sdg.exp"


@irdl_op_definition
class LogOp(UnaryOp):
    """The natural logarithm."""

    name = "sdg.log"


@irdl_op_definition
class Log1pOp(UnaryOp):
    """The natural logarithm of 1 + x, as exact for small x as for others."""

    name = "sdg.log1p"


@irdl_op_definition
class SqrtOp(UnaryOp):
    """The square root."""

    name = "sdg.sqrt"


@irdl_op_definition
class RsqrtOp(UnaryOp):
    """`1 / sqrt(x)`."""

    name = "sdg.rsqrt"


@irdl_op_definition
class TanhOp(UnaryOp):
    """The hyperbolic tangent."""

    name = "sdg.tanh"


@irdl_op_definition
class SigmoidOp(UnaryOp):
    """`1 / (1 + exp(-x))`, without overflow."""

    name = "sdg.sigmoid"


@irdl_op_definition
class ErfOp(UnaryOp):
    """The error function."""

    name = "sdg.erf"


@irdl_op_definition
class SinOp(UnaryOp):
    """The sine, in radians."""

    name = "sdg.sin"


@irdl_op_definition
class CosOp(UnaryOp):
    """The cosine, in radians."""

    name = "sdg.cos"


@irdl_op_definition
class FloorOp(UnaryOp):
    """The greatest whole number not above x."""

    name = "sdg.floor"


@irdl_op_definition
class CeilOp(UnaryOp):
    """The least whole number not below x."""

    name = "sdg.ceil"


@irdl_op_definition
class RoundOp(UnaryOp):
    """The nearest whole number, ties to even."""

    name = "sdg.round"


@irdl_op_definition
class NotOp(UnaryOp):
    """Logical not of booleans, bitwise not of integers."""

    name = "sdg.not"
    ACCEPTS: ClassVar[str] = "logic"


@irdl_op_definition
class CastOp(AccessOp):
    """Another element type: `sdg.cast %x[t] in (t) : (tensor<4xi64>) -> tensor<4xf32>`.

    Float to integer truncates and saturates, NaN becomes 0; to bool is `x != 0`.
    """

    name = "sdg.cast"

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        operand: Operand,
        element_type: Attribute | None = None,
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        if result_type is None:
            if element_type is None:
                raise ValueError("a cast needs element_type or result_type")
            result_type = self.infer(as_access(operand).tensor, element_type)
        self.setup((operand,), (result_type,), domain, {}, location)

    @staticmethod
    def infer(operand: Tensor, element_type: Attribute, extents: Extents | None = None) -> Tensor:
        """The operand's shape with elements of `element_type`."""
        check_element(operand.element_type, "any", "sdg.cast")
        check_element(element_type, "any", "sdg.cast")
        return operand if operand.element_type == element_type else tensor(element_type, shape_of(operand))

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        return (self.infer(self.accesses[0].tensor, element(self.result.type)),)


class BinaryOp(AccessOp, ABC):
    """`sdg.add %x[t], %y in (t) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>`: operands broadcast."""

    ACCEPTS: ClassVar[str] = "number"

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        lhs: Operand,
        rhs: Operand,
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        result = result_type or self.infer(as_access(lhs).tensor, as_access(rhs).tensor)
        self.setup((lhs, rhs), (result,), domain, {}, location)

    @classmethod
    def infer(cls, lhs: Tensor, rhs: Tensor, extents: Extents | None = None) -> Tensor:
        """The broadcast shape, with the common element type."""
        check_element(same_element((lhs, rhs), cls.name), cls.ACCEPTS, cls.name)
        return elementwise((lhs, rhs), cls.name, extents or Extents())

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        lhs, rhs = self.accesses
        return (self.infer(lhs.tensor, rhs.tensor, extents),)


@irdl_op_definition
class AddOp(BinaryOp):
    """`x + y`; integers wrap."""

    name = "sdg.add"
    traits = traits_def(Commutative())


@irdl_op_definition
class SubOp(BinaryOp):
    """`x - y`; integers wrap."""

    name = "sdg.sub"


@irdl_op_definition
class MulOp(BinaryOp):
    """`x * y`; integers wrap."""

    name = "sdg.mul"
    traits = traits_def(Commutative())


@irdl_op_definition
class DivOp(BinaryOp):
    """`x / y` of floats; integers are cast first, or divided by sdg.floordiv."""

    name = "sdg.div"
    ACCEPTS: ClassVar[str] = "float"


@irdl_op_definition
class PowOp(BinaryOp):
    """`x ** y`; integers wrap."""

    name = "sdg.pow"


@irdl_op_definition
class FloordivOp(BinaryOp):
    """`floor(x / y)`; an integer division by zero is a run-time error."""

    name = "sdg.floordiv"


@irdl_op_definition
class ModOp(BinaryOp):
    """`x - y * floor(x / y)`, with the sign of y; an integer division by zero is a run-time error."""

    name = "sdg.mod"


@irdl_op_definition
class MinimumOp(BinaryOp):
    """The smaller element; NaN wins."""

    name = "sdg.minimum"
    traits = traits_def(Commutative())


@irdl_op_definition
class MaximumOp(BinaryOp):
    """The greater element; NaN wins."""

    name = "sdg.maximum"
    traits = traits_def(Commutative())


class LogicOp(BinaryOp, ABC):
    """Logic of booleans, bitwise logic of integers."""

    ACCEPTS: ClassVar[str] = "logic"


@irdl_op_definition
class AndOp(LogicOp):
    """Both."""

    name = "sdg.and"
    traits = traits_def(Commutative())


@irdl_op_definition
class OrOp(LogicOp):
    """Either."""

    name = "sdg.or"
    traits = traits_def(Commutative())


@irdl_op_definition
class XorOp(LogicOp):
    """One, not both."""

    name = "sdg.xor"
    traits = traits_def(Commutative())


class CompareOp(BinaryOp, ABC):
    """A comparison: booleans of the broadcast shape."""

    @classmethod
    def infer(cls, lhs: Tensor, rhs: Tensor, extents: Extents | None = None) -> Tensor:
        """The broadcast shape, with elements of i1."""
        check_element(same_element((lhs, rhs), cls.name), cls.ACCEPTS, cls.name)
        return elementwise((lhs, rhs), cls.name, extents or Extents(), result=i1)


@irdl_op_definition
class LtOp(CompareOp):
    """`x < y`."""

    name = "sdg.lt"


@irdl_op_definition
class LeOp(CompareOp):
    """`x <= y`."""

    name = "sdg.le"


@irdl_op_definition
class GtOp(CompareOp):
    """`x > y`."""

    name = "sdg.gt"


@irdl_op_definition
class GeOp(CompareOp):
    """`x >= y`."""

    name = "sdg.ge"


@irdl_op_definition
class EqOp(CompareOp):
    """`x == y`."""

    name = "sdg.eq"
    ACCEPTS: ClassVar[str] = "any"
    traits = traits_def(Commutative())


@irdl_op_definition
class NeOp(CompareOp):
    """`x != y`."""

    name = "sdg.ne"
    ACCEPTS: ClassVar[str] = "any"
    traits = traits_def(Commutative())


@irdl_op_definition
class SelectOp(AccessOp):
    """`condition ? x : y`, element by element; the three broadcast:
    `sdg.select %c[t], %x[t], %y in (t) : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>`."""

    name = "sdg.select"

    condition = operand_def(TensorType)
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        condition: Operand,
        lhs: Operand,
        rhs: Operand,
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        result = result_type or self.infer(as_access(condition).tensor, as_access(lhs).tensor, as_access(rhs).tensor)
        self.setup((condition, lhs, rhs), (result,), domain, {}, location)

    @staticmethod
    def infer(condition: Tensor, lhs: Tensor, rhs: Tensor, extents: Extents | None = None) -> Tensor:
        """The broadcast of the three shapes, with the element type of the two values."""
        check_element(condition.element_type, "bool", "the condition of sdg.select")
        common = same_element((lhs, rhs), "sdg.select")
        dtype_name(common)
        shapes = [shape_of(operand) for operand in (condition, lhs, rhs)]
        shape = (extents or Extents()).broadcast(shapes, "sdg.select")
        return lhs if shape == shapes[1] else tensor(common, shape)

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        condition, lhs, rhs = self.accesses
        return (self.infer(condition.tensor, lhs.tensor, rhs.tensor, extents),)
