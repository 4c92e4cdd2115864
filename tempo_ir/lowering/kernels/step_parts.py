"""What of the body of a loop makes one value in each step, apart from all else.

Before: a step makes `%a = x[t] * 2`, then attention with the queries `%a`, then `y[t] = x[t] + 1`. After: attention,
with the product in its kernel, is a leaf that neither reads what other leaves write nor writes what they touch, so that
it may run for all steps before any other leaf of the loop runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Region, SSAValue

from tempo_ir.dialects.loop import AllocOp, BodyOperation, BufferAccess, ForOp, KernelOp, YieldOp
from tempo_ir.lowering.formation.rules import Cost, cost_of


class Stays(Exception):
    """A step is left as it is; the message says why."""


def part_of(loop: ForOp, main: BodyOperation) -> KernelOp:
    """A leaf with the work of one leaf of a loop and of those that make what it reads of memory of the step alone; it
    stands nowhere. Raises Stays where others touch what it touches."""
    ops = list(loop.body.block.ops)
    leaves = [op for op in ops if isinstance(op, BodyOperation)]
    own: set[SSAValue] = {op.buffer for op in ops if isinstance(op, AllocOp)}
    if any(not isinstance(op, BodyOperation | AllocOp) for op in ops):
        raise Stays("they do more than compute")
    sources = _sources(leaves, main, own)
    others = [leaf for leaf in leaves if leaf is not main and leaf not in sources]
    _check_apart(main, sources, others, own)
    body, reads, known = Block(), list[BufferAccess](), dict[SSAValue, SSAValue]()
    for leaf in (*sources, main):
        _append(body, leaf, reads, known, own)
    body.add_op(YieldOp([known[value] for value in main.yielded]))
    kernel = KernelOp(reads, main.writes, Region(body), main.point)
    kernel.location = main.location
    return kernel


def _sources(leaves: Sequence[BodyOperation], main: BodyOperation, own: set[SSAValue]) -> list[BodyOperation]:
    """The leaves before one that make what it reads of the memory of a step, in their order. Raises Stays."""
    wanted = {access.buffer for access in main.reads} & own
    found: list[BodyOperation] = []
    for leaf in reversed(leaves[: leaves.index(main)]):
        written = {access.buffer for access in leaf.writes}
        if not written & wanted:
            continue
        if not written <= own or any(access.index for access in leaf.writes):
            raise Stays("what makes a part of it makes more")
        if any(cost_of(op) > Cost.HEAVY for op in leaf.body.ops if not isinstance(op, YieldOp)):
            raise Stays("what makes a part of it is much work")
        found.insert(0, leaf)
        wanted |= {access.buffer for access in leaf.reads} & own
    made = [access.buffer for leaf in found for access in leaf.writes]
    if len(set(made)) < len(made) or not wanted <= set(made):
        raise Stays("memory of a step is written twice, or by another step")
    return found


def _check_apart(
    main: BodyOperation, sources: Sequence[BodyOperation], others: Sequence[BodyOperation], own: set[SSAValue]
) -> None:
    """Raise Stays where other leaves write what is read, or touch what is written."""
    read = {access.buffer for leaf in (*sources, main) for access in leaf.reads} - own
    written = {access.buffer for access in main.writes}
    made = {access.buffer for leaf in sources for access in leaf.writes}
    for leaf in others:
        theirs = {access.buffer for access in leaf.writes}
        if theirs & (read | written | made) or {access.buffer for access in leaf.reads} & written:
            raise Stays("other kernels touch what it touches")


def _append(
    body: Block,
    leaf: BodyOperation,
    reads: list[BufferAccess],
    known: dict[SSAValue, SSAValue],
    own: set[SSAValue],
) -> None:
    """The ops of a leaf behind those of a body; `known` has the values of leaves and of memory of the step. Raises
    Stays."""
    for argument, access in zip(leaf.body.block.args, leaf.reads, strict=True):
        if access.buffer in own:
            known[argument] = known[access.buffer]
            if access.index or known[argument].type != argument.type:
                raise Stays("a part of what is made in a step is read")
            continue
        known[argument] = fresh = body.insert_arg(argument.type, len(body.args))
        fresh.name_hint = argument.name_hint
        reads.append(access)
    for op in leaf.body.block.ops:
        if isinstance(op, YieldOp):
            continue
        clone = op.clone(known)
        clone.location = op.location
        body.add_op(clone)
        known.update(zip(op.results, clone.results, strict=True))
    known.update((access.buffer, known[value]) for access, value in zip(leaf.writes, leaf.yielded, strict=True))


def take_out(loop: ForOp, main: BodyOperation) -> bool:
    """Erase a leaf of a loop, and those whose results nobody reads then; whether any is left."""
    main.detach()
    main.erase()
    block = loop.body.block
    while any(_erase_unread(op) for op in list(block.ops) if isinstance(op, AllocOp)):
        pass
    return any(isinstance(op, BodyOperation) for op in block.ops)


def _erase_unread(alloc: AllocOp) -> bool:
    """Erase memory that nobody reads, with the leaves that write it and nothing else; whether that was done."""
    users = list(dict.fromkeys(use.operation for use in alloc.buffer.uses))
    leaves = [user for user in users if isinstance(user, BodyOperation) and len(user.writes) == 1]
    if len(leaves) < len(users) or any(alloc.buffer in leaf.ins for leaf in leaves):
        return False
    for op in (*leaves, alloc):
        op.detach()
        op.erase()
    return True
