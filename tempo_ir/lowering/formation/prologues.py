"""Leaves that products compute again: what their rows are made of, as a norm is, where that is in memory anyway.

    %s = mul %x, %x        %m = mean %s        %r = rsqrt %m        %n = mul %x, %r        %q = contract %n, %w

The leaf %n and those that only it is made of are computed in the kernel of each product that reads %n: a kernel and a
buffer less, for a small part of the multiplications. It does not apply where nothing is summed, since what is computed
element by element may overwrite what it reads, as a product may not; to what is computed from the result of another
product alone, which is better computed where that is (`tanh(x @ w)`); nor to exponentials and the like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from tempo_ir.dialects.loop import AllocOp, BodyOperation, ComputeOp
from tempo_ir.lowering.formation.block_graph import BlockGraph
from tempo_ir.lowering.formation.rules import Cost, cost_of, is_amortised

_CHEAP = frozenset({Cost.FREE, Cost.LIGHT, Cost.PASS})


def prologues(graph: BlockGraph) -> set[BodyOperation]:
    """The leaves of a block that the products which read them compute again."""
    leaves = [op for op in graph.items if isinstance(op, ComputeOp) and len(op.outs) == 1]
    makers: dict[SSAValue, BodyOperation] = {
        leaf.outs[0]: leaf for leaf in leaves if isinstance(leaf.outs[0].owner, AllocOp)
    }
    readers: dict[BodyOperation, Sequence[BodyOperation]] = {leaf: _readers(leaf, graph) for leaf in makers.values()}
    found: set[BodyOperation] = set()
    for leaf, reading in readers.items():
        if reading and all(_multiplies(reader, leaf.outs[0]) for reader in reading):
            cone = _cone(leaf, makers, readers)
            if any(cost_of(inner) is Cost.PASS for inner in cone):
                found |= cone
    return found


def _readers(leaf: BodyOperation, graph: BlockGraph) -> list[BodyOperation]:
    """The leaves that read what a leaf writes; none where others do too, or the block writes it twice."""
    users = [use.operation for use in leaf.outs[0].uses if use.operation is not leaf]
    if not all(isinstance(user, BodyOperation) and user in graph.number for user in users):
        return []
    found = dict.fromkeys(user for user in users if isinstance(user, BodyOperation))
    return [] if any(leaf.outs[0] in user.outs for user in found) else list(found)


def _multiplies(reader: BodyOperation, buffer: SSAValue) -> bool:
    arguments = zip(reader.body.block.args, reader.reads, strict=True)
    return all(is_amortised(reader, argument) for argument, access in arguments if access.buffer is buffer)


def _cone(
    leaf: BodyOperation,
    makers: Mapping[SSAValue, BodyOperation],
    readers: Mapping[BodyOperation, Sequence[BodyOperation]],
) -> set[BodyOperation]:
    """A leaf with those that only it is made of; nothing where one of them is dear, or is the end of a product."""
    found: dict[BodyOperation, None] = {leaf: None}
    waiting = [leaf]
    while waiting:
        inner = waiting.pop()
        sources = {other: [makers[buffer] for buffer in other.ins if buffer in makers] for other in (inner, *found)}
        if cost_of(inner) not in _CHEAP or _ends_product(inner, sources[inner], readers):
            return set()
        for maker in dict.fromkeys(maker for others in sources.values() for maker in others):
            reading = readers[maker]
            if maker in found or not reading or any(reader not in found for reader in reading):
                continue
            shared = len(reading) > 1
            above = [makers[buffer] for buffer in maker.ins if buffer in makers]
            if shared and (cost_of(maker) not in _CHEAP or _ends_product(maker, above, readers)):
                continue  # it is in memory
            found[maker] = None
            waiting.append(maker)
    return set(found)


def _ends_product(
    leaf: BodyOperation, makers: Sequence[BodyOperation], readers: Mapping[BodyOperation, Sequence[BodyOperation]]
) -> bool:
    """Whether a leaf is better computed with what it is made of: it alone reads something dear."""
    return any(cost_of(maker) not in _CHEAP and list(readers[maker]) == [leaf] for maker in makers)
