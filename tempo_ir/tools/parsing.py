"""Parsing of IR text whose ops know where they stand, as in MLIR: an op without `loc(...)` gets its file position."""

from __future__ import annotations

from bisect import bisect_right
from difflib import get_close_matches
from itertools import takewhile

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, Builtin, FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import AttributeInvT, Block, Operation, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from tempo_ir import dialects


class LocatedParser(Parser):
    """xDSL's parser, and a location for every op. A type or attribute that does not verify is an error at its op."""

    def __init__(self, ctx: Context, text: str, name: str) -> None:
        super().__init__(ctx, text, name)
        self._name = StringAttr(name)
        self._operation_start = 0
        self._first_use: dict[str, Span[str]] = {}
        self._end = len(text.rstrip())  # what is missing at the end is shown behind the last word of the text
        self._line_starts = [0, *(position + 1 for position, character in enumerate(text) if character == "\n")]

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        if allow_implicit_module and self._current_token.kind == MLIRTokenKind.EOF:
            return ModuleOp([])
        try:
            return super().parse_module(allow_implicit_module)
        except ParseError as error:
            undefined = next(iter(self.forward_ssa_references), None)
            if undefined is not None and error.msg.startswith("values used but not defined"):
                # xDSL finds this at the end of the input; the user looks for it at the first use
                undefined_text = f"value %{undefined} is used but not defined"
                raise ParseError(self._first_use[undefined], undefined_text) from None
            if error.span.start >= self._end > 0:
                raise ParseError(Span(self._end - 1, self._end, self.lexer.input), error.msg) from None
            raise

    def _parse_block(self) -> Block:
        if self._current_token.kind == MLIRTokenKind.EOF:
            self.raise_error("the text ends inside of a region: an operation or `}` is expected")
        if self._current_token.kind != MLIRTokenKind.CARET_IDENT:
            self.raise_error("an operation or `}` is expected")
        return super()._parse_block()

    def resolve_operand(self, operand: UnresolvedOperand, type: AttributeInvT) -> SSAValue[AttributeInvT]:
        self._first_use.setdefault(operand.operand_name, operand.span)
        return super().resolve_operand(operand, type)

    def parse_operation(self) -> Operation:
        start = self._operation_start = self.pos
        try:
            operation = super().parse_operation()
        except VerifyException as error:
            raise ParseError(self._first_token(start), str(error)) from error
        if operation.location == UNKNOWN_LOC:
            operation.location = self._location(start)
        return operation

    def _get_op_by_name(self, name: str) -> type[Operation]:
        found = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if found is not None:
            return found
        start = self.lexer.input.content.find(name, self._operation_start)
        self.raise_error(self._unknown_op(name), start, start + len(name))

    def _unknown_op(self, name: str) -> str:
        dialect_name = name.partition(".")[0]
        dialect = self.ctx.get_optional_dialect(dialect_name) if "." in name else None
        if dialect is None:
            known = "`tempo-opt --show-dialects` lists the dialects"
            return f"unknown operation '{name}': no dialect is called '{dialect_name}'; {known}"
        close = get_close_matches(name, [op.name for op in dialect.operations])
        likeliest = max(close, key=lambda found: _common_start(name, found), default=None)
        return f"unknown operation '{name}'" + (f"; did you mean '{likeliest}'?" if likeliest else "")

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


def _common_start(first: str, second: str) -> int:
    """The number of characters that two texts have in common at their start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def own_context() -> Context:
    """A context with builtin, for modules as tempo-opt prints them, and the dialects of this package."""
    context = Context()
    context.load_dialect(Builtin)
    for name, factory in dialects.get_all_dialects().items():
        context.register_dialect(name, factory)
    return context


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
