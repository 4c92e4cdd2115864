"""Branches that need not be: loads of one that the program makes anyway, and first iterations that do nothing."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation
from xdsl.traits import Pure

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import memory, shape, structure
from tempo_ir.dialects.tile.attributes import INDEX
from tempo_ir.dialects.tile.builder import number_attribute
from tempo_ir.index import compare, conj, negate
from tempo_ir.lowering.tiles.indices import is_within
from tempo_ir.lowering.tiles.known import Walk
from tempo_ir.lowering.tiles.places import Places
from tempo_ir.lowering.tiles.rewriting import insert_before, leave


def raise_loads(kernel: structure.KernelOp, walk: Walk) -> int:
    """Load before a branch what it loads if the block round it loads it behind the branch, and nothing writes there
    meanwhile; gives how many loads moved.

    Before: `if c { x = load p ... }; y = load p`, after: `x = load p; if c { ... }; y = load p`, of which the second
    load is known then.
    """
    moved = 0
    for branch in [op for op in kernel.walk() if isinstance(op, structure.IfOp)]:
        for region in branch.regions:
            for load in [op for op in region.block.ops if isinstance(op, memory.LoadOp)]:
                if _is_loaded_anyway(load, branch, walk) and _can_leave(load, region.block):
                    for operand in load.operands:
                        leave(operand, branch)
                    leave(load.result, branch)
                    moved += 1
    return moved


def _is_loaded_anyway(load: memory.LoadOp, branch: structure.IfOp, walk: Walk) -> bool:
    place = walk.places.of(load)
    if any(walk.may_change(write, place) for write in _writes(branch)):
        return False
    following = branch.next_op
    while following is not None:
        if isinstance(following, memory.LoadOp) and walk.places.of(following) == place:
            return following.other == load.other or not place.is_masked
        if any(walk.may_change(write, place) for write in _writes(following)):
            return False
        following = following.next_op
    return False


def _writes(op: Operation) -> Iterator[memory.AccessOp]:
    return (inner for inner in op.walk() if isinstance(inner, memory.WriteOp | memory.IndexedWriteOp))


def _can_leave(load: memory.LoadOp, block: Block) -> bool:
    """Whether what a load is addressed by can be computed before the branch."""
    work, seen = list(load.operands), set[Operation]()
    while work:
        value = work.pop()
        if not is_within(value, block):
            continue
        op = value.owner
        if isinstance(op, Block) or not op.has_trait(Pure):
            return False
        if op not in seen:
            seen.add(op)
            work += op.operands
    return True


def skip_first(kernel: structure.KernelOp, places: Places) -> int:
    """Begin loops one iteration later of which the first one alone does nothing; gives how many.

    Before: `for t = 0 to T { if t > 0 { ... } }`, after: `for t = 1 to T { ... }`.
    """
    loops = [op for op in kernel.walk() if isinstance(op, structure.ForOp) and not op.carried]
    return sum(_skip_first(loop, places) for loop in loops)


def _skip_first(loop: structure.ForOp, places: Places) -> bool:
    effects = [op for op in loop.body.block.ops if not op.has_trait(Pure)]
    indices = places.indices
    if len(effects) != 1 or not isinstance(branch := effects[0], structure.IfOp) or branch.otherwise is not None:
        return False
    condition = indices.condition(branch.condition)
    if condition is None:
        return False
    counter, low = indices.counter(loop), indices.of(loop.low)
    later = compare(">=", counter, low + loop.step_size)
    if indices.decide_at(condition, counter, low) is not False or not places.cannot_hold(
        conj(later, negate(condition))
    ):
        return False
    step = shape.ConstOp(number_attribute(loop.step_size, INDEX))
    begin = ew.AddOp(loop.low, step.result)
    for op in (step, begin):
        insert_before(op, loop)
    loop.operands = [begin.result, *loop.operands[1:]]
    block = branch.then.block
    for op in list(block.ops):
        op.detach()
        if not isinstance(op, structure.YieldOp):
            insert_before(op, branch)
    branch.detach()
    branch.erase()
    return True
