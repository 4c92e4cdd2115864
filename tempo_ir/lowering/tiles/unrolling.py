"""Short loops inside of a loop, written out where values go through memory from one of them to another."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from tempo_ir.dialects.tile import memory, shape, structure
from tempo_ir.dialects.tile.attributes import INDEX, shape_of
from tempo_ir.dialects.tile.builder import number_attribute
from tempo_ir.index import Const
from tempo_ir.lowering.tiles.indices import Indices
from tempo_ir.lowering.tiles.rewriting import insert_before

MOST_TRIPS = 8
MOST_OPS = 400
"""That all loops of a kernel may be written out as."""


def unroll_short_loops(kernel: structure.KernelOp, limit: int) -> int:
    """
    Write out the blocks of columns that a step of a recurrence makes one after the other, so that what one loop stores
    and another one loads is known by name; gives how many loops went.

    Before: `for t { for k = 0 to 256 step 64 { store gates[k] }; ... load gates[64] ... }`, after: `for t { store
    gates[0]; store gates[64]; ...; ... load gates[64] ... }`. Only loops of a known number of trips, up to
    `MOST_TRIPS`, that touch what the loop round them both stores and loads; and only if they load `limit` elements at
    most in an iteration of that, since it may be that all of them are held at once then.
    """
    indices, room = Indices(kernel), MOST_OPS
    chosen: list[tuple[structure.ForOp, int]] = []
    for loop in [op for op in kernel.walk() if isinstance(op, structure.ForOp)]:
        around = loop.parent_op()
        while around is not None and not isinstance(around, structure.ForOp):
            around = around.parent_op()
        trips = _trips(loop, indices)
        size = prod((trips, sum(1 for _ in loop.body.walk())))
        if around is None or not 1 <= trips <= MOST_TRIPS or size > room or not _exchanges(loop, around):
            continue
        room -= size
        limit -= trips * sum(prod(shape_of(op.result)) for op in loop.body.walk() if isinstance(op, memory.LoadOp))
        chosen.append((loop, trips))
    if limit < 0:
        return 0
    for loop, trips in chosen:
        _unroll(loop, trips, indices)
    return len(chosen)


def _trips(loop: structure.ForOp, indices: Indices) -> int:
    """How many trips a loop makes, 0 if that is not known."""
    low, high = indices.of(loop.low), indices.of(loop.high)
    if not isinstance(low, Const) or not isinstance(high, Const) or any(op.regions for op in loop.body.block.ops):
        return 0
    return len(range(low.value, high.value, loop.step_size))


def _exchanges(loop: structure.ForOp, around: structure.ForOp) -> bool:
    """Whether a loop touches what an iteration of the loop round it both stores and loads."""
    accesses = [op for op in around.body.walk() if isinstance(op, memory.LoadOp | memory.StoreOp)]
    stored = {op.view_op.pointer for op in accesses if isinstance(op, memory.StoreOp)}
    both = {op.view_op.pointer for op in accesses if isinstance(op, memory.LoadOp)} & stored
    return any(op.view_op.pointer in both for op in accesses if loop.is_ancestor(op))


def _unroll(loop: structure.ForOp, trips: int, indices: Indices) -> None:
    low = indices.of(loop.low)
    assert isinstance(low, Const)
    counter, *arguments = loop.body.block.args
    carried: list[SSAValue] = list(loop.init)
    for trip in range(trips):
        number = shape.ConstOp(number_attribute(low.value + trip * loop.step_size, INDEX))
        insert_before(number, loop)
        values: dict[SSAValue, SSAValue] = {counter: number.result}
        values |= zip(arguments, carried, strict=True)
        for op in loop.body.block.ops:
            if not isinstance(op, structure.YieldOp):
                insert_before(op.clone(values), loop)
        carried = [values.get(value, value) for value in loop.yielded]
    for result, value in zip(loop.carried, carried, strict=True):
        result.replace_all_uses_with(value)
    loop.detach()
    loop.erase()
