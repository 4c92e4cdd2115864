"""How an op lets an axis of its result through to its operands, and the op over a part of that axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, overload

from tempo_ir.dialects.sdg import (
    Access,
    ArangeOp,
    ArgReduceOp,
    BinaryOp,
    BroadcastOp,
    CastOp,
    ConcatOp,
    ConstantOp,
    ContractOp,
    IndexOp,
    ReduceOp,
    ReshapeOp,
    ReverseOp,
    ScanOp,
    SdgOp,
    SelectOp,
    SliceOp,
    SoftmaxOp,
    StopGradientOp,
    TransposeOp,
    UnaryOp,
)
from tempo_ir.dialects.sdg.symbols import position
from tempo_ir.dialects.types import Extent, Shape, element, shape_of
from tempo_ir.index import Const, Entry, Expr, Index, Slice, as_expr, free_symbols, simplify
from tempo_ir.passes.building import GraphBuilder, full, static_product, symbols_of

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


ELEMENTWISE = (UnaryOp, BinaryOp, SelectOp, CastOp, StopGradientOp)
_WITH_RULES = (
    *ELEMENTWISE,
    ArangeOp,
    ArgReduceOp,
    BroadcastOp,
    ConcatOp,
    ConstantOp,
    ContractOp,
    ReduceOp,
    ReshapeOp,
    ReverseOp,
    ScanOp,
    SliceOp,
    SoftmaxOp,
    TransposeOp,
)


def axes_through(op: SdgOp, axis: int) -> Axes | None:
    """Where an axis of the result comes from; None where the op is not computed part by part along it."""
    if not isinstance(op, _WITH_RULES):
        return None
    shape = shape_of(op.results[0].type)
    operands = [shape_of(access.type) for access in op.accesses]
    match op:
        case ArangeOp():
            return ()
        case ConstantOp():
            return () if op.number is not None else None
        case BroadcastOp():
            return _aligned(shape, operands, axis)
        case ReshapeOp():
            return _reshaped(shape, operands[0], axis)
        case TransposeOp():
            return (op.permutation[axis],)
        case ContractOp():
            inputs, output = op.letters
            return lettered(inputs, output[axis])
        case ReduceOp() | ArgReduceOp():
            dropped = op.axes if isinstance(op, ReduceOp) else (op.axis,)
            return ([other for other in range(len(operands[0])) if other not in dropped][axis],)
        case ConcatOp():
            return tuple(axis for _ in operands) if axis != op.axis else None
        case SliceOp():
            return _sliced(op.take, operands[0], axis)
        case SoftmaxOp() | ScanOp() | ReverseOp():
            return (axis,) if axis != op.axis else None
        case _:
            return _aligned(shape, operands, axis)


def lettered(inputs: Sequence[str], letter: str) -> Axes | None:
    """The axes of a letter of a contraction; None where an operand has it twice."""
    if any(letters.count(letter) > 1 for letters in inputs):
        return None
    return tuple(letters.index(letter) if letter in letters else None for letters in inputs)


def _aligned(shape: Shape, operands: Sequence[Shape], axis: int) -> Axes:
    """As numpy broadcasts, aligned right."""
    places = [axis - (len(shape) - len(operand)) for operand in operands]
    return tuple(
        place if place >= 0 and operand[place] != 1 else None for place, operand in zip(places, operands, strict=True)
    )


def _reshaped(new: Shape, old: Shape, axis: int) -> Axes | None:
    """An axis that a reshape leaves whole: as many elements stand before it and behind it as did."""
    before = static_product(new[:axis])
    for place, extent in enumerate(old):
        if extent == new[axis] and static_product(old[:place]) == before:
            return (place,)
    return None


def _sliced(take: Index, operand: Shape, axis: int) -> Axes | None:
    """An axis of which a slice takes all."""
    place = [number for number, entry in enumerate(take) if isinstance(entry, Slice)][axis]
    return (place,) if take[place] == full(operand[place]) else None


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
            return build.reshape(operands[0], _resized(op, axis, part, at))
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
            (place,) = _sliced(op.take, shape_of(op.accesses[0].type), axis) or (axis,)
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
