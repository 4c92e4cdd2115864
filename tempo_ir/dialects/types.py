"""Tensor types shared by every dialect: builtin `tensor` types whose `?` extents are named by index expressions.

`tensor<?x4xf32, #sdg.size<t + 1>>` is a tensor of `t + 1` rows: the encoding holds one expression per `?`, in order.
A shape is therefore a tuple of `int | Expr`, which `shape_of` and `tensor` convert from and to the type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    NoneAttr,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tempo_ir.index.expr import Const, Expr, Index, Slice, as_expr, free_symbols, substitute
from tempo_ir.index.parser import parse_expr
from tempo_ir.index.rules import simplify

Extent: TypeAlias = int | Expr
Shape: TypeAlias = tuple[Extent, ...]
Tensor: TypeAlias = TensorType[Attribute]

DTYPES: Mapping[str, Attribute] = MappingProxyType(
    {
        "bool": IntegerType(1),
        "i8": IntegerType(8),
        "i16": IntegerType(16),
        "i32": IntegerType(32),
        "i64": IntegerType(64),
        "u8": IntegerType(8, Signedness.UNSIGNED),
        "f16": Float16Type(),
        "bf16": BFloat16Type(),
        "f32": Float32Type(),
        "f64": Float64Type(),
    }
)
"""Element types by the name that users write; nothing else is an element of an sdg tensor."""

_FLOATS = frozenset({Float16Type, BFloat16Type, Float32Type, Float64Type})
_DTYPE_NAMES: Mapping[Attribute, str] = MappingProxyType({element: name for name, element in DTYPES.items()})


@irdl_attr_definition
class SizeAttr(Data[tuple[Expr, ...]]):
    """`#sdg.size<t + 1, min(t + 1, 64)>`: the extents that the type writes as `?`, in order."""

    name = "sdg.size"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Expr, ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: parse_expr(parser)))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(map(str, self.data)))


def tensor(element_type: Attribute, shape: Sequence[Extent] = ()) -> Tensor:
    """The tensor type of `shape`: constant expressions become static extents, the others are named in the encoding."""
    return _tensor(element_type, tuple([_as_extent(extent) for extent in shape]))


@lru_cache(maxsize=4096)
def _tensor(element_type: Attribute, extents: Shape) -> Tensor:
    """A program has few types, and one is five attributes to make and check."""
    dynamic = tuple(extent for extent in extents if isinstance(extent, Expr))
    static = [DYNAMIC_INDEX if isinstance(extent, Expr) else extent for extent in extents]
    return TensorType(element_type, static, SizeAttr(dynamic) if dynamic else NoneAttr())


def shape_of(tensor_type: Attribute) -> Shape:
    """One extent per axis: an `int` where it is static, an `Expr` where the type says `?`.

    Raises VerifyException if the `?` extents are not named one by one.
    """
    tensor_type = as_tensor(tensor_type)
    static = tuple([extent.data for extent in tensor_type.shape.data])
    encoding = tensor_type.encoding
    names = encoding.data if type(encoding) is SizeAttr else ()
    if (count := static.count(DYNAMIC_INDEX)) != len(names):
        raise VerifyException(
            f"{tensor_type} has {count} dynamic extents and names {len(names)}: "
            "write one expression per `?`, as in tensor<?x4xf32, #sdg.size<t + 1>>"
        )
    if not names:
        return static
    dynamic = iter(names)
    return tuple(next(dynamic) if extent == DYNAMIC_INDEX else extent for extent in static)


def is_static(tensor_type: Attribute) -> bool:
    """Whether all extents of a tensor are numbers."""
    return isinstance(tensor_type, TensorType) and isinstance(tensor_type.encoding, NoneAttr)


def element(tensor_type: Attribute) -> Attribute:
    """The element type of a tensor type."""
    return as_tensor(tensor_type).element_type


def as_tensor(candidate: Attribute) -> Tensor:
    """`candidate` as a tensor type; raises VerifyException for any other type."""
    found: Any = candidate
    if type(found) is TensorType:
        return found
    raise VerifyException(f"expected a tensor, got a value of type {candidate}")


def dtype_name(element_type: Attribute) -> str:
    """The user's name of an element type: "f32", "bool", ...; raises VerifyException for a foreign type."""
    if (name := _DTYPE_NAMES.get(element_type)) is not None:
        return name
    raise VerifyException(f"{element_type} is not an element type; use one of {', '.join(DTYPES)}")


def dtype(name: str) -> Attribute:
    """The element type called `name`; raises ValueError if there is none."""
    if (found := DTYPES.get(name)) is not None:
        return found
    raise ValueError(f"unknown dtype '{name}'; use one of {', '.join(DTYPES)}")


def is_float(element_type: Attribute) -> bool:
    """True for f16, bf16, f32 and f64."""
    return type(element_type) in _FLOATS


def is_bool(element_type: Attribute) -> bool:
    """True for i1."""
    return element_type == DTYPES["bool"]


def is_integer(element_type: Attribute) -> bool:
    """True for the integer types of at least 8 bits."""
    return not is_bool(element_type) and isinstance(element_type, IntegerType)


def integer_range(element_type: Attribute) -> tuple[int, int]:
    """The least value of an integer type and one past the greatest."""
    name = dtype_name(element_type)
    bits = int(name.lstrip("iu"))
    return (0, 2**bits) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))


_EXACT_BITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
"""The bits of the significand: integers of so many bits are exact."""


def holds(wide: Attribute, narrow: Attribute) -> bool:
    """Whether a numeric element type has every value of another: then a cast to it changes none."""
    if wide == narrow:
        return True
    if is_bool(wide) or is_bool(narrow):
        return False
    if is_float(narrow):
        return is_float(wide) and (dtype_name(narrow), dtype_name(wide)) in {
            ("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("bf16", "f64"), ("f32", "f64"),
        }  # fmt: skip
    low, high = integer_range(narrow)
    if is_float(wide):
        return max(-low, high) <= 1 << _EXACT_BITS[dtype_name(wide)]
    least, greatest = integer_range(wide)
    return least <= low and high <= greatest


def accessed_type(tensor_type: Attribute, index: Index, dims: tuple[str, ...] = ()) -> Tensor:
    """The type of `%x[index]` where `%x : tensor_type` varies over `dims`.

    One leading axis per slice entry, in order, then the axes of the type. Extents that name a dim of the producer are
    read at the accessed point: over (t), `tensor<?xf32, #sdg.size<t + 2>>` at `[t - 1]` is
    `tensor<?xf32, #sdg.size<t + 1>>`.
    Raises VerifyException where a slice would gather rows of different extents.
    """
    tensor_type = as_tensor(tensor_type)
    if type(tensor_type.encoding) is NoneAttr and Slice not in map(type, index):
        return tensor_type
    return _accessed_type(tensor_type, index, dims)


@lru_cache(maxsize=16384)
def _accessed_type(tensor_type: Tensor, index: Index, dims: tuple[str, ...]) -> Tensor:
    if not index:
        return tensor_type
    shape = shape_of(tensor_type)
    leading = tuple(entry.extent for entry in index if isinstance(entry, Slice))
    points: dict[str, Expr] = {}
    for dim, entry in zip(dims, index, strict=False):
        if isinstance(entry, Slice):
            _refuse_ragged(tensor_type, shape, dim, entry)
        else:
            points[dim] = entry
    inner = tuple(simplify(substitute(e, points)) if isinstance(e, Expr) else e for e in shape)
    return tensor(tensor_type.element_type, (*leading, *inner))


def _refuse_ragged(tensor_type: Tensor, shape: Shape, dim: str, entry: Slice) -> None:
    for extent in shape:
        if isinstance(extent, Expr) and dim in free_symbols(extent):
            raise VerifyException(
                f"slice '{entry}' of dim {dim} would stack rows of different extents: {tensor_type} has extent "
                f"{extent}; read one point of {dim}, or pad the rows to one extent first"
            )


def _as_extent(extent: Extent) -> Extent:
    if isinstance(extent, int):
        return int(extent)  # True is an extent of 1, and equal to it where types are looked up
    simplified = simplify(as_expr(extent))
    return simplified.value if isinstance(simplified, Const) else simplified
