"""How an op lets an axis of its result through to its operands, and the op over a part of that axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, overload

from tempo_ir.dialects.sdg import (
    Access,
    ArangeOp,
    ArgReduceOp,
    BroadcastOp,
    CastOp,
    ConcatOp,
    ConstantOp,
    ContractOp,
    IndexOp,
    OrderOp,
    ReduceOp,
    ReshapeOp,
    ReverseOp,
    ScanOp,
    SdgOp,
    SliceOp,
    SoftmaxOp,
    TransposeOp,
)
from tempo_ir.dialects.sdg.symbols import position
from tempo_ir.dialects.types import Extent, Shape, element, shape_of
from tempo_ir.index import Const, Entry, Expr, Slice, as_expr, free_symbols, simplify
from tempo_ir.passes.building import GraphBuilder, full, symbols_of
from tempo_ir.passes.recurrences.axes import Places, axis_taken, letter_places, rule_of

Axes: TypeAlias = tuple[int | None, ...]
"""For each operand the axis that the axis of the result is; None where it does not vary along it."""


class Substitute(Protocol):
    """Reads the dims of an op where the op is read."""

    @overload
    def __call__(self, value: Expr) -> Expr: ...
    @overload
    def __call__(self, value: Entry) -> Entry: ...


@dataclass(frozen=True)
class Part:
    """Elements of an axis: `extent` of them, from `start` on; to the end of the axis where `is_last`."""

    start: Expr
    extent: Extent
    is_last: bool = False

    def of(self, taken: Slice) -> Slice:
        """The points of a range that the part covers: of `0:t + 1`, `64 * m:64 * m + 64`."""
        start = taken.start + taken.step * self.start
        stop = taken.stop if self.is_last else start + taken.step * (as_expr(self.extent) - 1) + 1
        return Slice(simplify(start), simplify(stop), taken.step)


def axes_through(op: SdgOp, axis: int) -> Axes | None:
    """Where an axis of the result comes from; None where the op is not computed part by part along it."""
    match op:
        case ArangeOp():
            return ()
        case ConstantOp():
            return () if op.number is not None else None
        case ConcatOp():
            return tuple(axis for _ in op.operands) if axis != op.axis else None
        case OrderOp():
            return None
        case _:
            rule = rule_of(op)
            return None if rule is None else _varying(rule.places(op, axis))


def lettered(inputs: Sequence[str], letter: str) -> Axes | None:
    """The axes of a letter of a contraction; None where an operand has it twice."""
    return _varying(letter_places(inputs, letter))


def _varying(places: Places | None) -> Axes | None:
    return None if places is None else tuple(place.axis if place.varies else None for place in places)


def rebuild(
    build: GraphBuilder, op: SdgOp, axis: int, operands: Sequence[Access], part: Part, at: Substitute
) -> Access:
    """The op over a part of an axis of its result, from operands over that part; `at` reads its dims where it is."""
    match op:
        case ArangeOp():
            return _numbers(build, op, part, at(op.range.start))
        case ConstantOp():
            assert op.number is not None
            number = build.number(op.number, element(op.result.type))
            return build.broadcast(number, _resized(op, axis, part, at))
        case BroadcastOp():
            return build.broadcast(operands[0], _resized(op, axis, part, at))
        case ReshapeOp():
            return build.reshape(operands[0], _as_operand(build, op, operands[0], _resized(op, axis, part, at)))
        case TransposeOp():
            return build.build(TransposeOp, *operands, permutation=op.permutation)
        case ContractOp():
            return build.contract(op.spec.data, *operands)
        case ReduceOp():
            return build.build(type(op), *operands, axes=op.axes)
        case ArgReduceOp() | SoftmaxOp() | ReverseOp() | ConcatOp():
            return build.build(type(op), *operands, axis=op.axis)
        case ScanOp():
            return build.build(type(op), *operands, axis=op.axis, reverse=op.reverse)
        case SliceOp():
            place = axis_taken(op, axis)
            own = [full(part.extent) if number == place else at(entry) for number, entry in enumerate(op.take)]
            return build.slice(operands[0], tuple(own))
        case CastOp():
            return build.cast(operands[0], element(op.result.type))
        case _:
            return build.build(type(op), *operands)


def _numbers(build: GraphBuilder, op: ArangeOp, part: Part, start: Expr) -> Access:
    """Part of a range of numbers: as many from its first on, moved. Dims as numbers count on from where a call starts,
    places along an axis do not."""
    step = op.range.step
    values = Slice(start, simplify(start + step * (as_expr(part.extent) - 1) + 1), step)
    numbers = build.build(ArangeOp, symbols=symbols_of([values.start, values.stop]), values=values)
    moved = simplify(step * part.start)
    if moved == Const(0):
        return numbers
    expression = position(moved, build.domain.dims)
    return build.add(numbers, build.build(IndexOp, expression=expression, symbols=free_symbols(moved)))


def _resized(op: SdgOp, axis: int, part: Part, at: Substitute) -> Shape:
    shape = shape_of(op.results[0].type)
    extents = [extent if isinstance(extent, int) else at(extent) for extent in shape]
    return (*extents[:axis], part.extent, *extents[axis + 1 :])


def _as_operand(build: GraphBuilder, op: ReshapeOp, operand: Access, shape: Shape) -> Shape:
    """A shape with the extents of axes that are only passed on as the operand writes them: that products of them are
    equal is not proved where the same extent is written in two ways."""
    passed = [axes_through(op, axis) for axis in range(len(shape))]
    own = build.shape(operand)
    return tuple(
        extent if axes is None or axes[0] is None else own[axes[0]] for extent, axes in zip(shape, passed, strict=True)
    )
