"""Attributes and types of the sdg dialect: domains, indices, conditions and declarations as immutable data.

Each wraps one value of `tempo_ir.index`; equality is structural. `SizeAttr`, which tensor types need, lives in
`tempo_ir.dialects.types`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.types import SizeAttr, dtype_name, integer_range, is_bool, is_integer
from tempo_ir.index.domain import Domain, Space, parse_domain, parse_space
from tempo_ir.index.expr import Cond, Const, Entry, Expr, Index, Slice, free_symbols, index_text, substitute
from tempo_ir.index.parser import parse_cond, parse_entry, parse_index, parse_list, parse_name

__all__ = [
    "BLOCKS",
    "CondAttr",
    "DomainAttr",
    "EntryAttr",
    "IndexAttr",
    "NumberAttr",
    "PreconditionAttr",
    "RandomKind",
    "SizeAttr",
    "SpaceAttr",
    "TokenType",
    "Vectorized",
    "VectorizedAttr",
]


BLOCKS = "blocks"
"""The attribute of a program that says what a dim is of which a pass has made blocks and their steps:
`attributes {blocks = {t = #sdg.index<[10 * b + j]>}}`. Errors at run time name points by it."""


@irdl_attr_definition
class DomainAttr(Data[Domain]):
    """`#sdg.domain<(i, t: 1 to T)>`: the points at which an op has a value."""

    name = "sdg.domain"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Domain:
        with parser.in_angle_brackets():
            return parse_domain(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


@irdl_attr_definition
class IndexAttr(Data[Index]):
    """`#sdg.index<[i, 0:t + 1]>`: how an operand is read, one entry per dim of its producer."""

    name = "sdg.index"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Index:
        with parser.in_angle_brackets():
            return parse_index(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(index_text(self.data) or "[]")


@irdl_attr_definition
class EntryAttr(Data[Entry]):
    """`#sdg.entry<t + 1>` or `#sdg.entry<0:t>`: one index expression or range."""

    name = "sdg.entry"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Entry:
        with parser.in_angle_brackets():
            return parse_entry(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


@irdl_attr_definition
class CondAttr(Data[Cond]):
    """`#sdg.cond<(t > 0)>`: when a case of a merge applies. The parentheses keep `>` apart from the closing bracket."""

    name = "sdg.cond"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Cond:
        with parser.in_angle_brackets(), parser.in_parens():
            return parse_cond(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets(), printer.in_parens():
            printer.print_string(str(self.data))


@irdl_attr_definition
class SpaceAttr(Data[Space]):
    """`#sdg.space<[dims(i: I, t: T) where T >= 1]>`: the dims that a program declares, in order."""

    name = "sdg.space"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Space:
        with parser.in_angle_brackets(), parser.in_square_brackets():
            return parse_space(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets(), printer.in_square_brackets():
            printer.print_string(str(self.data))


@irdl_attr_definition
class NumberAttr(Data[bool | int | float]):
    """`#sdg.number<0.5>`: a scalar as the user wrote it; the element type of the tensor says how it is rounded.

    Two numbers are equal only if they print alike, so `0.0`, `-0.0`, `0` and `false` differ, and `nan` equals `nan`.
    """

    name = "sdg.number"

    @staticmethod
    def of(value: bool | float, element_type: Attribute) -> NumberAttr:
        """The number in the spelling of an element type: `1.0` for floats, `true` for i1. Raises VerifyException for
        one that an integer type cannot hold."""
        if is_bool(element_type):
            return NumberAttr(bool(value))
        if not is_integer(element_type):
            return NumberAttr(float(value))
        if value != value or int(value) != value:
            raise VerifyException(f"{value} is not an integer, as dtype {dtype_name(element_type)} needs")
        low, high = integer_range(element_type)
        if not low <= value < high:
            raise VerifyException(f"{value} does not fit dtype {dtype_name(element_type)}")
        return NumberAttr(int(value))

    def check(self, element_type: Attribute) -> None:
        """Raises VerifyException for a number that is not in the spelling of an element type."""
        if self != NumberAttr.of(self.data, element_type):
            raise VerifyException(f"{self} is not written as a number of dtype {dtype_name(element_type)}")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> bool | int | float:
        with parser.in_angle_brackets():
            return parse_number(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self))

    def __str__(self) -> str:
        return number_text(self.data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberAttr) and number_text(self.data) == number_text(other.data)

    def __hash__(self) -> int:
        return hash(number_text(self.data))


@irdl_attr_definition
class PreconditionAttr(ParametrizedAttribute):
    """`#sdg.precondition<#sdg.cond<(T >= 4)>, "sdg.sum reads %a[0:4] (model.py:7)">`: a condition on the bounds that
    the analysis found, with the read that needs it. The call checks it and shows the text."""

    name = "sdg.precondition"

    cond: CondAttr
    text: StringAttr


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """`!sdg.token`: the state of a host object; a call consumes one and makes the next."""

    name = "sdg.token"


NO_POINTS = Domain()


@dataclass(frozen=True, slots=True)
class Vectorized:
    """The method that makes the calls of a host op at many points at once: `@step_all along (t, b) over (b)`.

    `along` are the dims whose points it takes, `over` those whose points one call makes by now, each a leading axis of
    every argument and result, in the order of `over`, which is that of the dims of the program.
    """

    method: str
    along: tuple[str, ...]
    over: Domain = NO_POINTS

    def points(self, space: Space) -> tuple[tuple[str, Slice], ...]:
        """The points of one call, a range of each dim of `over`."""
        return tuple((dim, Slice(self.over.lower(dim, space), self.over.upper(dim, space))) for dim in self.over.dims)

    def extents(self, space: Space) -> tuple[int | Expr, ...]:
        """The leading axes: how many points there are of each dim of `over`."""
        counts = (points.extent for _, points in self.points(space))
        return tuple(count.value if isinstance(count, Const) else count for count in counts)

    def symbols(self) -> frozenset[str]:
        """The dims and bounds that the ranges of `over` mention."""
        return frozenset[str]().union(*(free_symbols(part) for _, *parts in self.over.ranges for part in parts))

    def at(self, bindings: Mapping[str, Expr]) -> Vectorized:
        """The same with dims and bounds replaced in the ranges of `over`."""
        ranges = ((dim, substitute(first, bindings), substitute(end, bindings)) for dim, first, end in self.over.ranges)
        return replace(self, over=Domain(self.over.dims, tuple(ranges), self.over.where))

    def __str__(self) -> str:
        text = f"@{self.method} along ({', '.join(self.along)})"
        return text if self.over == NO_POINTS else f"{text} over {self.over}"


def parse_vectorized(parser: AttrParser) -> Vectorized:
    """`@step_all along (t, b) over (b)`."""
    method = parser.parse_symbol_name().data
    parser.parse_keyword("along")
    parser.parse_punctuation("(")
    along = tuple(parse_list(parser, ")", parse_name))
    given = parser.parse_optional_keyword("over")
    return Vectorized(method, along, parse_domain(parser) if given else NO_POINTS)


@irdl_attr_definition
class VectorizedAttr(Data[Vectorized]):
    """`#sdg.vectorized<@step_all along (t, b) over (b)>`: the vectorised form of a host call."""

    name = "sdg.vectorized"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Vectorized:
        with parser.in_angle_brackets():
            return parse_vectorized(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


class RandomKind(StrEnum):
    """What a random op draws: raw 32-bit words, uniforms in [0, 1), or standard normals."""

    BITS = "bits"
    UNIFORM = "uniform"
    NORMAL = "normal"


def number_text(value: bool | float) -> str:
    """The text of a scalar in IR: `true`, `3`, `1.0e-05`, `-inf`, `nan`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or not math.isfinite(value):
        return str(value)
    mantissa, exponent_sign, exponent = repr(value).partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{exponent_sign}{exponent}"


def parse_number(parser: AttrParser) -> bool | int | float:
    """The inverse of `number_text`."""
    if (boolean := parser.parse_optional_keyword_in(("true", "false"))) is not None:
        return boolean == "true"
    sign = -1 if parser.parse_optional_punctuation("-") else 1
    if (special := parser.parse_optional_keyword_in(("inf", "nan"))) is not None:
        return sign * float(special)
    return sign * parser.parse_number(allow_boolean=False)
