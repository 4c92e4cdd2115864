"""Element types as the user writes them (`tp.f32`, `tp.i64`), shapes at one point (`tp.f32[16, 64]`), and promotion.

Promotion is torch's table (https://docs.pytorch.org/docs/stable/tensor_attributes.html, "Type promotion"), without
its rule for tensors of no axes: bool < integers < floats; within a kind the wider; i8 with u8 is i16; f16 with bf16
is f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from tempo_ir.dialects import types
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.reference.dtypes import NUMPY_DTYPES

if TYPE_CHECKING:
    from tempo_ir.frontend.dims import Dim


@dataclass(frozen=True, slots=True)
class DType:
    """An element type. `tp.f32[16, 64]` is that type with a shape; `tp.f32[()]` is a scalar."""

    name: str
    kind: str  # "bool", "int" or "float"
    bits: int

    def __getitem__(self, shape: int | Dim | tuple[int | Dim, ...]) -> Spec:
        """This type with a shape. Raises ProgramError for an extent that is no integer of 0 or more and no dim."""
        extents = shape if isinstance(shape, tuple) else (shape,)
        return Spec(self, tuple(_extent(extent, f"a shape of {self}") for extent in extents))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"tp.{self.name}"

    @property
    def element(self) -> Attribute:
        """The xDSL element type."""
        return types.dtype(self.name)

    @property
    def numpy(self) -> np.dtype:
        """The numpy element type; bf16 is that of ml_dtypes."""
        return NUMPY_DTYPES[self.name]


@dataclass(frozen=True, slots=True)
class Spec:
    """Element type and shape of a tensor at one point of its domain."""

    dtype: DType
    shape: tuple[int | Dim, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape)) or '()'}]"

    @property
    def type(self) -> TensorType:
        """The xDSL tensor type."""
        return types.tensor(
            self.dtype.element, [extent if isinstance(extent, int) else extent.expr for extent in self.shape]
        )


def _extent(value: object, what: str) -> int | Dim:
    from tempo_ir.frontend.dims import Dim, dim_or_int, expression, is_integer

    if not is_integer(value) or (not isinstance(value, Dim) and value < 0):
        raise ProgramError(f"{what}: an extent is an integer of 0 or more, or a dim, got {value!r}")
    return dim_or_int(expression(value))


def spec_of(spec: object, what: str) -> Spec:
    """A spec as it is, a bare dtype as a scalar; raises ProgramError for anything else."""
    if isinstance(spec, DType):
        return spec[()]
    if not isinstance(spec, Spec):
        raise ProgramError(f"{what}: a spec is a dtype with a shape, as in tp.f32[16, 64], got {spec!r}")
    return spec


bool_ = DType("bool", "bool", 1)
i8, i16, i32, i64 = (DType(f"i{bits}", "int", bits) for bits in (8, 16, 32, 64))
u8 = DType("u8", "int", 8)
f16, bf16, f32, f64 = (
    DType(name, "float", bits) for name, bits in (("f16", 16), ("bf16", 16), ("f32", 32), ("f64", 64))
)

_ALL = {dtype.name: dtype for dtype in (bool_, i8, i16, i32, i64, u8, f16, bf16, f32, f64)}
_BY_ELEMENT = {id(dtype.element): dtype for dtype in _ALL.values()}
"""By the identity of the one attribute that mostly stands for each, whose hash takes longer than all else here."""
_KINDS = ("bool", "int", "float")


def dtype_of_element(element: Attribute) -> DType:
    """The dtype of an xDSL element type."""
    found = _BY_ELEMENT.get(id(element))
    return _ALL[types.dtype_name(element)] if found is None else found


def dtype_of_array(array: np.ndarray) -> DType | None:
    """The dtype of a numpy array, None where programs have no such type."""
    return next((_ALL[name] for name, known in NUMPY_DTYPES.items() if known == array.dtype), None)


def dtype_of_scalar(value: bool | float) -> DType:
    """The dtype of a Python scalar that meets no tensor: bool, i64 or f32."""
    if isinstance(value, bool):
        return bool_
    return i64 if isinstance(value, int) else f32


def promote(first: DType, second: DType) -> DType:
    """The common type of two tensors."""
    if first is second or first == second:
        return first
    if first.kind != second.kind:
        return max(first, second, key=lambda dtype: _KINDS.index(dtype.kind))
    if first.bits != second.bits:
        return max(first, second, key=lambda dtype: dtype.bits)
    return i16 if first.kind == "int" else f32  # i8 with u8; f16 with bf16


def promote_scalar(dtype: DType, value: bool | float) -> DType:
    """The common type of a tensor and a Python scalar, which is weak: it changes the kind at most, never the width."""
    scalar = dtype_of_scalar(value)
    return dtype if _KINDS.index(scalar.kind) <= _KINDS.index(dtype.kind) else scalar


def promote_all(dtypes: Sequence[DType], scalars: Sequence[bool | int | float]) -> DType:
    """The common type of tensors and of weak Python scalars."""
    if not dtypes:
        first, *rest = scalars
        return promote_all([dtype_of_scalar(first)], rest)
    common = dtypes[0]
    for dtype in dtypes[1:]:
        common = promote(common, dtype)
    for value in scalars:
        common = promote_scalar(common, value)
    return common
