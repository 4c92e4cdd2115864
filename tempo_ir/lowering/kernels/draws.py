"""Random draws at coordinates: the same bits as `tempo_ir.reference.philox`, whatever the blocks and the order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects.builtin import Float64Type, f32, i64
from xdsl.ir import Attribute, Operation

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import UI32
from tempo_ir.dialects.tile.builder import Value
from tempo_ir.dialects.types import dtype_name
from tempo_ir.index import Const, Expr, Sym, substitute
from tempo_ir.lowering.kernels.elementwise import positions
from tempo_ir.lowering.kernels.layout import row_major
from tempo_ir.lowering.kernels.tiles import Coordinates, Tile, combine
from tempo_ir.lowering.kernels.translator import Emitter, Translator

SEED = Sym(loop.CALL_SEED)
"""The seed of the call, a scalar that every host program has."""
WEYL = 0x9E3779B9
_PRECISION: Mapping[str, int] = MappingProxyType({"f16": 11, "bf16": 8, "f32": 24})


def start_of(dim: str) -> Expr:
    """The symbol of where a call starts in a dim: dims, and random numbers, count on from there."""
    return Sym(loop.call_start(dim))


def emit_random(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """Bits, uniform or normal draws."""
    assert isinstance(op, sdg.RandomOp)
    builder = translator.builder
    element = flat_position(translator, op, at)
    first, second, third = (builder.index(word).to(UI32) for word in _point_words(translator, op))
    counter = element.value.to(UI32), first, second, third
    key = builder.index(SEED).to(UI32), builder.const(op.identity, UI32)
    words = [Tile(word, element.lanes) for word in builder.philox(key, counter)]
    drawn = translator.element(op.result)
    if op.kind is sdg.RandomKind.BITS:
        return Tile(words[0].value.to(i64), element.lanes)
    double = isinstance(drawn, Float64Type)
    if op.kind is sdg.RandomKind.UNIFORM:
        return _uniform53(words[0], words[1], 0) if double else _uniform(words[0], drawn)
    return Tile(_normal(translator, words, double).value.to(drawn), element.lanes)


def flat_position(translator: Translator, op: sdg.RandomOp, at: Coordinates) -> Tile:
    """The row-major position of each element."""
    builder = translator.builder
    total = Tile(builder.const(0, i64))
    for coordinate, stride in zip(at, row_major(translator.shape(op.result)), strict=True):
        place = positions(translator, coordinate)
        if stride != Const(1):
            place = combine(builder, ew.MulOp, place, Tile(builder.index(stride).to(i64)))
        total = combine(builder, ew.AddOp, total, place)
    return total


def _point_words(translator: Translator, op: sdg.RandomOp) -> tuple[Expr, Expr, Expr]:
    """Words 1 to 3 of the counter; a sum that the launch evaluates is taken modulo 2**32 in the kernel."""
    point = tuple(substitute(entry, translator.counted) for entry in op.point) or translator.point
    values = (*point, Const(0), Const(0))
    rest: Expr = Const(0)
    for value in point[2:]:
        rest = (rest * WEYL + value) % (1 << 32)
    return values[0], values[1], rest


def _uniform(word: Tile, drawn: Attribute) -> Tile:
    precision = _PRECISION[dtype_name(drawn)]
    exact = (word.value >> (32 - precision)).to(f32) * 2.0**-precision
    return Tile(exact.to(drawn), word.lanes)


def _uniform53(high: Tile, low: Tile, offset: int) -> Tile:
    whole = (high.value >> 5).to(Float64Type()) * 2.0**26 + (low.value >> 6).to(Float64Type())
    return Tile((whole + float(offset)) * 2.0**-53, high.lanes)


def _normal(translator: Translator, words: list[Tile], double: bool) -> Tile:
    """Box-Muller."""
    builder = translator.builder
    if double:
        radius, turn = _uniform53(words[0], words[1], 1).value, _uniform53(words[2], words[3], 0).value
    else:
        radius = ((words[0].value >> 8) + 1).to(f32) * 2.0**-24
        turn = (words[1].value >> 8).to(f32) * 2.0**-24
    length: Value = builder.sqrt(builder.log(radius) * -2.0)
    return Tile(length * builder.apply(ew.CosOp, turn * (2 * math.pi)), words[0].lanes)


EMITTERS: Mapping[type[Operation], Emitter] = MappingProxyType({sdg.RandomOp: emit_random})
