"""
Types and attributes of the loop dialect: how a buffer stores each of its dims, and where a leaf stands in the domain of
the op that it came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias, cast, get_args

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.types import Tensor, accessed_type, element, shape_of, tensor
from tempo_ir.index.expr import Expr, Index, index_text
from tempo_ir.index.parser import parse_expr, parse_name, parse_optional_index

StorageClass: TypeAlias = Literal["full", "growing", "ring"]


@dataclass(frozen=True, slots=True)
class BufferDim:
    """
    How a buffer stores one dim of its value.

    `full`: a row for every point of `[0, extent)`. `growing`: the same rows, reserved at once and committed upwards, a
    prefix of them contiguous. `ring`: `slots` rows, point `t` in row `t mod slots`, or fewer where there are fewer
    points. `extent` is given where it is not the bound that the program declares for the dim: `t: full to T + 1`.

    In memory the first `inside` axes of the row lie outside of the dim: of `(t: growing inside 2) 4x8x32` memory holds
    a `4x8xTx32`. What the buffer means is the same.
    """

    name: str
    storage: StorageClass = "full"
    extent: Expr | None = None
    slots: int = 0
    inside: int = 0

    def __str__(self) -> str:
        inside = f" inside {self.inside}" if self.inside else ""
        slots = f" {self.slots}" if self.storage == "ring" else ""
        extent = "" if self.extent is None else f" to {self.extent}"
        return f"{self.name}: {self.storage}{slots}{extent}{inside}"


def _parse_dim(parser: AttrParser) -> BufferDim:
    name = parse_name(parser)
    parser.parse_punctuation(":")
    classes = get_args(StorageClass)
    keyword = parser.expect(lambda: parser.parse_optional_keyword_in(classes), f"expected {', '.join(classes)}")
    storage = cast(StorageClass, keyword)
    extent, slots, inside = None, 0, 0
    if storage == "ring":
        slots = parser.parse_integer(allow_boolean=False, allow_negative=False)
    if parser.parse_optional_keyword("to") is not None:
        extent = parse_expr(parser)
    if parser.parse_optional_keyword("inside") is not None:
        inside = parser.parse_integer(allow_boolean=False, allow_negative=False)
    return BufferDim(name, storage, extent, slots, inside)


@irdl_attr_definition
class StorageAttr(Data[tuple[BufferDim, ...]]):
    """The stored dims of a buffer, in the order of its index entries: `(i: full, t: ring 4)`."""

    name = "loop.storage"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[BufferDim, ...]:
        with parser.in_angle_brackets():
            return cls.parse_list(parser)

    @classmethod
    def parse_list(cls, parser: AttrParser) -> tuple[BufferDim, ...]:
        dims = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_dim(parser))
        return tuple(dims or ())

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"({', '.join(map(str, self.data))})")

    def verify(self) -> None:
        names = [dim.name for dim in self.data]
        if len(set(names)) != len(names):
            raise VerifyException(f"a buffer stores a dim twice: ({', '.join(names)})")
        for dim in self.data:
            if dim.storage == "ring" and dim.slots < 1:
                raise VerifyException(f"ring of dim '{dim.name}' has {dim.slots} slots, expected at least 1")


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """
    Memory of one value: `!loop.buffer<(i: full, t: ring 4) 16x?xf32, [t + 1]>`.

    `row` is the tensor at one point. Its symbolic extents, listed after the shape in the order of the `?`, are what the
    buffer has room for: they may name the dims stored (each row has its own extent) and the program's bounds, and an
    access may use less. A dim of the value that is not listed has one slot.
    """

    name = "loop.buffer"
    storage: StorageAttr
    row: TensorType[Attribute]

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(dims: tuple[BufferDim, ...], row: Tensor) -> BufferType:
        return BufferType(StorageAttr(dims), row)

    def verify(self) -> None:
        for dim in self.dims:
            outer = shape_of(self.row)[: dim.inside]
            if len(outer) < dim.inside:
                raise VerifyException(f"dim '{dim.name}' lies inside of {dim.inside} axes, the row has {len(outer)}")
            if dim.inside and not all(isinstance(extent, int) for extent in shape_of(self.row)):
                raise VerifyException(f"dim '{dim.name}' lies inside of axes of a row whose extents vary")

    @property
    def dims(self) -> tuple[BufferDim, ...]:
        return self.storage.data

    @property
    def dim_names(self) -> tuple[str, ...]:
        return tuple(dim.name for dim in self.storage.data)

    def accessed(self, index: Index) -> Tensor:
        """
        The tensor that `buffer[index]` reads or writes: a leading axis per slice, in order, then the row at that point.

        `(t: full) 4x?xf32, [t + 1]` at `[t - 1]` is `tensor<4x?xf32, #sdg.size<t>>`; `(t: full) 4xf32` at `[0:t + 1]`
        is `tensor<?x4xf32, #sdg.size<t + 1>>`. Raises VerifyException where the index does not fit the buffer.
        """
        if len(index) != len(self.dims):
            raise VerifyException(
                f"index has {len(index)} entries, the buffer stores {len(self.dims)} dims ({', '.join(self.dim_names)})"
            )
        return accessed_type(self.row, index, self.dim_names)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            storage = StorageAttr(StorageAttr.parse_list(parser))
            shape, element_type = parser.parse_ranked_shape()
            sizes: list[Expr] = []
            if parser.parse_optional_punctuation(","):
                sizes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr(parser))
            if len(sizes) != shape.count(DYNAMIC_INDEX):
                parser.raise_error(f"expected {shape.count(DYNAMIC_INDEX)} sizes, one for each '?'")
            remaining = iter(sizes)
            extents = [next(remaining) if extent == DYNAMIC_INDEX else extent for extent in shape]
            return [storage, tensor(element_type, extents)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            if self.dims:
                printer.print_string(f"({', '.join(map(str, self.dims))}) ")
            extents = shape_of(self.row)
            printer.print_string("".join(f"{extent}x" if isinstance(extent, int) else "?x" for extent in extents))
            printer.print_attribute(element(self.row))
            sizes = [str(extent) for extent in extents if not isinstance(extent, int)]
            if sizes:
                printer.print_string(f", [{', '.join(sizes)}]")


@irdl_attr_definition
class PointAttr(Data[tuple[tuple[str, Expr], ...]]):
    """
    The point of an sdg op's domain at which a leaf runs, as expressions over the loop iterators: `(i = i, t = t - 1)`.

    Random numbers are counted, and errors at run time are reported, by this point.
    """

    name = "loop.point"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, Expr], ...]:
        with parser.in_angle_brackets():
            return cls.parse_list(parser)

    @classmethod
    def parse_list(cls, parser: AttrParser) -> tuple[tuple[str, Expr], ...]:
        def coordinate() -> tuple[str, Expr]:
            name = parse_name(parser)
            parser.parse_punctuation("=")
            return name, parse_expr(parser)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.PAREN, coordinate))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self))

    def __str__(self) -> str:
        return f"({', '.join(f'{name} = {value}' for name, value in self.data)})"


@irdl_attr_definition
class TouchedAttr(Data[tuple[tuple[int, Index, bool], ...]]):
    """
    Rows that a launch reads and writes: the number of the buffer among its operands, the index, whether it writes them.
    """

    name = "loop.touched"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[int, Index, bool], ...]:
        def rows() -> tuple[int, Index, bool]:
            writes = parser.parse_optional_keyword("writes") is not None
            if not writes:
                parser.parse_keyword("reads")
            return parser.parse_integer(), parse_optional_index(parser), writes

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, rows))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            words = ("writes" if writes else "reads" for _, _, writes in self.data)
            rows = (f"{word} {row[0]}{index_text(row[1])}" for word, row in zip(words, self.data, strict=True))
            printer.print_string(", ".join(rows))
