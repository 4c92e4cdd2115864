"""Parsing of IR text whose ops know where they stand, as in MLIR: an op without `loc(...)` gets its file position."""

from __future__ import annotations

from bisect import bisect_right

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Span


class LocatedParser(Parser):
    """xDSL's parser, and a location for every op. A type or attribute that does not verify is an error at its op."""

    def __init__(self, ctx: Context, text: str, name: str) -> None:
        super().__init__(ctx, text, name)
        self._name = StringAttr(name)
        self._line_starts = [0, *(position + 1 for position, character in enumerate(text) if character == "\n")]

    def parse_operation(self) -> Operation:
        start = self.pos
        try:
            operation = super().parse_operation()
        except VerifyException as error:
            raise ParseError(self._first_token(start), str(error)) from error
        if operation.location == UNKNOWN_LOC:
            operation.location = self._location(start)
        return operation

    def _first_token(self, start: int) -> Span[str]:
        source = self.lexer.input
        end = start
        while end < len(source) and not source.content[end].isspace():
            end += 1
        return Span(start, end, source)

    def _location(self, position: int) -> FileLineColLoc:
        line = bisect_right(self._line_starts, position)
        column = position - self._line_starts[line - 1] + 1
        return FileLineColLoc(self._name, IntAttr(line), IntAttr(column))


def parse_module(ctx: Context, text: str, name: str, *, implicit_module: bool = True) -> ModuleOp:
    """Parse `text`, called `name` in locations and messages, as one module. Raises ParseError."""
    return LocatedParser(ctx, text, name).parse_module(implicit_module)


def failing_operation(module: ModuleOp, error: VerifyException) -> Operation | None:
    """The op whose own verifier says what `error` says; None if no op does (an error of a block or a region)."""
    for operation in module.walk():
        try:
            operation.verify(verify_nested_ops=False)
        except VerifyException as found:
            if str(found) == str(error):
                return operation
    return None
