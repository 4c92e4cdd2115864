"""How each elementwise op of the `tile` dialect is written in Triton: data, one row per op."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
)
from xdsl.ir import Attribute, Operation

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import bit_width, element_of, is_bool, is_float, is_unsigned


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


def computed_type(element: Attribute) -> str:
    """The type that values of `element` have in registers: f16 and bf16 are computed in f32."""
    return "tl.float32" if is_narrow_float(element) else triton_type(element)


def is_narrow_float(element: Attribute) -> bool:
    return isinstance(element, (Float16Type, BFloat16Type))


@dataclass(frozen=True)
class Call:
    """A function call; `library` marks those of `library.py`, whose text goes into the kernel's file."""

    function: str
    library: bool = False


@dataclass(frozen=True)
class Infix:
    operator: str


@dataclass(frozen=True)
class Prefix:
    operator: str


Form = Call | Infix | Prefix


def _by_kind(floating: Form, integral: Form) -> Callable[[Operation], Form]:
    return lambda op: floating if is_float(element_of(op.operands[-1])) else integral


def _always(form: Form) -> Callable[[Operation], Form]:
    return lambda op: form


FORMS: Mapping[type[Operation], Callable[[Operation], Form]] = {
    ew.NegOp: _always(Prefix("-")),
    ew.AbsOp: _always(Call("tl.abs")),
    ew.SignOp: _by_kind(Call("float_sign", True), Call("sign", True)),
    ew.ExpOp: _always(Call("tl.exp")),
    ew.LogOp: _always(Call("tl.log")),
    ew.SqrtOp: _always(Call("tl.sqrt")),
    ew.RsqrtOp: _always(Call("tl.rsqrt")),
    ew.TanhOp: _always(Call("tanh", True)),
    ew.SigmoidOp: _always(Call("tl.sigmoid")),
    ew.ErfOp: _always(Call("tl.erf")),
    ew.SinOp: _always(Call("tl.sin")),
    ew.CosOp: _always(Call("tl.cos")),
    ew.FloorOp: _always(Call("tl.floor")),
    ew.CeilOp: _always(Call("tl.ceil")),
    ew.RoundOp: _always(Call("round_even", True)),
    ew.AddOp: _always(Infix("+")),
    ew.SubOp: _always(Infix("-")),
    ew.MulOp: _always(Infix("*")),
    ew.DivOp: _always(Infix("/")),
    ew.PowOp: _always(Call("power", True)),
    ew.MaxOp: _by_kind(Call("nan_maximum", True), Call("tl.maximum")),
    ew.MinOp: _by_kind(Call("nan_minimum", True), Call("tl.minimum")),
    ew.FloorDivOp: _always(Call("floor_divide", True)),
    ew.ModOp: _by_kind(Call("float_floor_modulo", True), Call("floor_modulo", True)),
    ew.LtOp: _always(Infix("<")),
    ew.LeOp: _always(Infix("<=")),
    ew.GtOp: _always(Infix(">")),
    ew.GeOp: _always(Infix(">=")),
    ew.EqOp: _always(Infix("==")),
    ew.NeOp: _always(Infix("!=")),
    ew.AndOp: _always(Infix("&")),
    ew.OrOp: _always(Infix("|")),
    ew.XorOp: _always(Infix("^")),
    ew.SelectOp: _always(Call("tl.where")),
}
