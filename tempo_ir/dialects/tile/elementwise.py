"""
Elementwise operations. Operands have one element type (`tile.cast` first) and broadcast: scalars fit anything, axes of
extent 1 stretch. On `index` scalars the arithmetic here is the address algebra.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.dialects.builtin import IndexType, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.operation import NominalOperation
from tempo_ir.dialects.tile.attributes import (
    TileType,
    broadcast_shapes,
    element_of,
    is_bool,
    is_float,
    is_integer,
    shape_of,
    verify_element,
)


class ElementwiseOp(NominalOperation, ABC):
    """One result, computed element by element from operands that broadcast together."""

    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        for operand in self.operands:
            if not isinstance(element_of(operand), IndexType):
                verify_element(element_of(operand), "an operand")
        expected = broadcast_shapes(*(shape_of(operand) for operand in self.operands))
        if shape_of(self.result) != expected:
            raise VerifyException(f"result of shape {list(shape_of(self.result))}, operands give {list(expected)}")
        if isinstance(element_of(self.result), IndexType) and expected:
            raise VerifyException("a tile of index is not allowed; use i64")
        self.verify_elements()

    @abstractmethod
    def verify_elements(self) -> None:
        """Check the element types of operands and result; the shapes are known to agree."""

    def require(self, accepted: bool, what: str) -> None:
        """Raise, naming the operand's element type, unless it is `accepted`."""
        if not accepted:
            raise VerifyException(f"takes {what}, not {element_of(self.operands[-1])}")

    def require_same_elements(self, *values: SSAValue) -> None:
        """Raise unless the values have one element type."""
        elements = {element_of(value) for value in values}
        if len(elements) > 1:
            raise VerifyException(f"element types {', '.join(sorted(map(str, elements)))} differ; use tile.cast")


class UnaryOp(ElementwiseOp, ABC):
    """`%y = tile.exp %x : (!tile.tile<64xf32>) -> !tile.tile<64xf32>`"""

    value = operand_def()

    def __init__(self, value: SSAValue):
        super().__init__(operands=[value], result_types=[value.type])

    def verify_elements(self) -> None:
        self.require_same_elements(self.value, self.result)
        self.verify_element()

    def verify_element(self) -> None:
        """Check the one element type."""
        element = element_of(self.value)
        self.require(is_float(element) or is_integer(element), "integers or floats")


class FloatUnaryOp(UnaryOp, ABC):
    """A function of floats."""

    def verify_element(self) -> None:
        self.require(is_float(element_of(self.value)), "floats")


@irdl_op_definition
class NegOp(UnaryOp):
    name = "tile.neg"


@irdl_op_definition
class AbsOp(UnaryOp):
    name = "tile.abs"


@irdl_op_definition
class SignOp(UnaryOp):
    """-1, 0 or 1; NaN stays NaN."""

    name = "tile.sign"


@irdl_op_definition
class NotOp(UnaryOp):
    """Bitwise complement; logical on i1."""

    name = "tile.not"

    def verify_element(self) -> None:
        element = element_of(self.value)
        self.require(is_bool(element) or is_integer(element), "i1 or integers")


@irdl_op_definition
class ExpOp(FloatUnaryOp):
    name = "tile.exp"


@irdl_op_definition
class LogOp(FloatUnaryOp):
    """Natural logarithm; -inf at 0, NaN below."""

    name = "tile.log"


@irdl_op_definition
class Log1pOp(FloatUnaryOp):
    """Natural logarithm of 1 + x, exact for small x too; -inf at -1, NaN below."""

    name = "tile.log1p"


@irdl_op_definition
class SqrtOp(FloatUnaryOp):
    name = "tile.sqrt"


@irdl_op_definition
class RsqrtOp(FloatUnaryOp):
    """1 / sqrt(x)"""

    name = "tile.rsqrt"


@irdl_op_definition
class TanhOp(FloatUnaryOp):
    name = "tile.tanh"


@irdl_op_definition
class SigmoidOp(FloatUnaryOp):
    """1 / (1 + exp(-x))"""

    name = "tile.sigmoid"


@irdl_op_definition
class ErfOp(FloatUnaryOp):
    name = "tile.erf"


@irdl_op_definition
class SinOp(FloatUnaryOp):
    name = "tile.sin"


@irdl_op_definition
class CosOp(FloatUnaryOp):
    name = "tile.cos"


@irdl_op_definition
class FloorOp(FloatUnaryOp):
    name = "tile.floor"


@irdl_op_definition
class CeilOp(FloatUnaryOp):
    name = "tile.ceil"


@irdl_op_definition
class RoundOp(FloatUnaryOp):
    """To the nearest integer, ties to even."""

    name = "tile.round"


class BinaryOp(ElementwiseOp, ABC):
    """`%c = tile.add %a, %b : (!tile.tile<2x64xf32>, f32) -> !tile.tile<2x64xf32>`"""

    lhs = operand_def()
    rhs = operand_def()

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        shape = broadcast_shapes(shape_of(lhs), shape_of(rhs))
        super().__init__(operands=[lhs, rhs], result_types=[TileType.of(shape, self.result_element(element_of(lhs)))])

    @staticmethod
    def result_element(element: Attribute) -> Attribute:
        """The result's element type, from that of the operands."""
        return element

    def verify_elements(self) -> None:
        self.require_same_elements(self.lhs, self.rhs)
        self.verify_element()
        expected = self.result_element(element_of(self.lhs))
        if element_of(self.result) != expected:
            raise VerifyException(f"result holds {element_of(self.result)}, expected {expected}")

    def verify_element(self) -> None:
        """Check the one element type of the operands."""
        element = element_of(self.lhs)
        self.require(is_float(element) or is_integer(element), "integers or floats")


@irdl_op_definition
class AddOp(BinaryOp):
    """Integers wrap."""

    name = "tile.add"


@irdl_op_definition
class SubOp(BinaryOp):
    """Integers wrap."""

    name = "tile.sub"


@irdl_op_definition
class MulOp(BinaryOp):
    """Integers wrap."""

    name = "tile.mul"


@irdl_op_definition
class DivOp(BinaryOp):
    """True division, of floats; integers have `tile.floordiv`."""

    name = "tile.div"

    def verify_element(self) -> None:
        self.require(is_float(element_of(self.lhs)), "floats")


@irdl_op_definition
class FloorDivOp(BinaryOp):
    """Quotient rounded down. An integer divided by zero gives 0: who may divide by zero checks before."""

    name = "tile.floordiv"


@irdl_op_definition
class ModOp(BinaryOp):
    """`a - floordiv(a, b) * b`: has the sign of `b`. An integer modulo zero gives 0."""

    name = "tile.mod"


@irdl_op_definition
class PowOp(BinaryOp):
    """
    `a` to the power `b`. Integers wrap; a negative integer exponent gives 0 but for the bases 1 and -1 (and 0, whose
    negative powers are 0 too).
    """

    name = "tile.pow"


@irdl_op_definition
class MaxOp(BinaryOp):
    """NaN where either operand is NaN."""

    name = "tile.max"


@irdl_op_definition
class MinOp(BinaryOp):
    """NaN where either operand is NaN."""

    name = "tile.min"


class ComparisonOp(BinaryOp, ABC):
    """
    `%c = tile.lt %a, %b : (!tile.tile<64xf32>, f32) -> !tile.tile<64xi1>`: as IEEE, so false where an operand is NaN
    (`tile.ne`: true).
    """

    @staticmethod
    def result_element(element: Attribute) -> Attribute:
        return i1


@irdl_op_definition
class LtOp(ComparisonOp):
    name = "tile.lt"


@irdl_op_definition
class LeOp(ComparisonOp):
    name = "tile.le"


@irdl_op_definition
class GtOp(ComparisonOp):
    name = "tile.gt"


@irdl_op_definition
class GeOp(ComparisonOp):
    name = "tile.ge"


class EqualityOp(ComparisonOp, ABC):
    """A comparison that i1 has too."""

    def verify_element(self) -> None:
        element = element_of(self.lhs)
        self.require(is_float(element) or is_integer(element) or is_bool(element), "i1, integers or floats")


@irdl_op_definition
class EqOp(EqualityOp):
    name = "tile.eq"


@irdl_op_definition
class NeOp(EqualityOp):
    name = "tile.ne"


class BitwiseOp(BinaryOp, ABC):
    """Bit by bit; logical on i1."""

    def verify_element(self) -> None:
        element = element_of(self.lhs)
        self.require(is_bool(element) or is_integer(element), "i1 or integers")


@irdl_op_definition
class AndOp(BitwiseOp):
    name = "tile.and"


@irdl_op_definition
class OrOp(BitwiseOp):
    name = "tile.or"


@irdl_op_definition
class XorOp(BitwiseOp):
    name = "tile.xor"


class ShiftOp(BinaryOp, ABC):
    """Shift by an amount taken as unsigned: by the width or more, every bit is shifted out."""

    def verify_element(self) -> None:
        self.require(is_integer(element_of(self.lhs)), "integers")


@irdl_op_definition
class ShlOp(ShiftOp):
    name = "tile.shl"


@irdl_op_definition
class ShrOp(ShiftOp):
    """Arithmetic (copies the sign) on signed integers, logical on unsigned ones."""

    name = "tile.shr"


@irdl_op_definition
class SelectOp(ElementwiseOp):
    """`%r = tile.select %c, %a, %b : (!tile.tile<64xi1>, !tile.tile<64xf32>, f32) -> !tile.tile<64xf32>`"""

    name = "tile.select"
    condition = operand_def()
    lhs = operand_def()
    rhs = operand_def()

    def __init__(self, condition: SSAValue, lhs: SSAValue, rhs: SSAValue):
        shape = broadcast_shapes(shape_of(condition), shape_of(lhs), shape_of(rhs))
        super().__init__(operands=[condition, lhs, rhs], result_types=[TileType.of(shape, element_of(lhs))])

    def verify_elements(self) -> None:
        if not is_bool(element_of(self.condition)):
            raise VerifyException(f"the condition holds i1, not {element_of(self.condition)}")
        self.require_same_elements(self.lhs, self.rhs, self.result)


@irdl_op_definition
class CastOp(ElementwiseOp):
    """
    `%y = tile.cast %x : (!tile.tile<64xf32>) -> !tile.tile<64xi32>`

    Float to integer truncates, saturates and sends NaN to 0; integers narrow by wrapping; to i1 asks `!= 0`; float to
    float rounds to nearest even. A scalar may be cast to and from `index`.
    """

    name = "tile.cast"
    value = operand_def()

    def __init__(self, value: SSAValue, element: Attribute):
        super().__init__(operands=[value], result_types=[TileType.of(shape_of(value), element)])

    def verify_elements(self) -> None:
        if not isinstance(element_of(self.result), IndexType):
            verify_element(element_of(self.result), "the result")


FLOAT_UNARY = (
    ExpOp, LogOp, Log1pOp, SqrtOp, RsqrtOp, TanhOp, SigmoidOp, ErfOp, SinOp, CosOp, FloorOp, CeilOp, RoundOp,
)  # fmt: skip
UNARY = (NegOp, AbsOp, SignOp, NotOp, *FLOAT_UNARY)
BINARY = (AddOp, SubOp, MulOp, DivOp, FloorDivOp, ModOp, PowOp, MaxOp, MinOp)
COMPARISONS = (LtOp, LeOp, GtOp, GeOp, EqOp, NeOp)
BITWISE = (AndOp, OrOp, XorOp, ShlOp, ShrOp)
ELEMENTWISE = (*UNARY, *BINARY, *COMPARISONS, *BITWISE, SelectOp, CastOp)
"""Every elementwise op, in the order of this file."""
