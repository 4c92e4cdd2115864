"""
Stores that one loop writes: those that stand together, of tiles of one shape that have something computed in common.

    %m1 = tile.add %a, %b                        for each block of registers:
    %w1 = tile.sub %w, %m1                   ->      m1 = a + b; w1 = w - m1
    tile.store %m1, %m[%i] block [512]               write m1, write w1
    tile.store %w1, %v[%i] block [512]

What they have in common stays in registers. A loop for each of them would keep it in scratch, and also what they read
where one of them overwrites it (measured: a step of Adam in 0.7 of the time). Stores stay apart where a product may
flow on to one of them in registers, since its accumulators fill these, and where two write to the same memory, since
their order would be another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue, Use

from tempo_ir.dialects.operation import ops_of
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import shape_of
from tempo_ir.dialects.tile.memory import StoreOp, ViewOp
from tempo_ir.dialects.tile.shape import BroadcastOp, ConstOp, DotOp, ExpandOp, SplatOp, TransOp
from tempo_ir.dialects.tile.structure import KernelOp

Joint: TypeAlias = tuple[StoreOp, ...]

BETWEEN = (ViewOp, ConstOp)
"""What may stand between them: it computes nothing, and reads nothing."""

SPREADS = (ExpandOp, BroadcastOp, SplatOp, TransOp)


def joint_stores(kernel: KernelOp, heavy: tuple[type[Operation], ...]) -> Mapping[Operation, Joint]:
    """The stores of a kernel that are written together, by each of them; products never flow on through `heavy` ops."""
    blocks = [kernel.body.block, *(block for op in kernel.walk() for region in op.regions for block in region.blocks)]
    runs = [run for block in dict.fromkeys(blocks) for run in _runs(ops_of(block))]
    return {store: joint for run in runs for joint in _joined(run, heavy) for store in joint}


def in_one_loop(kernel: KernelOp, joint: Mapping[Operation, Joint]) -> AbstractSet[SSAValue]:
    """The values of which all uses lead point by point to stores that one loop writes."""
    loops: dict[SSAValue, Operation | None] = {}

    def loop_of(use: Use, value: SSAValue) -> Operation | None:
        user = use.operation
        if user.parent is not value.owner.parent:
            return None
        if isinstance(user, StoreOp):
            return joint.get(user, (user,))[0]
        pointwise = isinstance(user, ew.ElementwiseOp) and shape_of(user.result) == shape_of(value)
        return loops[user.results[0]] if pointwise else None

    for op in reversed(list(kernel.walk())):
        for value in op.results:
            found = {loop_of(use, value) for use in value.uses}
            loops[value] = found.pop() if len(found) == 1 else None
    return {value for value, loop in loops.items() if loop is not None}


def _runs(ops: Iterable[Operation]) -> Iterator[list[StoreOp]]:
    """Stores of tiles with nothing between them."""
    run: list[StoreOp] = []
    for op in ops:
        if isinstance(op, StoreOp) and shape_of(op.value):
            run.append(op)
        elif not isinstance(op, BETWEEN):
            yield run
            run = []
    yield run


def _joined(run: Sequence[StoreOp], heavy: tuple[type[Operation], ...]) -> Iterator[Joint]:
    """The parts of a run, of several stores each, that are written together."""
    joint: list[StoreOp] = []
    known: set[SSAValue] = set()
    for store in run if len(run) > 1 else ():
        parts, alone = _computed_from(store.value), _may_hold_product(store.value, heavy)
        if joint and (alone or known.isdisjoint(parts) or not _goes_with(store, joint)):
            yield from [tuple(joint)] if len(joint) > 1 else []
            joint, known = [], set()
        if not alone:
            joint.append(store)
            known |= parts
    yield from [tuple(joint)] if len(joint) > 1 else []


def _goes_with(store: StoreOp, joint: Sequence[StoreOp]) -> bool:
    """Has it the shape of the others, do they lie alike in memory, and do they write to other memory?"""
    alike = shape_of(store.value) == shape_of(joint[0].value) and _contiguous(store) == _contiguous(joint[0])
    return alike and all(store.view_op.pointer is not other.view_op.pointer for other in joint)


def _contiguous(store: StoreOp) -> list[bool]:
    """Along which axes of the tile the memory runs."""
    return [store.view_type.strides.data[axis] == 1 for axis in store.tile_axes]


def _computed_from(value: SSAValue) -> set[SSAValue]:
    """The tiles that a tile is computed from, element by element, itself among them."""
    found: set[SSAValue] = set()
    pending = [value]
    while pending:
        value = pending.pop()
        op = value.owner
        if value in found or not shape_of(value) or isinstance(op, ConstOp):
            continue
        if not isinstance(op, SPREADS):
            found.add(value)
        if isinstance(op, (ew.ElementwiseOp, *SPREADS)):
            pending += op.operands
    return found


def _may_hold_product(value: SSAValue, heavy: tuple[type[Operation], ...]) -> bool:
    """May the accumulators of a product flow on to where it is written?"""
    pending, seen = [value], set[SSAValue]()
    while pending:
        value = pending.pop()
        op = value.owner
        if isinstance(op, DotOp):
            return True
        if value not in seen and isinstance(op, (ew.ElementwiseOp, *SPREADS)) and not isinstance(op, heavy):
            pending += op.operands
        seen.add(value)
    return False
