"""Which elements of a softmax can count, where positions alone decide: those that a causal mask or a window leaves.

Before: `softmax(select(n <= m, x, -inf))` for rows m = 16 * p to 16 * p + 15 runs over blocks of all n. After: over n
= 0 to 16 * p + 16. `n > m - w` says from where on; conditions that both must hold are `and`, and selects inside of one
another. The mask itself stays, for blocks of which some elements count.

Nothing is found where a condition is not of positions (a mask that the caller gives), where a position is not that of
one axis and a number, or where what is chosen otherwise is not -inf.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.types import Shape, element, shape_of
from tempo_ir.index import Expr, as_expr, maximum, minimum, substitute
from tempo_ir.lowering.kernels.tiles import Coordinate
from tempo_ir.lowering.kernels.translator import Translator

_TURNED: Mapping[type[Operation], type[Operation]] = MappingProxyType(
    {sdg.LtOp: sdg.GtOp, sdg.LeOp: sdg.GeOp, sdg.GtOp: sdg.LtOp, sdg.GeOp: sdg.LeOp}
)
"""`a < b` is `b > a`."""


@dataclass(frozen=True, slots=True)
class _Position:
    """A number, plus the index along an axis if there is one, counted from the last, 0."""

    number: Expr
    axis: int | None = None


def key_range(
    translator: Translator, scores: SSAValue, axis: int, at: Mapping[int, Coordinate], block: int
) -> tuple[Expr, Expr] | None:
    """From where to where elements along an axis can count, in whole blocks, for rows at the coordinates of the other
    axes; None where all can."""
    low: list[Expr] = []
    high: list[Expr] = []
    for condition in _conditions(translator, scores):
        bound = _bound(translator, condition, shape_of(scores.type), axis, at)
        if bound is not None:
            kind, number = bound
            (high if kind in (sdg.LtOp, sdg.LeOp) else low).append(number)
    if not low and not high:
        return None
    extent = as_expr(shape_of(scores.type)[axis])
    first = maximum(*low, 0) // block * block if low else as_expr(0)
    return translator.builder.simplify(first), translator.builder.simplify(minimum(*high, extent))


def _conditions(translator: Translator, value: SSAValue) -> Generator[Operation]:
    """The comparisons without which an element is -inf."""
    value = translator.aliases.get(value, value)
    op = value.owner
    if not isinstance(op, sdg.SelectOp) or not _is_nothing(op.rhs):
        return
    waiting = [op.condition]
    while waiting:
        inner = waiting.pop().owner
        if isinstance(inner, sdg.AndOp):
            waiting += inner.operands
        elif isinstance(inner, sdg.BroadcastOp):
            waiting.append(inner.operand)
        elif isinstance(inner, sdg.CompareOp):
            yield inner
    yield from _conditions(translator, op.lhs)


def _is_nothing(value: SSAValue) -> bool:
    """Whether all elements are -inf."""
    op = value.owner
    if isinstance(op, sdg.BroadcastOp):
        return _is_nothing(op.operand)
    return isinstance(op, sdg.ConstantOp) and op.number == -math.inf


def _bound(
    translator: Translator, op: Operation, shape: Shape, axis: int, at: Mapping[int, Coordinate]
) -> tuple[type[Operation], Expr] | None:
    """What a comparison says of the index along the axis: below a number (sdg.lt), or from one on (sdg.ge)."""
    kind, rank = type(op), len(shape)
    sides = [_stretched(_position(translator, operand), operand, shape) for operand in op.operands]
    if kind not in _TURNED or any(side is None for side in sides):
        return None
    own, other = (side for side in sides if side is not None)
    if other.axis == rank - 1 - axis:
        own, other, kind = other, own, _TURNED[kind]
    if own.axis != rank - 1 - axis or other.axis == own.axis:
        return None
    least = most = as_expr(0)
    if other.axis is not None:
        coordinate = at.get(rank - 1 - other.axis)
        if coordinate is None or coordinate.step != 1:
            return None
        least, most = coordinate.start, coordinate.start
        if coordinate.lane is not None:
            most = most + (coordinate.lane.size - 1)
    distance = other.number - own.number
    if kind is sdg.LtOp:
        return sdg.LtOp, most + distance
    if kind is sdg.LeOp:
        return sdg.LtOp, most + distance + 1
    return sdg.GeOp, least + distance + (1 if kind is sdg.GtOp else 0)


def _position(translator: Translator, value: SSAValue) -> _Position | None:
    """The index that a value is, if it is one."""
    op = value.owner
    match op:
        case sdg.ArangeOp():
            taken = substitute(op.range, translator.counted)
            return _Position(taken.start, 0) if taken.step == 1 else None
        case sdg.IndexOp():
            return _Position(substitute(op.expression, translator.counted))
        case sdg.ConstantOp() if isinstance(element(op.result.type), IntegerType) and isinstance(op.number, int):
            return _Position(as_expr(op.number))
        case sdg.ReshapeOp():
            return _reshaped(_position(translator, op.operand), shape_of(op.operand.type), shape_of(op.result.type))
        case sdg.BroadcastOp():
            return _stretched(_position(translator, op.operand), op.operand, shape_of(op.result.type))
        case sdg.AddOp() | sdg.SubOp():
            shape = shape_of(op.result.type)
            first, second = (_stretched(_position(translator, operand), operand, shape) for operand in op.operands)
            if first is None or second is None or (first.axis is not None and second.axis is not None):
                return None
            if isinstance(op, sdg.SubOp):
                return None if second.axis is not None else _Position(first.number - second.number, first.axis)
            return _Position(first.number + second.number, first.axis if second.axis is None else second.axis)
        case _:
            return None


def _reshaped(position: _Position | None, old: Shape, new: Shape) -> _Position | None:
    """The position in another shape, whose axes of more than one element are the same."""
    if position is None or position.axis is None:
        return position
    kept_old = [axis for axis, extent in enumerate(old) if extent != 1]
    kept_new = [axis for axis, extent in enumerate(new) if extent != 1]
    axis = len(old) - 1 - position.axis
    if axis not in kept_old or [old[number] for number in kept_old] != [new[number] for number in kept_new]:
        return None
    return _Position(position.number, len(new) - 1 - kept_new[kept_old.index(axis)])


def _stretched(position: _Position | None, value: SSAValue, new: Shape) -> _Position | None:
    """The position where a value is stretched to a shape, along other axes than its own."""
    if position is None or position.axis is None:
        return position
    own = shape_of(value.type)[-1 - position.axis]
    return position if position.axis < len(new) and new[-1 - position.axis] == own else None
