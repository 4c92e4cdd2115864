"""
Which axis of a tile the lanes run along, decided per sink by an estimate of the instructions that the choice leads to
in the whole inlined expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from xdsl.ir import SSAValue

from tempo_ir.dialects.operation import maker_of
from tempo_ir.dialects.tile.attributes import ViewType, shape_of
from tempo_ir.dialects.tile.memory import GatherOp, LoadOp
from tempo_ir.dialects.tile.shape import (
    BroadcastOp,
    ConstOp,
    DotOp,
    ExpandOp,
    InRangeOp,
    IotaOp,
    ReduceOp,
    SplatOp,
    TransOp,
)
from tempo_ir.dialects.tile.structure import ForOp
from tempo_ir.lowering.llvm.access import runs_along_depth
from tempo_ir.lowering.llvm.address import Linear
from tempo_ir.lowering.llvm.plan import WEIGHTS, Plan, Storage
from tempo_ir.lowering.llvm.scratch import Scratch
from tempo_ir.lowering.llvm.text import Register

NEVER = 1e9
"""The cost of a choice that cannot be emitted."""

GATHER = 1.5
"""Instructions per element of a load with a stride."""

SUM_ACROSS = 8
"""Instructions per result of combining the lanes of a vector, beyond those of combining vectors."""


class Costs:
    """Estimated instructions of computing inlined values; valid as long as the environment does not change."""

    def __init__(self, plan: Plan, environment: Mapping[SSAValue, Scratch | Register | Linear], lanes: int):
        self.plan = plan
        self.environment = environment
        self.lanes = lanes
        self._known: dict[tuple[SSAValue, int | None], float] = {}

    def best_lane(self, value: SSAValue, extra: Callable[[int | None], float] = lambda lane: 0.0) -> int | None:
        """The axis for the lanes of a sink of `value`, None for scalars; `extra` is the cost of its writes."""
        candidates = [axis for axis, extent in enumerate(shape_of(value)) if extent > 1]
        return min(
            (None, *reversed(candidates)),
            key=lambda lane: (self.cost(value, lane, ignore_plan=True) + extra(lane), lane is None),
        )

    def cost(self, value: SSAValue, lane: int | None, ignore_plan: bool = False) -> float:
        """Instructions for all elements of the value with the lanes on axis `lane`."""
        shape = shape_of(value)
        if prod(shape) == 1:
            return 0.0
        if lane is not None and shape[lane] == 1:
            lane = None
        known = self._known.get((value, lane))
        if known is None or ignore_plan:
            known = self._cost(value, lane, ignore_plan)
            if not ignore_plan:
                self._known[value, lane] = known
        return known

    def vectors(self, shape: tuple[int, ...], lane: int | None) -> float:
        """Instructions to touch every element once."""
        if lane is None:
            return float(prod(shape))
        return prod(shape) / shape[lane] * -(-shape[lane] // self.lanes)

    def _cost(self, value: SSAValue, lane: int | None, ignore_plan: bool) -> float:
        shape = shape_of(value)
        each = self.vectors(shape, lane)
        place = self.environment.get(value)
        if isinstance(place, Scratch):
            return each if lane in (None, place.lane) else prod(shape) * 2.0
        op = maker_of(value)
        if place is not None or op is None or isinstance(op, (ForOp, SplatOp, ConstOp)):
            return 0.0
        storage = Storage.INLINE if ignore_plan else self.plan.of(value)
        if storage is Storage.COLUMNS:
            # not yet emitted: the carried values of a loop are laid out before its body
            return each if lane in (None, 1) or shape[1] < self.lanes else prod(shape) * 2.0
        if storage is Storage.ROWS:
            return each if lane in (None, 0) else prod(shape) * 2.0
        if storage is Storage.SCRATCH:
            return each
        match op:
            case LoadOp() | GatherOp():
                return self._load(op, lane, each)
            case TransOp():
                return self.cost(op.value, None if lane is None else 1 - lane)
            case ExpandOp():
                return self.cost(op.value, None if lane is None or lane == op.axis_number else 0)
            case BroadcastOp():
                return self.cost(op.value, lane)
            case DotOp():
                return self._dot(op, lane, each)
            case ReduceOp():
                return self._reduce(op, lane)
            case IotaOp() | InRangeOp():
                return each
            case _:
                operands = [operand for operand in op.operands if not isinstance(operand.type, ViewType)]
                return each * WEIGHTS.get(type(op), 1) + sum(self.cost(operand, lane) for operand in operands)

    def _load(self, op: LoadOp | GatherOp, lane: int | None, each: float) -> float:
        if lane is None:
            return each
        axis = op.tile_axes[lane]
        elements = prod(shape_of(op.result))
        if isinstance(op, GatherOp) and op.axis_number == axis:
            return elements * GATHER
        stride = op.view_type.strides.data[axis]
        return each if stride in (0, 1) else elements * GATHER

    def _dot(self, op: DotOp, lane: int | None, each: float) -> float:
        depth = shape_of(op.lhs)[1]
        cost = self.cost(op.accumulator, lane)
        elements = prod(shape_of(op.result))
        if lane is None:
            if depth < self.lanes:
                return cost + elements * depth + self.cost(op.lhs, None) + self.cost(op.rhs, None)
            products = elements * -(-depth // self.lanes)
            return cost + products + elements * 3 + self.cost(op.lhs, 1) + self.cost(op.rhs, 0)
        if lane == 1 and runs_along_depth(op, self.lanes, self._is_inline):
            products = elements * -(-depth // self.lanes)
            return cost + products + elements * 2 + self.cost(op.lhs, 1) + self.cost(op.rhs, 0)
        cost += each * depth
        # a block of accumulators reads each scalar and each vector once, and there are several blocks
        rows, columns = shape_of(op.result)
        if lane == 1:
            return cost + self.cost(op.lhs, None) / 8 + self.cost(op.rhs, 1) * max(1.0, rows / 8)
        return cost + self.cost(op.lhs, 0) * max(1.0, columns / 8) + self.cost(op.rhs, None) / 8

    def _is_inline(self, value: SSAValue) -> bool:
        return value not in self.environment and self.plan.is_inline(value)

    def _reduce(self, op: ReduceOp, lane: int | None) -> float:
        axis = op.axis_number
        if op.is_squeeze:
            return self.cost(op.value, None if lane is None else 1 - axis)
        if lane is not None:
            return self.cost(op.value, 1 - axis)
        elements = prod(shape_of(op.result))
        along = self.cost(op.value, axis) if shape_of(op.value)[axis] >= self.lanes else self.cost(op.value, None)
        return along + elements * SUM_ACROSS
