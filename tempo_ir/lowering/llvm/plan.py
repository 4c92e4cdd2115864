"""
What is kept and what is recomputed: per tile value, whether it is INLINE (computed in the block of whoever uses it) or
in scratch (computed once, at its definition).

- A reduction or a scan is in scratch.
- A dot is inline if its one chain of uses leads pointwise, through and beside nothing heavy, to a store, a yield, a
  reduction or a value in scratch: then its accumulators flow on in registers. (A heavy function inside a block of many
  accumulators makes LLVM interleave and spill them, and is computed element by element where these are no vectors.)
- An elementwise value is in scratch if it is heavy and would be computed several times: a use that broadcasts it along
  a new axis, a use in a deeper loop, or several uses, unless all lead point by point to stores of one loop (`joint`).
- Operands of a dot: `_plan_dot`. Transposed stores: `_plan_store`.
- A load is in scratch only if the memory may be overwritten before it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from math import gcd, prod
from types import MappingProxyType

from xdsl.ir import Block, Operation, SSAValue, Use

from tempo_ir.dialects.operation import maker_of
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import DYNAMIC, ViewType, bit_width, element_of, shape_of
from tempo_ir.dialects.tile.memory import AccessOp, GatherOp, IndexedWriteOp, LoadOp, StoreOp, ViewOp, WriteOp
from tempo_ir.dialects.tile.shape import (
    BroadcastOp,
    ConstOp,
    DotOp,
    ExpandOp,
    IotaOp,
    PhiloxOp,
    ReduceOp,
    ScanOp,
    SplatOp,
    TransOp,
)
from tempo_ir.dialects.tile.structure import ForOp, KernelOp, ProgramIdOp, YieldOp
from tempo_ir.lowering.llvm.access import is_contiguous
from tempo_ir.lowering.llvm.invariant import program_axes
from tempo_ir.lowering.llvm.joint import Joint, in_one_loop, joint_stores
from tempo_ir.lowering.llvm.target import Target
from tempo_ir.lowering.llvm.written import writes_of


class Storage(Enum):
    """Where a tile value is."""

    INLINE = auto()
    SCRATCH = auto()
    COLUMNS = auto()
    """Scratch that is contiguous along axis 1, for the right operand of a dot: in panels if long, transposed in
    registers if the source runs along axis 0."""
    ROWS = auto()
    """Scratch that is contiguous along axis 0, for the left operand of a dot whose lanes are its rows; transposed in
    registers if the source runs along axis 1."""


WEIGHTS: Mapping[type[Operation], int] = MappingProxyType(
    {
        ew.ExpOp: 8,
        ew.LogOp: 12,
        ew.Log1pOp: 16,
        ew.TanhOp: 12,
        ew.SigmoidOp: 10,
        ew.ErfOp: 20,
        ew.SinOp: 20,
        ew.CosOp: 20,
        ew.SqrtOp: 4,
        ew.RsqrtOp: 6,
        ew.DivOp: 4,
        ew.PowOp: 40,
        ew.FloorDivOp: 16,
        ew.ModOp: 16,
        PhiloxOp: 50,
        DotOp: 20,
        ReduceOp: 20,
        ScanOp: 20,
        LoadOp: 1,
        GatherOp: 2,
    }
)
"""Instructions per element, of ops that take more than one."""

HEAVY = (
    ew.ExpOp,
    ew.LogOp,
    ew.Log1pOp,
    ew.TanhOp,
    ew.SigmoidOp,
    ew.ErfOp,
    ew.SinOp,
    ew.CosOp,
    ew.RsqrtOp,
    ew.DivOp,
    ew.PowOp,
    ew.FloorDivOp,
    ew.ModOp,
    PhiloxOp,
)
"""Ops that do not belong into a block of many accumulators."""

FREE = (ConstOp, SplatOp, BroadcastOp, ExpandOp, TransOp, ForOp, ProgramIdOp, ViewOp)


def is_free(op: Operation) -> bool:
    """Does the op take no instruction of its own?"""
    return isinstance(op, FREE) or (isinstance(op, ReduceOp) and op.is_squeeze)


DEPTH_LIMIT = 48
"""Longest chain of inlined ops: the lowering recurses along it."""

WORTH_KEEPING = 4
"""From this weight on a value is not computed twice."""

DOT_PRODUCT_ROWS = 32
"""Most rows of the left operand, those of other programs too, for which the dot-product form beats transposing the
right one (measured: 1.1 to 2.2 times as fast at 16 and 32 rows of 256 to 1024; 0.65 for 256 rows in programs of 32)."""

LANE_ROWS = 64
"""Most rows of the left operand that are lanes where the right one runs along K: it is then read in place, one number
for each multiplication of a vector (measured: 1.3 times as fast as sums across lanes at 16 rows). Not where the right
one serves so many rows that turning it round once is nothing."""

L1_WAY, L1_WAYS = 1 << 12, 8
"""Bytes after which lines fall together in the L1 cache, and how many of them it holds."""

PACK_BYTES = 1 << 16
PACK_ROWS = ((1 << 13, 32), (1 << 11, 64), (0, 128))
"""A right operand that is contiguous along N and no smaller than PACK_BYTES is packed into panels where so many rows of
the left one, those of other programs too, share it. The farther apart its own rows are in bytes, the fewer: they fall
together in the caches. (Measured, 256 deep, of the caller's memory, in which vectors cross lines: 1.5 times as fast for
32 rows of 8 KB, 1.1 to 1.2 for 64 of 2 KB, 1.1 for 128 of 512 bytes; 0.7 for 16 rows of 4 KB.)"""


@dataclass
class Plan:
    """`plan.of(value)` for every value of a kernel."""

    kernel: KernelOp
    target: Target
    storage: dict[SSAValue, Storage] = field(default_factory=dict[SSAValue, Storage])
    _weights: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    _depths: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    _order: dict[Operation, int] = field(default_factory=dict[Operation, int])

    @cached_property
    def _writes(self) -> Mapping[SSAValue, Sequence[AccessOp]]:
        return writes_of(self.kernel)

    @cached_property
    def _joint(self) -> Mapping[Operation, Joint]:
        return joint_stores(self.kernel, HEAVY)

    @cached_property
    def _in_one_loop(self) -> AbstractSet[SSAValue]:
        return in_one_loop(self.kernel, self._joint)

    def written_with(self, store: WriteOp | IndexedWriteOp) -> Sequence[WriteOp | IndexedWriteOp]:
        """The stores of the loop that writes a store, itself among them."""
        return self._joint.get(store, (store,))

    @cached_property
    def _has_products(self) -> bool:
        return any(isinstance(op, DotOp) for op in self._order)

    @cached_property
    def _axes(self) -> Mapping[Operation, frozenset[int]]:
        return program_axes(self.kernel)

    def __post_init__(self) -> None:
        for number, op in enumerate(self.kernel.walk()):
            self._order[op] = number
        for op in self.kernel.walk():
            self._decide(op)

    def of(self, value: SSAValue) -> Storage:
        """Where a value is."""
        return self.storage.get(value, Storage.INLINE)

    def is_inline(self, value: SSAValue) -> bool:
        """Is it computed where it is used?"""
        return self.of(value) is Storage.INLINE

    # -- decisions

    def _decide(self, op: Operation) -> None:
        if isinstance(op, DotOp):
            self._plan_dot(op)
        if isinstance(op, StoreOp):
            self._plan_store(op)
        for value in op.results:
            if not is_free(op) and (shape_of(value) or isinstance(op, ReduceOp)) and value.first_use:
                self._decide_value(op, value)
            self._depths[value] = self._depth(op) if self.is_inline(value) else 0

    def _decide_value(self, op: Operation, value: SSAValue) -> None:
        if value in self.storage:
            return
        keep = False
        if isinstance(op, (ReduceOp, ScanOp)):
            keep = True
        elif isinstance(op, DotOp):
            keep = not self._reaches_sink(value)
            if keep and self.of(op.lhs) is Storage.ROWS:
                self.storage[value] = Storage.COLUMNS
                return
        elif isinstance(op, (LoadOp, GatherOp)):
            keep = self._may_be_overwritten(op)
        else:
            weight = self.weight(value)
            uses = list(value.uses)
            repeated = any(self._broadcasts(use) for use in uses) or (len(uses) > 1 and not self._has_one_loop(value))
            deeper = any(use.operation.parent is not op.parent for use in uses)
            keep = (weight >= WORTH_KEEPING and repeated) or (deeper and weight > 1) or self._depth(op) > DEPTH_LIMIT
        if keep:
            self.storage[value] = Storage.SCRATCH

    def _has_one_loop(self, value: SSAValue) -> bool:
        """Do all uses lead point by point to stores of one loop? What holds a product is kept all the same: its
        accumulators flow on to where it is (`_reaches_sink`)."""
        return value in self._in_one_loop and not self._holds_product(value)

    def _holds_product(self, value: SSAValue) -> bool:
        """Are accumulators of a product in what is computed where it is used?"""
        if not self._has_products:
            return False
        pending, seen = [value], set[SSAValue]()
        while pending:
            value = pending.pop()
            op = maker_of(value)
            if isinstance(op, DotOp):
                return True
            seen.add(value)
            if op is not None and (isinstance(op, ew.ElementwiseOp) or is_free(op)):
                pending += [x for x in op.operands if x not in seen and self.is_inline(x)]
        return False

    def _depth(self, op: Operation) -> int:
        return 1 + max((self._depths.get(operand, 0) for operand in op.operands), default=0)

    def _broadcasts(self, use: Use) -> bool:
        """Does the use stretch the value along another axis?"""
        user, value = use.operation, use.operation.operands[use.index]
        if isinstance(user, ExpandOp):
            return not all(isinstance(other.operation, WriteOp) for other in user.result.uses)
        if isinstance(user, BroadcastOp):
            return True
        return isinstance(user, ew.ElementwiseOp) and shape_of(user.result) != shape_of(value)

    def _reaches_sink(self, value: SSAValue) -> bool:
        """Does the one chain of uses lead pointwise, through and beside nothing heavy, to where it is written?"""
        uses = list(value.uses)
        if len(uses) != 1:
            return False
        user = uses[0].operation
        if isinstance(user, (WriteOp, YieldOp)):
            return isinstance(value.owner, Operation) and user.parent is value.owner.parent
        if isinstance(user, ExpandOp) or (isinstance(user, ReduceOp) and user.is_squeeze):
            return self._reaches_sink(user.result)
        if isinstance(user, ReduceOp):
            return True
        if isinstance(user, DotOp):
            return user.accumulator is value and self._reaches_sink(user.result)
        if not isinstance(user, ew.ElementwiseOp) or isinstance(user, HEAVY):
            return False
        if shape_of(user.result) != shape_of(value) or any(self._is_heavy(x) for x in user.operands if x is not value):
            return False
        return len(list(user.result.uses)) > 1 or self._reaches_sink(user.result)

    def _is_heavy(self, value: SSAValue) -> bool:
        """Is anything heavy computed where it is used?"""
        pending, seen = [value], set[SSAValue]()
        while pending:
            value = pending.pop()
            op = maker_of(value)
            if value in seen or op is None or isinstance(op, ForOp) or not self.is_inline(value):
                continue
            if isinstance(op, HEAVY):
                return True
            seen.add(value)
            pending += op.operands if isinstance(op, ew.ElementwiseOp) or is_free(op) else ()
        return False

    def _plan_dot(self, op: DotOp) -> None:
        """
        The right operand, if it runs along K, is read by the dot-product form when few rows share it (the sums
        across lanes cost about 45 / K of the multiplications), else copied with K and N swapped in registers. If it
        runs along N it is read in place, or packed where enough rows share it. Anything computed is computed once. The
        left operand is read one scalar at a time, so what is not a plain load is kept.
        """
        lanes = self.target.lanes
        rows, depth = shape_of(op.lhs)
        columns = shape_of(op.rhs)[1]
        along_columns, along_depth = self.runs_along(op.rhs, 1), self.runs_along(op.rhs, 0)
        dot_product = along_depth and not along_columns and self.runs_along(op.lhs, 1) and depth >= lanes
        dot_product = dot_product and rows * max(1, self._programs(op.rhs)) <= min(DOT_PRODUCT_ROWS, depth // 4)
        if self._has_lane_rows(op):
            self.storage[op.lhs] = Storage.ROWS
            return
        if rows < 16 and along_columns:
            if self.weight(op.rhs) > 3:
                self._keep(op.rhs, Storage.COLUMNS)
        elif dot_product:
            if self.weight(op.rhs) > 3:
                self._keep(op.rhs, Storage.SCRATCH)
        elif self.runs_along(op.lhs, 0) and not self.runs_along(op.lhs, 1) and not along_columns:
            pass
        elif not (along_columns and self.is_plain(op.rhs) and not self._is_worth_packing(op)):
            self._keep(op.rhs, Storage.COLUMNS)
        if not self.is_plain(op.lhs) and columns > lanes and not (dot_product and self.weight(op.lhs) <= 2):
            self._keep(op.lhs, Storage.SCRATCH)

    def _has_lane_rows(self, op: DotOp) -> bool:
        """Are the rows of the left operand lanes? They are where all that it is used for are dots that gain by it."""
        if isinstance(op.lhs.owner, (ForOp, Block)) or not self._gains_by_lane_rows(op):
            return False
        uses = [use.operation for use in op.lhs.uses]
        return all(
            isinstance(user, DotOp) and op.lhs not in (user.rhs, user.accumulator) and self._gains_by_lane_rows(user)
            for user in uses
        )

    def _gains_by_lane_rows(self, op: DotOp) -> bool:
        """Do the rows of the left operand fill vectors, and is the right one loaded along K, from rows that the caches
        hold together, with columns enough that it is worth to turn the left one round?"""
        lanes, (rows, _), columns = self.target.lanes, shape_of(op.lhs), shape_of(op.rhs)[1]
        padded = -(-rows // lanes) * lanes
        if not lanes <= rows <= LANE_ROWS or 3 * padded > 4 * rows or columns < 2 * lanes:
            return False
        if self.runs_along(op.rhs, 1) or not (self.runs_along(op.rhs, 0) and self.is_plain(op.rhs)):
            return False
        return not self._collides(op.rhs) and not self._serves_many_rows(op)

    def _serves_many_rows(self, op: DotOp) -> bool:
        """Is the right operand the same for so many rows, those of other programs and iterations too, that to turn it
        round once is less work than to turn the left one, for the columns of all programs, and the result?"""
        maker = op.rhs.owner
        if not isinstance(maker, Operation) or op.parent is not maker.parent:
            return True
        (rows, depth), columns = shape_of(op.lhs), shape_of(op.rhs)[1]
        rows, columns = rows * self._programs(op.rhs), columns * max(1, self._programs(op.lhs))
        return not rows or rows * (depth + columns) >= depth * columns

    def _programs(self, value: SSAValue) -> int:
        """How many programs share a value; 0 where only a call knows. Loops over programs whose number only a call
        knows have the order of the axes (`loop_order`)."""
        grid, maker = self.kernel.grid.data, value.owner
        on = self._axes.get(maker) if isinstance(maker, Operation) else None
        if on is None:
            return 1
        first = min(on, default=len(grid)) if DYNAMIC in grid else len(grid)
        shared = [grid[axis] for axis in range(first) if axis not in on]
        return 0 if DYNAMIC in shared else prod(shared)

    def _collides(self, value: SSAValue) -> bool:
        """Are the rows of a load such that one vector of them has more lines in the same place of the L1 cache than it
        holds beside others?"""
        pitch = self._pitch(value) * bit_width(element_of(value)) // 8
        return self.target.lanes * gcd(pitch, L1_WAY) > L1_WAY * L1_WAYS // 2

    def _plan_store(self, op: StoreOp) -> None:
        """A tile that runs along axis 0 where the store runs along axis 1 is transposed in registers on its way."""
        shape = shape_of(op.value)
        if len(shape) < 2 or min(shape) < self.target.lanes or op.view_type.strides.data[op.tile_axes[1]] != 1:
            return
        if self.runs_along(op.value, 0) and not self.runs_along(op.value, 1):
            self._keep(op.value, Storage.COLUMNS)

    def _keep(self, value: SSAValue, storage: Storage) -> None:
        if not isinstance(value.owner, (ForOp, Block)) and value not in self.storage:
            self.storage[value] = storage

    def _is_worth_packing(self, op: DotOp) -> bool:
        """Is it worth packing a right operand that already runs along N?"""
        pitch = self._pitch(op.rhs) * bit_width(element_of(op.rhs)) // 8
        rows = shape_of(op.lhs)[0] * max(1, self._programs(op.rhs))
        least = next(least for far, least in PACK_ROWS if pitch >= far)
        return shape_of(op.rhs)[0] * pitch >= PACK_BYTES and rows >= least

    def _pitch(self, value: SSAValue) -> int:
        """Elements between the rows of a load, whichever axis they are; 0 of what is not loaded."""
        op = value.owner
        if isinstance(op, (TransOp, ExpandOp)):
            return self._pitch(op.value)
        if not isinstance(op, LoadOp):
            return 0
        strides = [op.view_type.strides.data[axis] for axis in op.tile_axes]
        return max((1 << 30 if stride == DYNAMIC else abs(stride) for stride in strides), default=0)

    # -- properties of values

    def weight(self, value: SSAValue) -> int:
        """Instructions per element, if the value were inlined."""
        known = self._weights.get(value)
        if known is not None:
            return known
        op = maker_of(value)
        if op is None or (isinstance(op, FREE) and not op.operands) or not self.is_inline(value):
            weight = 0
        elif isinstance(op, (LoadOp, GatherOp, DotOp, ReduceOp, ScanOp)) and not is_free(op):
            weight = WEIGHTS[type(op)]
        elif isinstance(op, (ForOp, ConstOp, SplatOp, IotaOp, ProgramIdOp)):
            weight = 0
        else:
            own = 0 if is_free(op) else WEIGHTS.get(type(op), 1)
            weight = own + sum(
                self.weight(operand) for operand in op.operands if not isinstance(operand.type, ViewType)
            )
        self._weights[value] = weight
        return weight

    def runs_along(self, value: SSAValue, axis: int, computed: bool = False) -> bool:
        """
        Does reading it with the lanes on `axis` read memory of stride 1 only? With `computed`, reading what it is
        computed from, even if it is kept in scratch.
        """
        op = maker_of(value)
        if self.of(value) is Storage.ROWS and not computed:
            return axis == 0
        if isinstance(op, ForOp):
            return axis == len(shape_of(value)) - 1  # as what loops carry mostly lies
        if op is None or isinstance(op, (SplatOp, ConstOp)) or not (computed or self.is_inline(value)):
            return True
        if isinstance(op, (LoadOp, GatherOp)):
            return is_contiguous(op, axis)
        if isinstance(op, TransOp):
            return self.runs_along(op.value, 1 - axis)
        if isinstance(op, ExpandOp):
            return axis == op.axis_number or self.runs_along(op.value, 0)
        if isinstance(op, ReduceOp):
            return self.runs_along(op.value, 1 - op.axis_number)
        return all(
            self.runs_along(operand, axis)
            for operand in op.operands
            if len(shape_of(operand)) > axis and not isinstance(operand.type, ViewType) and shape_of(operand)[axis] > 1
        )

    def is_plain(self, value: SSAValue) -> bool:
        """Is it a load of elements that need no conversion, perhaps transposed, or in memory already?"""
        op = value.owner
        if isinstance(op, (Block, ForOp, SplatOp, ConstOp)) or not self.is_inline(value):
            return True
        if isinstance(op, (TransOp, ExpandOp)):
            return self.is_plain(op.value)
        return isinstance(op, LoadOp) and bit_width(element_of(value)) >= 32

    # -- memory order

    def _may_be_overwritten(self, load: LoadOp | GatherOp) -> bool:
        """
        May the memory be written between the load and the last sink that could still read it? A store of the very
        block that was loaded, computed pointwise from it, may be the last sink, and what is stored in the same loop:
        it reads a point before it writes it.
        Writes outside the load's block come before it or after all its uses.
        """
        writes = self._writes.get(load.view_op.pointer)
        if not writes:
            return False
        start = self._order[load]
        positions = [(self._position(write, load.parent), write) for write in writes]
        following = [(position, write) for position, write in positions if position is not None and position > start]
        if not following:
            return False
        sinks = self._sinks(load.result, load.parent)
        if sinks is None:
            return True
        for until, sink in sinks:
            together = self._joint.get(sink, (sink,))
            for position, write in following:
                if write in together and not self._is_in_place(write, sink, load):
                    return True
                if write not in together and position <= until:
                    return True
        return False

    def _position(self, op: Operation, block: Block | None) -> int | None:
        """The number of the op of `block` that is or contains `op`, None if it is elsewhere."""
        current: Operation | None = op
        while current is not None and current.parent is not block:
            current = current.parent_op()
        return None if current is None else self._order[current]

    def _sinks(self, value: SSAValue, block: Block | None) -> list[tuple[int, Operation]] | None:
        """The ops where the value is computed at the latest, with their numbers; None if that is not known."""
        sinks: list[tuple[int, Operation]] = []
        seen: set[SSAValue] = set()
        pending = [value]
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            for use in value.uses:
                position = self._position(use.operation, block)
                if position is None:
                    return None
                if (
                    isinstance(use.operation, (WriteOp, IndexedWriteOp, YieldOp, ForOp))
                    or use.operation.parent is not block
                ):
                    sinks.append((position, use.operation))
                pending += use.operation.results
        return sinks

    def _is_in_place(self, write: Operation, sink: Operation, load: LoadOp | GatherOp) -> bool:
        """Is a write that of the loaded block, and what is stored in the same loop computed pointwise from it?"""
        if not (isinstance(write, StoreOp) and isinstance(sink, StoreOp) and isinstance(load, LoadOp)):
            return False
        there, here = write.view_op, load.view_op
        same = there.result.type == here.result.type and tuple(there.operands[1:]) == tuple(here.operands[1:])
        same = same and tuple(write.indices) == tuple(load.indices) and write.block == load.block
        return same and reads(self, sink.value, load.result) == Reads.POINTWISE


class Reads(Enum):
    """How an inlined expression reads a value."""

    NOT = 0
    POINTWISE = 1
    ANYWHERE = 2


def reads(plan: Plan, expression: SSAValue, value: SSAValue) -> Reads:
    """How computing `expression` now reads `value`: not at all, only at the point that is computed, or elsewhere."""
    memo: dict[SSAValue, Reads] = {}

    def visit(current: SSAValue) -> Reads:
        if current is value:
            return Reads.POINTWISE
        if current in memo:
            return memo[current]
        op = maker_of(current)
        result = Reads.NOT
        if (
            op is not None
            and not isinstance(op, (ForOp, LoadOp))
            and (plan.is_inline(current) or current is expression)
        ):
            for operand in op.operands:
                found = visit(operand)
                if found is Reads.POINTWISE and not _is_pointwise(op, operand):
                    found = Reads.ANYWHERE
                result = max(result, found, key=lambda r: r.value)
        memo[current] = result
        return result

    return visit(expression)


def _is_pointwise(op: Operation, operand: SSAValue) -> bool:
    """Does the op read the operand only at the point that it computes?"""
    if isinstance(op, DotOp):
        return operand is op.accumulator and operand is not op.lhs and operand is not op.rhs
    if isinstance(op, (ReduceOp, ScanOp, TransOp, ExpandOp, BroadcastOp, GatherOp, SplatOp)):
        return False
    return shape_of(operand) == shape_of(op.results[0])
