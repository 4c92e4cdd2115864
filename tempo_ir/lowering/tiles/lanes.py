"""Tiles with other axes: of extent 1, of one lane of an axis, of several put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import shape
from tempo_ir.dialects.tile.attributes import INDEX, ReduceKind, element_of, is_bool, shape_of
from tempo_ir.dialects.tile.builder import number_attribute

Inserter: TypeAlias = Callable[[Operation], Operation]
"""Places an op, and gives it."""


def reshaped(value: SSAValue, extents: tuple[int, ...], put: Inserter) -> SSAValue:
    """A tile with other axes of extent 1: `16x1` as `16`, a scalar as `1x1`."""
    if shape_of(value) == extents:
        return value
    name = value.name_hint
    while 1 in shape_of(value):
        value = put(shape.ReduceOp(_sum(value), value, shape_of(value).index(1))).results[0]
    if not shape_of(value) and extents:
        value = put(shape.SplatOp(value, extents)).results[0]
    elif shape_of(value) != extents:
        value = put(shape.ExpandOp(value, extents.index(1))).results[0]
    value.name_hint = name
    return value


def lane_of(value: SSAValue, axis: int, lane: int, put: Inserter) -> SSAValue:
    """One lane of an axis: the sum of what is zero elsewhere."""
    element = element_of(value)
    none = put(shape.ConstOp(number_attribute(0, element))).results[0]
    chosen = put(ew.SelectOp(_is_lane(shape_of(value), axis, lane, put), value, none)).results[0]
    result = put(shape.ReduceOp(_sum(value), chosen, axis)).results[0]
    result.name_hint = value.name_hint
    return result


def assembled(lanes: Sequence[SSAValue], axis: int, put: Inserter) -> SSAValue:
    """The tile whose lanes along an axis are those."""
    extents = list(shape_of(lanes[0]))
    extents.insert(axis, len(lanes))
    wide = [lane if len(extents) == 1 else put(shape.ExpandOp(lane, axis)).results[0] for lane in lanes]
    result = wide[0]
    for number, lane in enumerate(wide[1:], 1):
        result = put(ew.SelectOp(_is_lane(tuple(extents), axis, number, put), lane, result)).results[0]
    result.name_hint = lanes[0].name_hint
    return result


def _is_lane(extents: tuple[int, ...], axis: int, lane: int, put: Inserter) -> SSAValue:
    """True in one lane of an axis, as a tile with extent 1 along the other one."""
    start = put(shape.ConstOp(number_attribute(0, INDEX))).results[0]
    number = put(shape.ConstOp(number_attribute(lane, i32))).results[0]
    is_lane = put(ew.EqOp(put(shape.IotaOp(start, extents[axis])).results[0], number)).results[0]
    return is_lane if len(extents) == 1 else put(shape.ExpandOp(is_lane, 1 - axis)).results[0]


def _sum(value: SSAValue) -> ReduceKind:
    return ReduceKind.OR if is_bool(element_of(value)) else ReduceKind.SUM
