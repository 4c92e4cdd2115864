"""Loads that do not vary in a loop, before it."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from tempo_ir.dialects.tile import memory, structure
from tempo_ir.dialects.tile.attributes import shape_of
from tempo_ir.lowering.tiles.indices import Indices, can_precede
from tempo_ir.lowering.tiles.known import is_for_memory
from tempo_ir.lowering.tiles.places import Places
from tempo_ir.lowering.tiles.rewriting import Prelude


def hoist_loads(kernel: structure.KernelOp, limit: int) -> int:
    """Load before a loop what each iteration loads of memory that the loop does not write, as long as the tiles are
    not more elements than `limit` for a loop; gives how many loads moved."""
    indices = Indices(kernel)
    places, moved = Places(indices), 0
    for loop in reversed([op for op in kernel.walk() if isinstance(op, structure.ForOp)]):
        moved += _hoist(loop, limit, indices, places)
    return moved


def _hoist(loop: structure.ForOp, limit: int, indices: Indices, places: Places) -> int:
    if not (indices.trips(loop) or is_for_memory(loop)):
        return 0
    written = {op.view_op.pointer for op in loop.body.walk() if isinstance(op, memory.WriteOp | memory.IndexedWriteOp)}
    prelude, moved = Prelude(loop, indices), 0
    for load in [op for op in loop.body.block.ops if isinstance(op, memory.LoadOp)]:
        elements = math.prod(shape_of(load.result))
        if elements > limit or load.view_op.pointer in written or not _is_fixed(load, loop, indices, places):
            continue
        limit, moved = limit - elements, moved + 1
        load.result.replace_all_uses_with(prelude.copy_load(load).result)
        load.detach()
        load.erase()
    prelude.enclose()
    return moved


def _is_fixed(load: memory.LoadOp, loop: structure.ForOp, indices: Indices, places: Places) -> bool:
    """Whether a load is the same in all iterations."""
    if any(indices.varies_in(each, loop) for each in places.of(load).expressions):
        return False
    values: tuple[SSAValue, ...] = (load.view, *load.indices)
    return all(can_precede(value, loop) for value in values)
