"""Which axis of an op's operands an axis of its result is, and the op without that axis: one row of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, cast

from tempo_ir.dialects.sdg import (
    Access,
    ArgReduceOp,
    AxisOp,
    BinaryOp,
    BroadcastOp,
    CastOp,
    ContractOp,
    MaxOp,
    MeanOp,
    MinOp,
    OrderOp,
    ProdOp,
    ReduceOp,
    ReshapeOp,
    ReverseOp,
    ScanOp,
    SdgOp,
    SelectOp,
    SliceOp,
    SoftmaxOp,
    StopGradientOp,
    SumOp,
    TransposeOp,
    UnaryOp,
)
from tempo_ir.dialects.types import Shape, element, shape_of
from tempo_ir.index import Slice
from tempo_ir.passes.building import GraphBuilder, static_product
from tempo_ir.passes.simplify.shape import takes_all


@dataclass(slots=True, unsafe_hash=True)  # never changed; `frozen` would make it four times as slow to make
class Along:
    """What an operand has of an axis of the result.

    `axis` None: it lacks the axis. `repeated`: its axis has the extent 1, and broadcast its one row serves all of the
    result's.
    """

    axis: int | None = None
    repeated: bool = False

    @property
    def varies(self) -> bool:
        """Whether the operand has a row for each of the result's."""
        return self.axis is not None and not self.repeated


ABSENT = Along()
Places: TypeAlias = Sequence[Along]


def without_axis(shape: Shape, axis: int) -> Shape:
    """The other extents."""
    return (*shape[:axis], *shape[axis + 1 :])


@dataclass(frozen=True)
class Rule:
    """How ops of a class treat an axis: where their operands have it (None: they mix its rows, or it is not known),
    and the op on single rows."""

    places: Callable[[SdgOp, int], Places | None]
    row: Callable[[GraphBuilder, SdgOp, int, Sequence[Access]], Access]


def _aligned_right(op: SdgOp, axis: int) -> Places | None:
    """numpy's broadcasting."""
    result = shape_of(op.results[0].type)
    found: list[Along] = []
    for access in op.accesses:
        shape = shape_of(access.tensor)
        own = axis - (len(result) - len(shape))
        if own < 0:
            found.append(ABSENT)
        else:
            found.append(Along(own, repeated=shape[own] == 1))
    return found


def _elementwise_row(build: GraphBuilder, op: SdgOp, axis: int, rows: Sequence[Access]) -> Access:
    if isinstance(op, CastOp):
        return build.build(CastOp, *rows, element_type=element(op.result.type))
    return build.build(type(op), *rows)


def _broadcast_row(build: GraphBuilder, op: SdgOp, axis: int, rows: Sequence[Access]) -> Access:
    return build.broadcast(rows[0], without_axis(shape_of(op.results[0].type), axis))


def _reshaped(op: SdgOp, axis: int) -> Places | None:
    """The operand's axis of the same extent that as many elements precede: rows stay whole."""
    result, shape = shape_of(op.results[0].type), shape_of(op.accesses[0].tensor)
    before = static_product(result[:axis])
    for own, extent in enumerate(shape):
        if extent == result[axis] and static_product(shape[:own]) == before:
            return [Along(own)]
    return None


def _reshape_row(build: GraphBuilder, op: SdgOp, axis: int, rows: Sequence[Access]) -> Access:
    return build.reshape(rows[0], without_axis(shape_of(op.results[0].type), axis))


def _transposed(op: SdgOp, axis: int) -> Places | None:
    return [Along(cast(TransposeOp, op).permutation[axis])]


def _transpose_row(build: GraphBuilder, op: SdgOp, axis: int, rows: Sequence[Access]) -> Access:
    permutation = cast(TransposeOp, op).permutation
    gone = permutation[axis]
    left = [number - (number > gone) for number in permutation if number != gone]
    return rows[0] if left == sorted(left) else build.build(TransposeOp, rows[0], permutation=left)


def _other_axes(op: SdgOp, axis: int) -> Places | None:
    """A reduction: the axis is one of those that stay."""
    return [Along(_others(op)[axis])]


def _others(op: SdgOp) -> list[int]:
    rank, reduced = op.accesses[0].tensor.get_num_dims(), _reduced(op)
    return [number for number in range(rank) if number not in reduced]


def _reduced(op: SdgOp) -> Sequence[int]:
    return op.axes if isinstance(op, ReduceOp) else (cast(ArgReduceOp, op).axis,)


def _reduction_row(build: GraphBuilder, op: SdgOp, axis: int, rows: Sequence[Access]) -> Access:
    gone = _others(op)[axis]
    axes = [number - (number > gone) for number in _reduced(op)]
    if isinstance(op, ArgReduceOp):
        return build.build(type(op), rows[0], axis=axes[0])
    return build.build(type(op), rows[0], axes=axes)


def _along_another(op: SdgOp, axis: int) -> Places | None:
    return None if cast(AxisOp, op).axis == axis else [Along(axis)]


def _along_row(build: GraphBuilder, op: SdgOp, axis: int, rows: Sequence[Access]) -> Access:
    own = cast(AxisOp, op).axis
    own -= own > axis
    if isinstance(op, ScanOp):
        return build.build(type(op), rows[0], axis=own, reverse=op.reverse)
    if isinstance(op, OrderOp):
        return build.build(type(op), rows[0], axis=own, descending=op.descending)
    return build.build(type(op), rows[0], axis=own)


def _sliced(op: SdgOp, axis: int) -> Places | None:
    """An axis that is taken whole."""
    sliced = cast(SliceOp, op)
    own = axis_taken(sliced, axis)
    return [Along(own)] if takes_all(sliced.take[own], shape_of(op.accesses[0].tensor)[own]) else None


def axis_taken(op: SliceOp, axis: int) -> int:
    """The axis of the operand that an axis of a slice is part of."""
    return [number for number, entry in enumerate(op.take) if isinstance(entry, Slice)][axis]


def _slice_row(build: GraphBuilder, op: SdgOp, axis: int, rows: Sequence[Access]) -> Access:
    sliced = cast(SliceOp, op)
    own = axis_taken(sliced, axis)
    return build.slice(rows[0], (*sliced.take[:own], *sliced.take[own + 1 :]))


def _lettered(op: SdgOp, axis: int) -> Places | None:
    """The letter of the axis, which no operand has twice."""
    inputs, output = cast(ContractOp, op).letters
    return letter_places(inputs, output[axis])


def letter_places(inputs: Sequence[str], letter: str) -> Places | None:
    """The axes that a letter names in each operand; None where one has it twice."""
    if any(letters.count(letter) > 1 for letters in inputs):
        return None
    return [Along(letters.index(letter) if letter in letters else None) for letters in inputs]


def _contract_row(build: GraphBuilder, op: SdgOp, axis: int, rows: Sequence[Access]) -> Access:
    inputs, output = cast(ContractOp, op).letters
    left = [letters.replace(output[axis], "") for letters in inputs]
    return build.contract(f"{','.join(left)}->{output.replace(output[axis], '')}", *rows)


_ELEMENTWISE = Rule(_aligned_right, _elementwise_row)
_REDUCTION = Rule(_other_axes, _reduction_row)
_ALONG = Rule(_along_another, _along_row)
_RULES: Mapping[type[SdgOp], Rule] = MappingProxyType(
    {
        SelectOp: _ELEMENTWISE,
        CastOp: _ELEMENTWISE,
        StopGradientOp: _ELEMENTWISE,
        BroadcastOp: Rule(_aligned_right, _broadcast_row),
        ReshapeOp: Rule(_reshaped, _reshape_row),
        TransposeOp: Rule(_transposed, _transpose_row),
        **dict.fromkeys((SumOp, ProdOp, MaxOp, MinOp, MeanOp), _REDUCTION),
        SliceOp: Rule(_sliced, _slice_row),
        ContractOp: Rule(_lettered, _contract_row),
        **dict.fromkeys((SoftmaxOp, ReverseOp), _ALONG),
    }
)


def rule_of(op: SdgOp) -> Rule | None:
    """How an op treats an axis of its result; None for one that is taken as a whole."""
    if isinstance(op, UnaryOp | BinaryOp):
        return _ELEMENTWISE
    if isinstance(op, ArgReduceOp):
        return _REDUCTION
    if isinstance(op, ScanOp | OrderOp):
        return _ALONG
    return _RULES.get(type(op))
