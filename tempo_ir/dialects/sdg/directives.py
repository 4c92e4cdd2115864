"""Pieces of assembly format that the ops of the sdg dialect share.

The lexer of MLIR shapes the syntax: `0..T` cannot be written (`0.` is a float), `>` closes a bracket wherever it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Data, SSAValue
from xdsl.irdl import IRDLOperation, VariadicDef
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    OperandsDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from tempo_ir.dialects.sdg.attributes import (
    CondAttr,
    DomainAttr,
    EntryAttr,
    IndexAttr,
    NumberAttr,
    SpaceAttr,
    VectorizedAttr,
    parse_number,
    parse_vectorized,
)
from tempo_ir.index.domain import Domain, Space, parse_domain, parse_space
from tempo_ir.index.expr import Entry, Index, Slice, index_text
from tempo_ir.index.parser import parse_cond, parse_entry, parse_expr, parse_optional_index

NO_INDEX = IndexAttr(())
EVERYWHERE = DomainAttr(Domain())


def parse_access(parser: Parser) -> tuple[UnresolvedOperand, IndexAttr]:
    """`%h[i, t - 1]`."""
    operand = parser.parse_unresolved_operand()
    return operand, IndexAttr(parse_optional_index(parser))


def print_access(printer: Printer, value: SSAValue, index: IndexAttr) -> None:
    """The inverse of `parse_access`."""
    printer.print_ssa_value(value)
    printer.print_string(index_text(index.data))


def distribute(parser: Parser, state: ParsingState, operands: Sequence[UnresolvedOperand]) -> None:
    """Hand the parsed operands to the operand definitions of the op, of which at most one is variadic."""
    definitions = state.op_type.get_irdl_definition().operands
    variadic = len(operands) - len(definitions) + 1
    start = 0
    for position, (_, definition) in enumerate(definitions):
        count = max(variadic, 0) if isinstance(definition, VariadicDef) else 1
        state.operands[position] = tuple(operands[start : start + count])
        start += count
    if start != len(operands):
        parser.raise_error(f"{state.op_type.name} takes {start} operands, got {len(operands)}")


def _data(directive: AttributeVariable, op: IRDLOperation) -> object:
    return cast(Data[object], directive.get(op)).data


def _indices(directive: AttributeVariable, op: IRDLOperation) -> tuple[IndexAttr, ...]:
    return cast(ArrayAttr[IndexAttr], directive.get(op)).data


@irdl_custom_directive
class Accesses(CustomDirective):
    """`%x[t], %h[t - 1]`: the operands beside the `indices` property."""

    operands: OperandsDirective
    indices: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        accesses = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_access(parser))
        distribute(parser, state, [operand for operand, _ in accesses])
        self.indices.set(state, ArrayAttr([index for _, index in accesses]))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        accesses = zip(op.operands, _indices(self.indices, op), strict=True)
        printer.print_list(accesses, lambda access: print_access(printer, *access))


@irdl_custom_directive
class HostAccesses(CustomDirective):
    """`(%action[i, t]) after %token[i, t]`: the arguments of a host call, and the token it waits for."""

    operands: OperandsDirective
    indices: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        accesses = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_access(parser))
        parser.parse_keyword("after")
        accesses.append(parse_access(parser))
        distribute(parser, state, [operand for operand, _ in accesses])
        self.indices.set(state, ArrayAttr([index for _, index in accesses]))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        *arguments, token = zip(op.operands, _indices(self.indices, op), strict=True)
        with printer.in_parens():
            printer.print_list(arguments, lambda access: print_access(printer, *access))
        printer.print_string(" after ")
        print_access(printer, *token)
        state.should_emit_space, state.last_was_punctuation = True, False


@irdl_custom_directive
class Cases(CustomDirective):
    """`{t = 0 : %zero, t > 0 : %h[t - 1]}`: the cases of a merge, first match first."""

    operands: OperandsDirective
    cases: AttributeVariable
    indices: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        def parse_case() -> tuple[CondAttr, UnresolvedOperand, IndexAttr]:
            cond = CondAttr(parse_cond(parser))
            parser.parse_punctuation(":")
            return (cond, *parse_access(parser))

        cases = parser.parse_comma_separated_list(parser.Delimiter.BRACES, parse_case)
        distribute(parser, state, [operand for _, operand, _ in cases])
        self.cases.set(state, ArrayAttr([cond for cond, _, _ in cases]))
        self.indices.set(state, ArrayAttr([index for _, _, index in cases]))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        conds = cast(ArrayAttr[CondAttr], self.cases.get(op)).data

        def print_case(case: tuple[CondAttr, SSAValue, IndexAttr]) -> None:
            cond, value, index = case
            printer.print_string(f"{cond.data} : ")
            print_access(printer, value, index)

        state.print_whitespace(printer)
        with printer.in_braces():
            printer.print_list(zip(conds, op.operands, _indices(self.indices, op), strict=True), print_case)


@irdl_custom_directive
class InDomain(CustomDirective):
    """`in (i, t: 1 to T)`; nothing for an op that varies over no dim."""

    domain: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        given = parser.parse_optional_keyword("in")
        self.domain.set(state, DomainAttr(parse_domain(parser)) if given else EVERYWHERE)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        domain = cast(Domain, _data(self.domain, op))
        if domain != EVERYWHERE.data:
            state.print_whitespace(printer)
            printer.print_string(f"in {domain}")


@irdl_custom_directive
class Dims(CustomDirective):
    """`dims(i: I, t: T) where T >= 1`: what a program declares; nothing if it declares no dims."""

    space: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.space.set(state, SpaceAttr(parse_space(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        space = cast(Space, _data(self.space, op))
        if space != Space():
            state.print_whitespace(printer)
            printer.print_string(str(space))


@irdl_custom_directive
class EntryOf(CustomDirective):
    """An index expression or a range: `t + 1`, `[0:t + 1]`. The brackets end the range before the `:` of the type."""

    entry: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_punctuation("[") is None:
            self.entry.set(state, EntryAttr(parse_expr(parser)))
            return
        self.entry.set(state, EntryAttr(parse_entry(parser)))
        parser.parse_punctuation("]")

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        entry = cast(Entry, _data(self.entry, op))
        printer.print_string(f"[{entry}]" if isinstance(entry, Slice) else str(entry))


@irdl_custom_directive
class IndexOf(CustomDirective):
    """An index in brackets, one entry per axis: `[0:4, t]`."""

    index: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.index.set(state, IndexAttr(parse_optional_index(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_string(index_text(cast(Index, _data(self.index, op))) or "[]")


@irdl_custom_directive
class AtPoint(CustomDirective):
    """`at [i, 100 * b + j]`: a point other than the op's own; nothing for its own."""

    point: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        given = parser.parse_optional_keyword("at")
        self.point.set(state, IndexAttr(parse_optional_index(parser)) if given else NO_INDEX)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if point := cast(Index, _data(self.point, op)):
            state.print_whitespace(printer)
            printer.print_string(f"at {index_text(point)}")


@irdl_custom_directive
class VectorizedBy(CustomDirective):
    """`vectorized @step_all along (t, b) over (b)`: the vectorised form of a host call; nothing where there is none."""

    form: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_keyword("vectorized"):
            self.form.set(state, VectorizedAttr(parse_vectorized(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if isinstance(form := self.form.get(op), VectorizedAttr):
            state.print_whitespace(printer)
            printer.print_string(f"vectorized {form.data}")


@irdl_custom_directive
class NumberOf(CustomDirective):
    """A scalar: `0.5`, `3`, `true`, `-inf`."""

    number: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.number.set(state, NumberAttr(parse_number(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_string(str(self.number.get(op)))


@irdl_custom_directive
class WordOf(CustomDirective):
    """A bare word: `uniform`."""

    word: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.word.set(state, StringAttr(parser.parse_identifier()))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_string(cast(str, _data(self.word, op)))


DIRECTIVES: tuple[type[CustomDirective], ...] = (
    Accesses,
    AtPoint,
    Cases,
    Dims,
    EntryOf,
    HostAccesses,
    InDomain,
    IndexOf,
    NumberOf,
    VectorizedBy,
    WordOf,
)
"""What the assembly formats of the dialect may use as `custom<...>`."""
