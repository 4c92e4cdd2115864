"""The names that ops and attributes of the sdg dialect mention: dims, and bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute

from tempo_ir.dialects.sdg.attributes import CondAttr, EntryAttr, IndexAttr, TokenType, VectorizedAttr
from tempo_ir.dialects.sdg.base import SdgOp
from tempo_ir.dialects.types import SizeAttr, Tensor, as_tensor, shape_of, tensor
from tempo_ir.index.expr import Expr, Sym, free_symbols, substitute


def call_start(dim: str) -> str:
    """The number that a call may start at in a dim; in sdg only what makes numbers of dims, `sdg.index` and
    `sdg.arange`, may name it."""
    return f"call.start.{dim}"


def position(expression: Expr, dims: Iterable[str]) -> Expr:
    """An expression over dims such that `sdg.index` makes what it is in an index or extent, whatever a call starts at:
    `t - call.start.t + 1` for `t + 1`, which counts on from the start."""
    return substitute(expression, {dim: Sym(dim) - Sym(call_start(dim)) for dim in dims})


def property_symbols(op: SdgOp) -> frozenset[str]:
    """The dims and bounds that the properties (other than domain and indices) and result types of an op mention."""
    symbols: set[str] = set()
    for name, value in op.properties.items():
        if name not in ("domain", "indices"):
            symbols |= attribute_symbols(value)
    for result in op.results:
        if not isinstance(result.type, TokenType):
            symbols |= attribute_symbols(as_tensor(result.type).encoding)
    return frozenset(symbols)


def attribute_symbols(attribute: Attribute) -> frozenset[str]:
    """The dims and bounds that an attribute mentions."""
    match attribute:
        case IndexAttr(data) | EntryAttr(data) | CondAttr(data):
            return free_symbols(data)
        case SizeAttr(sizes):
            return free_symbols(sizes)
        case VectorizedAttr(form):
            return form.symbols()
        case ArrayAttr(items):
            return frozenset[str]().union(*(attribute_symbols(item) for item in items))
        case _:
            return frozenset()


def attribute_at(attribute: Attribute, bindings: Mapping[str, Expr]) -> Attribute:
    """A property of an op with dims and bounds replaced."""
    match attribute:
        case EntryAttr():
            return EntryAttr(substitute(attribute.data, bindings))
        case IndexAttr():
            return IndexAttr(substitute(attribute.data, bindings))
        case CondAttr():
            return CondAttr(substitute(attribute.data, bindings))
        case VectorizedAttr():
            return VectorizedAttr(attribute.data.at(bindings))
        case _:
            return attribute


def type_at(type: Attribute, bindings: Mapping[str, Expr]) -> Tensor:
    """A tensor type with dims and bounds replaced in its extents."""
    whole = as_tensor(type)
    if not isinstance(whole.encoding, SizeAttr):
        return whole
    extents = [extent if isinstance(extent, int) else substitute(extent, bindings) for extent in shape_of(whole)]
    return tensor(whole.element_type, extents)
