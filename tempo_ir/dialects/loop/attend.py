"""Attention of many rows at once: sums weighted by a softmax along keys, of which each row has its own range."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.loop.weighted_sum import WeightedSumOperation
from tempo_ir.dialects.sdg.attributes import EntryAttr
from tempo_ir.dialects.sdg.contraction import parse_spec
from tempo_ir.dialects.types import Tensor, as_tensor
from tempo_ir.index.expr import Expr, Slice
from tempo_ir.index.parser import parse_expr


@irdl_op_definition
class AttendOp(WeightedSumOperation):
    """
    A sum weighted by a softmax, in the body of a kernel, where each row has a range of keys:

    `%o = loop.attend "thn,nhd->thd" %score, %v rows t from -63 to 1 : (...) -> tensor<?x8x64xf32, #sdg.size<T>>`

    Row t has the keys `t - 63 <= n < t + 1` of those there are: without `from` or `to` no end of its own on that side.
    Scores of other keys, and what would be summed of them, do not count at all, infinities and NaN included. A row
    without keys, or with scores of -inf alone, gives 0.
    """

    name = "loop.attend"

    row_attr = prop_def(StringAttr, prop_name="row")
    low_attr = opt_prop_def(EntryAttr, prop_name="low")
    high_attr = opt_prop_def(EntryAttr, prop_name="high")
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(
        self, spec: str, scores: SSAValue, summed: SSAValue, row: str, low: Expr | None = None, high: Expr | None = None
    ):
        super().__init__(
            operands=[scores, summed],
            result_types=[self.infer(spec, as_tensor(scores.type), as_tensor(summed.type), row)],
            properties={
                "spec": StringAttr(spec),
                "row": StringAttr(row),
                "low": None if low is None else EntryAttr(low),
                "high": None if high is None else EntryAttr(high),
            },
        )

    @staticmethod
    def infer(spec: str, scores: Tensor, summed: Tensor, row: str) -> Tensor:
        """The type of the sum.

        Raises VerifyException where the letters do not fit: one is summed, that both operands have, and the rows are an
        axis of the scores and of the result alone.
        """
        inputs, output = parse_spec(spec)
        product = AttendOp.product(spec, scores, summed)
        if len(row) != 1 or row not in inputs[0] or row in inputs[1] or row not in output:
            raise VerifyException(f"'{row}' is no axis of rows of loop.attend \"{spec}\"")
        return product

    @property
    def row(self) -> str:
        """The letter of the rows."""
        return self.row_attr.data

    @property
    def low(self) -> Expr | None:
        """The first key of row 0, where rows have one of their own."""
        return _expression(self.low_attr)

    @property
    def high(self) -> Expr | None:
        """The end of the keys of row 0, where rows have one of their own."""
        return _expression(self.high_attr)

    def verify_(self) -> None:
        expected = self.infer(self.spec.data, as_tensor(self.scores.type), as_tensor(self.summed.type), self.row)
        if self.result.type != expected:
            raise VerifyException(f"result is {self.result.type}, expected {expected}")

    @classmethod
    def parse(cls, parser: Parser) -> AttendOp:
        spec = parser.parse_str_literal()
        operands = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
        parser.parse_keyword("rows")
        row = parser.parse_identifier()
        low = parse_expr(parser) if parser.parse_optional_keyword("from") else None
        high = parse_expr(parser) if parser.parse_optional_keyword("to") else None
        parser.parse_punctuation(":")
        kind = parser.parse_function_type()
        if len(kind.inputs) != 2:
            parser.raise_error("loop.attend has two operands")
        scores, summed = (
            parser.resolve_operand(operand, type_) for operand, type_ in zip(operands, kind.inputs, strict=True)
        )
        op = cls(spec, scores, summed, row, low, high)
        if list(kind.outputs) != list(op.result_types):
            parser.raise_error(f"result is {', '.join(map(str, kind.outputs))}, expected {op.result.type}")
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f' "{self.spec.data}" ')
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(f" rows {self.row}")
        printer.print_string("" if self.low is None else f" from {self.low}")
        printer.print_string("" if self.high is None else f" to {self.high}")
        printer.print_string(" : ")
        printer.print_operation_type(self)


def _expression(entry: EntryAttr | None) -> Expr | None:
    if entry is None or isinstance(entry.data, Slice):
        return None
    return entry.data
