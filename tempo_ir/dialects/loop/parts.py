"""Sums over rows in parts: what the programs of a kernel add up apart, to be combined."""

from __future__ import annotations

from xdsl.dialects.builtin import I64, IntegerAttr, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.loop.structure import LoopOperation
from tempo_ir.dialects.types import Tensor, as_tensor, element, shape_of, tensor


@irdl_op_definition
class PartsOp(LoopOperation):
    """
    A sum in parts, in the body of a kernel that is computed by blocks of rows:

    `%p = loop.parts %sum into 8 : tensor<64x64xf32>`

    Blocks of rows are dealt out to 8 programs in turn, and each writes the sum over its own: the result has an axis of
    8 in front. Which part has which rows is no part of the meaning, only what all of them add up to.
    """

    name = "loop.parts"

    count_attr = prop_def(IntegerAttr[I64], prop_name="count")
    operand = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue, count: int):
        self.initialise(
            operands=[operand],
            result_types=[self.infer(as_tensor(operand.type), count)],
            properties={"count": IntegerAttr(count, i64)},
        )

    @staticmethod
    def infer(operand: Tensor, count: int) -> Tensor:
        """The type of the parts."""
        return tensor(element(operand), [count, *shape_of(operand)])

    @property
    def count(self) -> int:
        """How many parts there are."""
        return self.count_attr.value.data

    def verify_(self) -> None:
        if self.count < 1:
            raise VerifyException("parts are counted from 1")
        expected = self.infer(as_tensor(self.operand.type), self.count)
        if self.result.type != expected:
            raise VerifyException(f"result is {self.result.type}, expected {expected}")

    @classmethod
    def parse(cls, parser: Parser) -> PartsOp:
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("into")
        count = parser.parse_integer()
        parser.parse_punctuation(":")
        return cls(parser.resolve_operand(operand, parser.parse_type()), count)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(f" into {self.count} : ")
        printer.print_attribute(self.operand.type)
