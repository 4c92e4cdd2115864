"""What combines the parts of a reduction: `sum(a[0:t + 1])` is `sum(a[0:t]) + a[t]`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.ir import Attribute

from tempo_ir.dialects.sdg import (
    AddOp,
    AndOp,
    BinaryOp,
    ContractOp,
    MaximumOp,
    MaxOp,
    MeanOp,
    MinimumOp,
    MinOp,
    MulOp,
    OrOp,
    ProdOp,
    SdgOp,
    SumOp,
)
from tempo_ir.dialects.types import DTYPES, dtype_name, integer_range, is_bool, is_float

_COMBINE: Mapping[type[SdgOp], type[BinaryOp]] = MappingProxyType(
    {SumOp: AddOp, MeanOp: AddOp, ContractOp: AddOp, ProdOp: MulOp, MaxOp: MaximumOp, MinOp: MinimumOp}
)
_OF_BOOLEANS: Mapping[type[SdgOp], type[BinaryOp]] = MappingProxyType({MaxOp: OrOp, MinOp: AndOp})


def combining(kind: type[SdgOp], element_type: Attribute) -> type[BinaryOp]:
    """The op that makes, of the results over two parts, the result over both."""
    return (_OF_BOOLEANS if is_bool(element_type) else _COMBINE)[kind]


def identity(kind: type[SdgOp], element_type: Attribute) -> bool | int | float:
    """The result over nothing."""
    if kind in (SumOp, MeanOp, ContractOp):
        return 0
    if kind is ProdOp:
        return 1
    if is_bool(element_type):
        return kind is MinOp
    if is_float(element_type):
        return float("inf") if kind is MinOp else float("-inf")
    least, end = integer_range(element_type)
    return end - 1 if kind is MinOp else least


def accumulator(kind: type[SdgOp], element_type: Attribute) -> Attribute:
    """The element type that running results have: f32 for sums and products of 16-bit floats, which round once."""
    narrow = dtype_name(element_type) in ("f16", "bf16") and kind not in (MaxOp, MinOp)
    return DTYPES["f32"] if narrow else element_type
