"""Run-time errors of kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr, i32
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.loop.attributes import BufferType, PointAttr
from tempo_ir.dialects.loop.structure import LoopOperation, parse_buffer
from tempo_ir.dialects.types import tensor
from tempo_ir.index.expr import Expr, free_symbols


@irdl_op_definition
class CheckOp(LoopOperation):
    """
    Ends the program with an error where the kernel launched before has left the number of a message, counted from 1:
    `loop.check %status ["integer division by zero, in sdg.mod"] at (t = t)`.

    The buffer holds one i32, zero when the program starts.
    """

    name = "loop.check"

    status = operand_def(BufferType)
    messages_attr = prop_def(ArrayAttr[StringAttr], prop_name="messages")
    point_attr = prop_def(PointAttr, prop_name="point")

    def __init__(self, status: SSAValue, messages: Sequence[str], point: Sequence[tuple[str, Expr]] = ()):
        super().__init__(
            operands=[status],
            properties={
                "messages": ArrayAttr([StringAttr(message) for message in messages]),
                "point": PointAttr(tuple(point)),
            },
        )

    @property
    def messages(self) -> tuple[str, ...]:
        """What each number means, in order."""
        return tuple(message.data for message in self.messages_attr.data)

    @property
    def point(self) -> tuple[tuple[str, Expr], ...]:
        """The point in the domain of the sdg op, for the error."""
        return self.point_attr.data

    def symbol_uses(self) -> Iterator[tuple[str, frozenset[str]]]:
        for name, value in self.point:
            yield f"point '{name}'", free_symbols(value)

    def verify_(self) -> None:
        if self.status.type != BufferType.of((), tensor(i32)):
            raise VerifyException(f"the status is a {self.status.type}, expected !loop.buffer<i32>")
        if not self.messages:
            raise VerifyException("there is no message")

    @classmethod
    def parse(cls, parser: Parser) -> CheckOp:
        status = parse_buffer(parser)
        messages = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)
        point = PointAttr.parse_list(parser) if parser.parse_optional_keyword("at") else ()
        return cls(status, messages, point)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.status)
        printer.print_string(" [")
        printer.print_list(self.messages, printer.print_string_literal)
        printer.print_string("]")
        if self.point:
            printer.print_string(f" at {self.point_attr}")
