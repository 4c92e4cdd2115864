"""Types and attributes of the `tile` dialect, and the questions the rest of the compiler asks of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    Signedness,
)
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import Attribute, Data, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import IRDLOperation, irdl_attr_definition
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from tempo_ir.dialects.operation import VALUES

INDEX = IndexType()
"""The type of addresses, loop counters and sizes: 64 bits, scalars only."""

ALONG = "along"
"""The attribute of an op that gives the first index of a block (of a loop: its counter's) that says what axis the block
runs along. A name for readers: `{along = "k"}`."""

UI8 = IntegerType(8, Signedness.UNSIGNED)
UI32 = IntegerType(32, Signedness.UNSIGNED)
"""The type of a word of random bits."""

FLOATS: Mapping[type, int] = {Float16Type: 16, BFloat16Type: 16, Float32Type: 32, Float64Type: 64}
"""The types of numbers with a fraction, and their bits."""

DYNAMIC = DYNAMIC_INDEX
"""A size or stride that is not a number in the type (printed `?`)."""


@irdl_attr_definition
class IntegersAttr(Data[tuple[int, ...]]):
    """A list of sizes, strides or block extents: `[0, 64, ?]`."""

    name = "tile.integers"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int, ...]:
        def integer_or_dynamic() -> int:
            return DYNAMIC if parser.parse_optional_punctuation("?") else parser.parse_integer(allow_boolean=False)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, integer_or_dynamic))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"[{', '.join(_dimension_text(n) for n in self.data)}]")


def _dimension_text(n: int) -> str:
    return "?" if n == DYNAMIC else str(n)


class ReduceKind(StrEnum):
    """How `tile.reduce` combines. `max`, `min`, `argmax`, `argmin` propagate NaN; `arg*` take the first of ties."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    ARGMAX = "argmax"
    ARGMIN = "argmin"
    AND = "and"
    OR = "or"


@irdl_attr_definition
class ReduceKindAttr(EnumAttribute[ReduceKind]):
    """`#tile.reduce_kind<max>`; the ops print the bare word."""

    name = "tile.reduce_kind"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ReduceKind:
        with parser.in_angle_brackets():
            return parser.parse_str_enum(ReduceKind)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data.value)


@irdl_custom_directive
class Kind(CustomDirective):
    """The bare word of a `ReduceKindAttr`."""

    kind: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.kind.set(state, ReduceKindAttr(parser.parse_str_enum(ReduceKind)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        kind = self.kind.get(op)
        assert isinstance(kind, ReduceKindAttr)
        state.print_whitespace(printer)
        printer.print_string(kind.data.value)


def integer_type(element: Attribute) -> IntegerType | None:
    """`element` if it is an integer type (i1 too, `index` not)."""
    found: Any = element if type(element) is IntegerType else None
    return found


def is_float(element: Attribute) -> bool:
    """Is `element` f16, bf16, f32 or f64?"""
    return type(element) in FLOATS


def is_bool(element: Attribute) -> bool:
    """Is `element` i1?"""
    integer = integer_type(element)
    return integer is not None and integer.width.data == 1


def is_integer(element: Attribute) -> bool:
    """Is `element` an integer of 8 to 64 bits or `index` (but not i1)?"""
    integer = integer_type(element)
    return type(element) is IndexType or (integer is not None and integer.width.data > 1)


def is_unsigned(element: Attribute) -> bool:
    """Is `element` ui8, ui16, ui32 or ui64? (`i32` and the like are signed.)"""
    integer = integer_type(element)
    return integer is not None and integer.signedness.data == Signedness.UNSIGNED


def bit_width(element: Attribute) -> int:
    """Bits of one value of `element` in a register; `index` counts 64."""
    if (bits := FLOATS.get(type(element))) is not None:
        return bits
    if type(element) is IndexType:
        return 64
    if (integer := integer_type(element)) is not None:
        return integer.width.data
    raise VerifyException(f"{element} is no element type of a tile")


def verify_element(element: Attribute, what: str) -> None:
    """Raise unless `element` may stand in a tile, a view or behind a pointer."""
    if is_float(element) or is_bool(element):
        return
    integer = integer_type(element)
    if integer is not None and integer.width.data in (8, 16, 32, 64) and integer.signedness.data != Signedness.SIGNED:
        return
    raise VerifyException(f"{what} holds i1, i8 to i64, ui8 to ui64, f16, bf16, f32 or f64, not {element}")


def _print_shaped(printer: Printer, shape: Sequence[int], element: Attribute) -> None:
    printer.print_string("".join(f"{_dimension_text(n)}x" for n in shape))
    printer.print_attribute(element)


@irdl_attr_definition
class TileType(ParametrizedAttribute, TypeAttribute):
    """`!tile.tile<2x64xf32>`: a value of rank 1 or 2 and static shape. A value of rank 0 has the bare element type."""

    name = "tile.tile"
    shape: IntegersAttr
    element: Attribute

    @staticmethod
    def of(shape: Sequence[int], element: Attribute) -> Attribute:
        """The type of a value of `shape`: a tile, or `element` itself where `shape` is empty."""
        return _tile(tuple(shape), element) if len(shape) else element

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element = parser.parse_ranked_shape()
        return [IntegersAttr(tuple(shape)), element]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_shaped(printer, self.shape.data, self.element)

    def verify(self) -> None:
        if not 1 <= len(self.shape.data) <= 2:
            raise VerifyException(f"a tile has rank 1 or 2, not {len(self.shape.data)}")
        if any(extent <= 0 for extent in self.shape.data):
            raise VerifyException("extents of a tile are static and positive")
        verify_element(self.element, "a tile")


@lru_cache(maxsize=1024)
def _tile(shape: tuple[int, ...], element: Attribute) -> TileType:
    """A kernel has few types, and one is two attributes to make and check."""
    return TileType(IntegersAttr(shape), element)


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """`!tile.ptr<f32>`: the base of a buffer. An i1 takes one byte in memory, 0 or 1."""

    name = "tile.ptr"
    element: Attribute

    def verify(self) -> None:
        verify_element(self.element, "a pointer")


@irdl_attr_definition
class ViewType(ParametrizedAttribute, TypeAttribute):
    """
    `!tile.view<4x?x64xf32, [262144, 64, 1]>`: memory seen as an array of any rank; sizes, then strides in elements
    (zero repeats, negative runs backwards). Each is a number, or `?` and an operand of `tile.view`. The sizes bound
    every block access: this is where masks come from.
    """

    name = "tile.view"
    shape: IntegersAttr
    element: Attribute
    strides: IntegersAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element = parser.parse_ranked_shape()
            parser.parse_punctuation(",")
            strides = IntegersAttr.parse_parameter(parser)
        return [IntegersAttr(tuple(shape)), element, IntegersAttr(strides)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_shaped(printer, self.shape.data, self.element)
            printer.print_string(", ")
            self.strides.print_parameter(printer)

    def verify(self) -> None:
        if len(self.shape.data) != len(self.strides.data):
            raise VerifyException(f"{len(self.shape.data)} sizes but {len(self.strides.data)} strides")
        verify_element(self.element, "a view")


SHAPED: frozenset[type] = frozenset({TileType, ViewType})


def _type_of(type_or_value: Any) -> Any:
    return type_or_value.type if type(type_or_value) in VALUES else type_or_value


def shape_of(type_or_value: Attribute | SSAValue) -> tuple[int, ...]:
    """Extents of a tile or view (`DYNAMIC` where unknown), `()` of a scalar."""
    type_ = _type_of(type_or_value)
    return type_.shape.data if type(type_) in SHAPED else ()


def element_of(type_or_value: Attribute | SSAValue) -> Attribute:
    """Element type of a tile, view or pointer; a scalar's own type."""
    type_ = _type_of(type_or_value)
    return type_.element if type(type_) in SHAPED or type(type_) is PointerType else type_


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """
    The common shape of operands: scalars fit anything, tiles have one rank and meet axis by axis where they are equal
    or one of them is 1. Raises `VerifyException` where they do not meet.
    """
    tiles = [shape for shape in shapes if shape]
    if not tiles:
        return ()
    if len({len(shape) for shape in tiles}) > 1:
        raise VerifyException(f"operands of shapes {_shapes_text(tiles)} differ in rank; use tile.expand")
    common: list[int] = []
    for extents in zip(*tiles, strict=True):
        wide = set(extents) - {1}
        if len(wide) > 1:
            raise VerifyException(f"operands of shapes {_shapes_text(tiles)} do not broadcast")
        common.append(wide.pop() if wide else 1)
    return tuple(common)


def _shapes_text(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join("x".join(map(str, shape)) for shape in shapes)
