"""What nobody uses: ops, tiles that loops carry, stores, and the buffers that only such stores wrote."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator
from xdsl.transforms.dead_code_elimination import is_trivially_dead, would_be_trivially_dead

from tempo_ir.dialects import loop
from tempo_ir.dialects.sdg.attributes import IndexAttr
from tempo_ir.dialects.tile import memory, structure
from tempo_ir.lowering.tiles.launches import launches_of


def remove_dead_code(kernel: structure.KernelOp) -> None:
    """Remove what has no effect, and what loops carry for itself alone."""
    changed = True
    while changed:
        changed = _sweep(kernel.body.block)
        for op in [op for op in kernel.walk() if isinstance(op, structure.ForOp)]:
            changed |= _narrow(op)


def _sweep(block: Block) -> bool:
    """Remove dead ops of a block, from its end."""
    changed = False
    for op in reversed(list(block.ops)):
        if is_trivially_dead(op):
            op.detach()
            op.erase()
            changed = True
            continue
        for region in op.regions:
            changed |= _sweep(region.block)
    return changed


def _narrow(op: structure.ForOp) -> bool:
    """Carry no tile that only makes itself anew."""
    arguments, yielded, live = op.body.block.args[1:], op.yielded, set[SSAValue]()
    work = [value for value, result in zip(yielded, op.carried, strict=True) if result.first_use is not None]
    for inner in op.body.block.ops:
        if inner.regions or not (would_be_trivially_dead(inner) or inner.has_trait(IsTerminator)):
            work += [operand for each in inner.walk() for operand in each.operands]
    following: dict[SSAValue, SSAValue] = dict(zip(arguments, yielded, strict=True))
    while work:
        value = work.pop()
        if value in live:
            continue
        live.add(value)
        if value in following:
            work.append(following[value])
        elif isinstance(value.owner, Operation) and value.owner.parent_op() is op:
            work += value.owner.operands
    kept = [number for number, argument in enumerate(arguments) if argument in live or op.carried[number].first_use]
    if len(kept) == len(arguments):
        return False
    _keep(op, kept)
    return True


def _keep(op: structure.ForOp, kept: Sequence[int]) -> None:
    """Replace a loop by one that carries only tiles of some numbers."""
    block, yielded = op.body.block, op.yielded
    for number, argument in reversed(list(enumerate(block.args[1:]))):
        if number not in kept:
            argument.replace_all_uses_with(op.init[number])  # by ops that go as well
            block.erase_arg(argument)
    last = block.last_op
    assert last is not None
    last.operands = [yielded[number] for number in kept]
    body = op.body
    op.detach_region(body)
    new = structure.ForOp(op.low, op.high, op.step_size, [op.init[number] for number in kept], body)
    new.attributes |= op.attributes
    new.location = op.location
    parent = op.parent
    assert parent is not None
    parent.insert_op_before(new, op)
    for number, result in zip(kept, new.carried, strict=True):
        result.name_hint = op.carried[number].name_hint
        op.carried[number].replace_all_uses_with(result)
    op.detach()
    op.erase()


# Buffers


def remove_dead_buffers(module: ModuleOp) -> int:
    """Remove stores that nobody reads to buffers of the program, and such buffers; gives how many buffers went."""
    removed, launches = 0, launches_of(module)
    for kernel in [op for op in module.ops if isinstance(op, structure.KernelOp)]:
        own = launches[kernel.sym_name.data]
        if not own:
            continue
        pointers = len(own[0].buffers)
        for number in reversed(range(pointers)):
            _remove_stores(kernel, own, number)
        for number in reversed(range(len(kernel.body.block.args) - pointers)):
            _remove_scalar(kernel, own, number)
        for number in reversed(range(pointers)):
            removed += _remove_argument(kernel, own, number)
    return removed


def remove_idle_kernels(module: ModuleOp) -> int:
    """Remove kernels that write nothing, their launches, and the branches and loops that hold nothing else; gives how
    many kernels went."""
    removed, launches = 0, launches_of(module)
    for kernel in [op for op in module.ops if isinstance(op, structure.KernelOp)]:
        if any(isinstance(op, memory.WriteOp | memory.IndexedWriteOp) for op in kernel.walk()):
            continue
        for launch in launches[kernel.sym_name.data]:
            _remove_with_empty(launch)
        kernel.detach()
        kernel.erase()
        removed += 1
    return removed


def _remove_with_empty(op: Operation) -> None:
    """Remove an op, and what is round it if that then holds nothing."""
    around = op.parent_op()
    op.detach()
    op.erase()
    empty = around is not None and not any(
        True for region in around.regions for block in region.blocks for _ in block.ops
    )
    if empty and (isinstance(around, loop.IfOp) or (isinstance(around, loop.ForOp) and around.until is None)):
        _remove_with_empty(around)


def _remove_scalar(kernel: structure.KernelOp, own: Sequence[loop.LaunchOp], number: int) -> None:
    """Remove a scalar that a kernel does not use."""
    argument = kernel.body.block.args[len(own[0].buffers) + number]
    if argument.first_use is not None:
        return
    kernel.body.block.erase_arg(argument)
    for launch in own:
        launch.scalars_attr = IndexAttr((*launch.scalars[:number], *launch.scalars[number + 1 :]))


def _remove_stores(kernel: structure.KernelOp, own: Sequence[loop.LaunchOp], number: int) -> None:
    """Remove what a kernel stores through a pointer, if neither it nor anybody after a launch reads it."""
    argument = kernel.body.block.args[number]
    accesses = [op for op in kernel.walk() if isinstance(op, memory.AccessOp) and op.view_op.pointer is argument]
    stores = [op for op in accesses if isinstance(op, memory.StoreOp)]
    loads = [op for op in accesses if not isinstance(op, memory.StoreOp)]
    if not stores or not all(isinstance(op, memory.LoadOp | memory.GatherOp) for op in loads):
        return
    if any(_may_follow(load, store, kernel.body.block) for load in loads for store in stores):
        return
    if all(_is_unread(launch.buffers[number], launch, loads=bool(loads)) for launch in own):
        for op in stores:
            op.detach()
            op.erase()
        remove_dead_code(kernel)


def _remove_argument(kernel: structure.KernelOp, own: Sequence[loop.LaunchOp], number: int) -> int:
    """Remove a pointer that a kernel does not use; gives how many buffers nobody uses then."""
    argument = kernel.body.block.args[number]
    if argument.first_use is not None:
        return 0
    buffers = [launch.buffers[number] for launch in own]
    kernel.body.block.erase_arg(argument)
    for launch in own:
        launch.remove_buffer(number)
    return sum(_remove_buffer(buffer) for buffer in dict.fromkeys(buffers))


def _remove_buffer(buffer: SSAValue) -> bool:
    """Remove a buffer that is only freed."""
    users = [use.operation for use in buffer.uses]
    if not isinstance(buffer.owner, loop.AllocOp) or not all(isinstance(op, loop.FreeOp) for op in users):
        return False
    for op in (*users, buffer.owner):
        op.detach()
        op.erase()
    return True


def _is_unread(buffer: SSAValue, launch: loop.LaunchOp, *, loads: bool) -> bool:
    """Whether nobody reads a buffer of the program after a launch, which may itself load of it first, and follow
    itself."""
    alloc = buffer.owner
    if not isinstance(alloc, loop.AllocOp) or alloc.parent is None:
        return False
    for use in buffer.uses:
        other = use.operation
        if isinstance(other, loop.FreeOp) or (
            other is launch and not loads and list(launch.buffers).count(buffer) == 1
        ):
            continue
        if _may_follow(other, launch, alloc.parent):
            return False
    return True


def _may_follow(other: Operation, first: Operation, scope: Block) -> bool:
    """Whether an op may run after another one, in one run of a block round both; a loop round the other one reads its
    condition after it."""
    if other is not first and other.is_ancestor(first):
        return True
    block, place = first.parent, first
    while block is not None:
        around = block.find_ancestor_op_in_block(other)
        if around is not None:
            return _is_repeated(block, scope) or (around is not place and not around.is_before_in_block(place))
        parent = block.parent_op()
        if block is scope or parent is None:
            return True
        place, block = parent, parent.parent
    return True


def _is_repeated(block: Block, scope: Block) -> bool:
    """Whether a block may run several times in one run of a block round it."""
    inner: Block | None = block
    while inner is not None and inner is not scope:
        parent = inner.parent_op()
        if parent is None or isinstance(parent, loop.ForOp | structure.ForOp):
            return True
        inner = parent.parent
    return False
