"""Elementwise ops, casts and constants at coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from xdsl.dialects.builtin import i64
from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg.failing import may_fail
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.index import Expr, substitute
from tempo_ir.lowering.kernels.tiles import ORIGIN, Coordinate, Coordinates, Tile, combine, lanes_of
from tempo_ir.lowering.kernels.translator import Emitter, Translator, Unsupported

UNARY: Mapping[type[Operation], type[ew.UnaryOp]] = MappingProxyType(
    {
        sdg.NegOp: ew.NegOp,
        sdg.AbsOp: ew.AbsOp,
        sdg.SignOp: ew.SignOp,
        sdg.NotOp: ew.NotOp,
        sdg.ExpOp: ew.ExpOp,
        sdg.LogOp: ew.LogOp,
        sdg.Log1pOp: ew.Log1pOp,
        sdg.SqrtOp: ew.SqrtOp,
        sdg.RsqrtOp: ew.RsqrtOp,
        sdg.TanhOp: ew.TanhOp,
        sdg.SigmoidOp: ew.SigmoidOp,
        sdg.ErfOp: ew.ErfOp,
        sdg.SinOp: ew.SinOp,
        sdg.CosOp: ew.CosOp,
        sdg.FloorOp: ew.FloorOp,
        sdg.CeilOp: ew.CeilOp,
        sdg.RoundOp: ew.RoundOp,
    }
)
BINARY: Mapping[type[Operation], type[ew.BinaryOp]] = MappingProxyType(
    {
        sdg.AddOp: ew.AddOp,
        sdg.SubOp: ew.SubOp,
        sdg.MulOp: ew.MulOp,
        sdg.DivOp: ew.DivOp,
        sdg.PowOp: ew.PowOp,
        sdg.MinimumOp: ew.MinOp,
        sdg.MaximumOp: ew.MaxOp,
        sdg.AndOp: ew.AndOp,
        sdg.OrOp: ew.OrOp,
        sdg.XorOp: ew.XorOp,
        sdg.LtOp: ew.LtOp,
        sdg.LeOp: ew.LeOp,
        sdg.GtOp: ew.GtOp,
        sdg.GeOp: ew.GeOp,
        sdg.EqOp: ew.EqOp,
        sdg.NeOp: ew.NeOp,
    }
)
DIVISIONS: Mapping[type[Operation], type[ew.BinaryOp]] = MappingProxyType(
    {sdg.FloordivOp: ew.FloorDivOp, sdg.ModOp: ew.ModOp}
)
ELEMENTWISE = (*UNARY, *BINARY, *DIVISIONS, sdg.SelectOp, sdg.CastOp, sdg.StopGradientOp)
"""Ops whose elements are made of those at the same place of their operands, which broadcast."""


def broadcast_coordinates(translator: Translator, operand: SSAValue, at: Sequence[Coordinate]) -> Coordinates:
    """The coordinates of an operand that broadcasts to a result read at `at`: aligned right, 0 where it has extent
    1."""
    shape = translator.shape(operand)
    aligned = at[len(at) - len(shape) :]
    return tuple(ORIGIN if extent == 1 else c for extent, c in zip(shape, aligned, strict=True))


def operands_at(translator: Translator, op: Operation, at: Coordinates) -> list[Tile]:
    """The operands of an elementwise op."""
    return [translator.pull(operand, broadcast_coordinates(translator, operand, at)) for operand in op.operands]


def emit_unary(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """`exp(x)`"""
    return combine(translator.builder, UNARY[type(op)], *operands_at(translator, op, at))


def emit_binary(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """`x + y`"""
    return combine(translator.builder, BINARY[type(op)], *operands_at(translator, op, at), order=lanes_of(at))


def emit_division(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """`x // y`, `x % y`; an integer division by zero is reported."""
    lhs, rhs = operands_at(translator, op, at)
    if may_fail(op):
        zero = combine(translator.builder, ew.EqOp, rhs, translator.constant(0, rhs.value.element))
        translator.check(zero, "integer division by zero", op)
    return combine(translator.builder, DIVISIONS[type(op)], lhs, rhs)


def emit_select(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """`condition ? x : y`"""
    return combine(translator.builder, ew.SelectOp, *operands_at(translator, op, at))


def emit_cast(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """Another element type; zero stays zero."""
    tile = translator.pull(op.operands[0], at)
    return Tile(tile.value.to(translator.element(op.results[0])), tile.lanes, tile.zero_padded)


def emit_same(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """The operand as it is."""
    return translator.pull(op.operands[0], at)


def emit_constant(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """One number at every element."""
    assert isinstance(op, sdg.ConstantOp)
    if op.uniform is not None:
        return translator.constant(op.uniform, translator.element(op.result))
    raise Unsupported("a literal of several numbers is written by the host")


def emit_index(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """The value of an index expression."""
    assert isinstance(op, sdg.IndexOp)
    return Tile(translator.builder.index(substitute(op.expression, translator.counted)).to(i64))


def emit_arange(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """`start + step * k`"""
    assert isinstance(op, sdg.ArangeOp)
    taken = substitute(op.range, translator.counted)
    return scaled(translator, positions(translator, at[0]), taken.start, taken.step)


def positions(translator: Translator, coordinate: Coordinate) -> Tile:
    """The indices that a coordinate stands for, as i64."""
    lane = coordinate.lane
    if lane is None:
        return Tile(translator.builder.index(coordinate.start).to(i64))
    translator.needs_order(lane)
    counted = Tile(translator.builder.iota(translator.first(lane), lane.size, i64), (lane,))
    return scaled(translator, counted, translator.builder.simplify(coordinate.shift), coordinate.step)


def scaled(translator: Translator, tile: Tile, shift: Expr, factor: int) -> Tile:
    """`shift + factor * tile`"""
    builder = translator.builder
    if factor != 1:
        tile = combine(builder, ew.MulOp, tile, Tile(builder.const(factor, i64)))
    if (offset := builder.index(shift)).ssa != builder.index(0).ssa:
        tile = combine(builder, ew.AddOp, tile, Tile(offset.to(i64)))
    return tile


EMITTERS: Mapping[type[Operation], Emitter] = MappingProxyType(
    {
        **dict.fromkeys(UNARY, emit_unary),
        **dict.fromkeys(BINARY, emit_binary),
        **dict.fromkeys(DIVISIONS, emit_division),
        sdg.SelectOp: emit_select,
        sdg.CastOp: emit_cast,
        sdg.StopGradientOp: emit_same,
        sdg.ConstantOp: emit_constant,
        sdg.IndexOp: emit_index,
        sdg.ArangeOp: emit_arange,
    }
)
