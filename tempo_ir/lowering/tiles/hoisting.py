"""Loads that do not vary in a loop, before it."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from tempo_ir.dialects.tile import memory, structure
from tempo_ir.dialects.tile.attributes import shape_of
from tempo_ir.lowering.tiles.indices import can_precede
from tempo_ir.lowering.tiles.known import is_for_memory
from tempo_ir.lowering.tiles.places import Places
from tempo_ir.lowering.tiles.rewriting import Prelude


def hoist_loads(kernel: structure.KernelOp, places: Places, limit: int) -> int:
    """Load before a loop what iterations load of memory that the loop does not write, as long as all that the kernel
    loads outside of the loop is not more elements than `limit`; gives how many loads moved."""
    loops = [op for op in kernel.walk() if isinstance(op, structure.ForOp)]
    return sum(_hoist(loop, places, limit) for loop in reversed(loops))


def _hoist(loop: structure.ForOp, places: Places, limit: int) -> int:
    written = {op.view_op.pointer for op in loop.body.walk() if isinstance(op, memory.WriteOp | memory.IndexedWriteOp)}
    runs = places.indices.trips(loop) or is_for_memory(loop)
    kernel = places.indices.kernel
    loads = [op for op in kernel.walk() if isinstance(op, memory.LoadOp) and not loop.is_ancestor(op)]
    limit -= sum(math.prod(shape_of(load.result)) for load in loads if not _is_carried(load))
    prelude, moved = Prelude(loop, places), 0
    for load in [op for op in loop.body.walk() if isinstance(op, memory.LoadOp)]:
        elements = math.prod(shape_of(load.result))
        if elements > limit or load.view_op.pointer in written or not _is_fixed(load, loop, places):
            continue
        always = runs and load.parent is loop.body.block
        if not always and not places.is_there(places.of(load)):
            continue
        limit, moved = limit - elements, moved + 1
        load.result.replace_all_uses_with(prelude.copy_load(load).result)
        load.detach()
        load.erase()
    prelude.enclose()
    return moved


def _is_carried(load: memory.LoadOp) -> bool:
    """Whether a load is but what loops begin with: another tile takes its registers."""
    return all(isinstance(use.operation, structure.ForOp) for use in load.result.uses)


def _is_fixed(load: memory.LoadOp, loop: structure.ForOp, places: Places) -> bool:
    """Whether a load is the same in all iterations."""
    if any(places.indices.varies_in(each, loop) for each in places.of(load).expressions):
        return False
    values: tuple[SSAValue, ...] = (load.view, *load.indices)
    return all(can_precede(value, loop) for value in values)
