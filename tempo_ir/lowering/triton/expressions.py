"""How element types, numbers and elementwise ops of the `tile` dialect are written in Triton: data, one row per op."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
)
from xdsl.ir import Attribute, Operation, SSAValue

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import bit_width, element_of, is_bool, is_float, is_unsigned, shape_of
from tempo_ir.dialects.tile.shape import ConstOp
from tempo_ir.reference.tile import cast_array, numpy_dtype


def triton_type(element: Attribute) -> str:
    """`tl.float32` and the like; `index` is `tl.int64`."""
    match element:
        case Float16Type():
            return "tl.float16"
        case BFloat16Type():
            return "tl.bfloat16"
        case Float32Type():
            return "tl.float32"
        case Float64Type():
            return "tl.float64"
        case IndexType():
            return "tl.int64"
        case _:
            if is_bool(element):
                return "tl.int1"
            return f"tl.{'u' if is_unsigned(element) else ''}int{bit_width(element)}"


def signature_type(element: Attribute) -> str:
    """`fp32`, `i64`, `u8`, `i1`: how a signature writes an element type; pointers put a star before it."""
    match element:
        case Float16Type():
            return "fp16"
        case BFloat16Type():
            return "bf16"
        case Float32Type():
            return "fp32"
        case Float64Type():
            return "fp64"
        case _:
            return f"{'u' if is_unsigned(element) else 'i'}{bit_width(element)}"


def computed_type(element: Attribute) -> str:
    """The type that values of `element` have in registers: f16 and bf16 are computed in f32."""
    return "tl.float32" if is_narrow_float(element) else triton_type(element)


def is_narrow_float(element: Attribute) -> bool:
    """Is `element` f16 or bf16?"""
    return isinstance(element, (Float16Type, BFloat16Type))


def is_plain(element: Attribute) -> bool:
    """Whether Triton gives a Python number the type that values of `element` have in registers."""
    if is_float(element):
        return bit_width(element) <= 32
    return is_bool(element) or isinstance(element, IndexType) or (bit_width(element) == 32 and not is_unsigned(element))


Number = int | float | bool


def number_of(attribute: FloatAttr | IntegerAttr, element: Attribute | None = None) -> Number:
    """The number of an attribute, rounded to its element type, then cast to `element` as `tile.cast` does."""
    own = attribute.type
    value = np.asarray(attribute.value.data).astype(numpy_dtype(own))
    if element is not None:
        value = cast_array(value, element)
    if value.dtype.kind in "biu":
        return value.item()
    return float(value)


def scalar_number(value: SSAValue) -> Number | None:
    """The number of a scalar constant, also where it is cast; None for any other value."""
    owner = value.owner
    if shape_of(value):
        return None
    if isinstance(owner, ConstOp):
        return number_of(owner.number)
    if isinstance(owner, ew.CastOp) and isinstance(inner := owner.value.owner, ConstOp):
        return number_of(inner.number, element_of(value))
    return None


def number_text(number: Number, element: Attribute | None = None) -> str:
    """A number as Python source; one of at most 32 bits with no more digits than tell it from others of its type."""
    if not isinstance(number, float):
        return repr(number)
    if not math.isfinite(number):
        return f'float("{number}")'
    if element is None or bit_width(element) > 32:
        return repr(number)
    return repr(float(str(np.float32(number))))


@dataclass(frozen=True)
class Call:
    """A function call; `library` marks those of `library.py`, whose text goes into the kernel's file."""

    function: str
    library: bool = False


@dataclass(frozen=True)
class Infix:
    """An operator between two operands."""

    operator: str


@dataclass(frozen=True)
class Prefix:
    """An operator before its operand."""

    operator: str


Form = Call | Infix | Prefix
Choice = Callable[[Attribute], Form]
"""The form of an op, by the element type of its last operand."""


def _always(form: Form) -> Choice:
    return lambda element: form


def _by_kind(floating: Form, integral: Form, unsigned: Form | None = None) -> Choice:
    def choose(element: Attribute) -> Form:
        if is_float(element):
            return floating
        return unsigned if unsigned is not None and is_unsigned(element) else integral

    return choose


def library(function: str) -> Call:
    """A call of a function of `library.py`."""
    return Call(function, True)


FORMS: Mapping[type[Operation], Choice] = MappingProxyType(
    {
        ew.NegOp: _always(Prefix("-")),
        ew.AbsOp: _always(Call("tl.abs")),
        ew.SignOp: _by_kind(library("float_sign"), library("sign")),
        ew.ExpOp: _always(Call("tl.exp")),
        ew.LogOp: _always(Call("tl.log")),
        ew.Log1pOp: _always(library("log1p")),
        ew.SqrtOp: _always(Call("tl.sqrt")),
        ew.RsqrtOp: _always(Call("tl.rsqrt")),
        ew.TanhOp: _always(library("tanh")),
        ew.SigmoidOp: _always(Call("tl.sigmoid")),
        ew.ErfOp: _always(Call("tl.erf")),
        ew.SinOp: _always(Call("tl.sin")),
        ew.CosOp: _always(Call("tl.cos")),
        ew.FloorOp: _always(Call("tl.floor")),
        ew.CeilOp: _always(Call("tl.ceil")),
        ew.RoundOp: _always(library("round_even")),
        ew.AddOp: _always(Infix("+")),
        ew.SubOp: _always(Infix("-")),
        ew.MulOp: _always(Infix("*")),
        ew.DivOp: _always(Infix("/")),
        ew.PowOp: _by_kind(library("power"), library("integer_power"), library("unsigned_power")),
        ew.MaxOp: _by_kind(library("nan_maximum"), Call("tl.maximum")),
        ew.MinOp: _by_kind(library("nan_minimum"), Call("tl.minimum")),
        ew.FloorDivOp: _by_kind(library("float_floor_divide"), library("floor_divide"), library("unsigned_divide")),
        ew.ModOp: _by_kind(library("float_floor_modulo"), library("floor_modulo"), library("unsigned_modulo")),
        ew.LtOp: _always(Infix("<")),
        ew.LeOp: _always(Infix("<=")),
        ew.GtOp: _always(Infix(">")),
        ew.GeOp: _always(Infix(">=")),
        ew.EqOp: _always(Infix("==")),
        ew.NeOp: _always(Infix("!=")),
        ew.AndOp: _always(Infix("&")),
        ew.OrOp: _always(Infix("|")),
        ew.XorOp: _always(Infix("^")),
        ew.ShlOp: _always(library("shift_left")),
        ew.ShrOp: _by_kind(library("shift_right"), library("shift_right"), library("unsigned_shift_right")),
        ew.SelectOp: _always(Call("tl.where")),
    }
)


def form_of(op: Operation) -> Form | None:
    """How an elementwise op is written; None where it has a rule of its own."""
    choice = FORMS.get(type(op))
    return None if choice is None else choice(element_of(op.operands[-1]))
