"""Run-time errors of kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr, i64
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.loop.attributes import BufferType, PointAttr
from tempo_ir.dialects.loop.structure import LoopOperation, parse_buffer
from tempo_ir.dialects.types import shape_of, tensor
from tempo_ir.index.expr import Expr, free_symbols

VALUE = "{value}"
"""Stands in a message for the value that it is about."""


def status_type(messages: int) -> BufferType:
    """The memory in which kernels that have up to so many messages leave one."""
    return BufferType.of((), tensor(i64, (messages + 1,)))


def _is_cells(kind: BufferType, least: int) -> bool:
    """Whether a buffer is one row of at least so many i64."""
    shape = shape_of(kind.row)
    cells = shape[0] if len(shape) == 1 else None
    return isinstance(cells, int) and cells >= least and kind == status_type(cells - 1)


@irdl_op_definition
class CheckOp(LoopOperation):
    """
    Ends the program with an error where the kernel launched before has left the number of a message, counted from 1:
    `loop.check %status ["id {value} is outside of the 4 rows, in sdg.gather"] at (t = t)`.

    The buffer holds i64, zero when the program starts: the number of the message, then for each message, in order, the
    value that it is about. A kernel may fail in several ways and on several threads at once: any of them is told.
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

    def message(self, cells: Sequence[int]) -> str:
        """What the cells of the buffer, one of which is not zero, say."""
        number = int(cells[0])
        return self.messages[number - 1].replace(VALUE, str(int(cells[number])))

    def symbol_uses(self) -> Iterator[tuple[str, frozenset[str]]]:
        for name, value in self.point:
            yield f"point '{name}'", free_symbols(value)

    def verify_(self) -> None:
        if not self.messages:
            raise VerifyException("there is no message")
        least = status_type(len(self.messages))
        if not isinstance(self.status.type, BufferType) or not _is_cells(self.status.type, len(self.messages) + 1):
            raise VerifyException(f"the status is a {self.status.type}, expected {least} or more cells")

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
