"""Sums weighted by a softmax, in shares of what is summed: what programs of a GPU compute apart, to be combined."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, Float64Type, IntegerAttr, StringAttr, TensorType, f32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.loop.weighted_sum import WeightedSumOperation
from tempo_ir.dialects.sdg.contraction import parse_spec
from tempo_ir.dialects.types import Tensor, as_tensor, shape_of, tensor


@irdl_op_definition
class SharesOp(WeightedSumOperation):
    """
    A sum weighted by a softmax, share by share, in the body of a leaf or kernel:

    `%sum, %greatest, %total = loop.shares "gn,nd->gd" %score, %v into 16 of 64 : (...) -> (...)`

    What is summed is dealt out to 16 shares in turn, 64 elements at a time, so that the last ones may have fewer, or
    none; which share has what is no part of the meaning, only what all of them make together. Each result has an axis
    of 16 in front: the greatest score of a share, the sum of its weights `exp(score - greatest)`, and the sum of the
    values times these weights. A share with nothing in it, or with scores of -inf alone, has the greatest -inf and
    sums of 0. 16-bit floats are summed in f32.
    """

    name = "loop.shares"

    shares_attr = prop_def(IntegerAttr[I64], prop_name="shares")
    block_attr = prop_def(IntegerAttr[I64], prop_name="block")
    result = result_def(TensorType)
    greatest = result_def(TensorType)
    total = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, spec: str, scores: SSAValue, summed: SSAValue, shares: int, block: int):
        self.initialise(
            operands=[scores, summed],
            result_types=self.infer(spec, as_tensor(scores.type), as_tensor(summed.type), shares),
            properties={
                "spec": StringAttr(spec),
                "shares": IntegerAttr(shares, i64),
                "block": IntegerAttr(block, i64),
            },
        )

    @staticmethod
    def infer(spec: str, scores: Tensor, summed: Tensor, shares: int) -> Sequence[Tensor]:
        """The types of the sum, the greatest scores and the totals.

        Raises VerifyException where the letters do not fit: one is summed, that both operands have.
        """
        inputs, output = parse_spec(spec)
        product = SharesOp.product(spec, scores, summed)
        kind = product.element_type if isinstance(product.element_type, Float64Type) else f32
        extents = dict(zip(output, shape_of(product), strict=True))
        rows = [extents[letter] for letter in output if letter in inputs[0]]
        return tensor(kind, [shares, *shape_of(product)]), *[tensor(kind, [shares, *rows])] * 2

    @property
    def shares(self) -> int:
        """How many shares there are."""
        return self.shares_attr.value.data

    @property
    def block(self) -> int:
        """How many elements are dealt out at a time."""
        return self.block_attr.value.data

    def verify_(self) -> None:
        if self.shares < 1 or self.block < 1:
            raise VerifyException("shares and blocks are counted from 1")
        found = [result.type for result in self.results]
        expected = list(
            self.infer(self.spec.data, as_tensor(self.scores.type), as_tensor(self.summed.type), self.shares)
        )
        if found != expected:
            raise VerifyException(f"results are ({_types(found)}), expected ({_types(expected)})")

    @classmethod
    def parse(cls, parser: Parser) -> SharesOp:
        spec = parser.parse_str_literal()
        operands = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
        parser.parse_keyword("into")
        shares = parser.parse_integer()
        parser.parse_keyword("of")
        block = parser.parse_integer()
        parser.parse_punctuation(":")
        kind = parser.parse_function_type()
        if len(kind.inputs) != 2:
            parser.raise_error("loop.shares has two operands")
        scores, summed = (
            parser.resolve_operand(operand, type_) for operand, type_ in zip(operands, kind.inputs, strict=True)
        )
        op = cls(spec, scores, summed, shares, block)
        if (found := list(kind.outputs)) != list(op.result_types):
            parser.raise_error(f"results are ({_types(found)}), expected ({_types(op.result_types)})")
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f' "{self.spec.data}" ')
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(f" into {self.shares} of {self.block} : ")
        printer.print_operation_type(self)


def _types(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))
