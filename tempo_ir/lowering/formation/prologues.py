"""Leaves that products compute again: what their rows are made of, as a norm is, where that is in memory anyway.

    %s = mul %x, %x        %m = mean %s        %r = rsqrt %m        %n = mul %x, %r        %q = contract %n, %w

The leaf %n and those that only it is made of are computed in the kernel of each product that reads %n: a kernel and a
buffer less, for a small part of the multiplications. It does not apply where nothing is summed, since what is computed
element by element may overwrite what it reads, as a product may not; to what is computed from the result of another
product alone, which is better computed where that is (`tanh(x @ w)`); nor to exponentials and the like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.loop import AllocOp, ComputeOp
from tempo_ir.lowering.formation.leaf import Leaf
from tempo_ir.lowering.formation.rules import Cost, is_amortised

_CHEAP = frozenset({Cost.FREE, Cost.LIGHT, Cost.PASS})


def prologues(leaves: Mapping[Operation, Leaf]) -> set[Leaf]:
    """The leaves of a block, by their operations, that the products which read them compute again."""
    makers = {
        leaf.buffer: leaf
        for leaf in leaves.values()
        if isinstance(leaf.op, ComputeOp) and len(leaf.writes) == 1 and isinstance(leaf.buffer.owner, AllocOp)
    }
    readers: dict[Leaf, Sequence[Leaf]] = {leaf: _readers(leaf, leaves) for leaf in makers.values()}
    found: set[Leaf] = set()
    for leaf, reading in readers.items():
        if reading and all(_multiplies(reader, leaf.buffer) for reader in reading):
            cone = _cone(leaf, makers, readers)
            if any(inner.cost is Cost.PASS for inner in cone):
                found |= cone
    return found


def _readers(leaf: Leaf, leaves: Mapping[Operation, Leaf]) -> list[Leaf]:
    """The leaves that read what a leaf writes; none where others do too, or the block writes it twice."""
    users = dict.fromkeys(user for use in leaf.buffer.uses if (user := use.operation) is not leaf.op)
    if not all(user in leaves for user in users):
        return []
    found = [leaves[user] for user in users]
    return [] if any(write.buffer is leaf.buffer for other in found for write in other.writes) else found


def _multiplies(reader: Leaf, buffer: SSAValue) -> bool:
    arguments = zip(reader.arguments, reader.reads, strict=True)
    return all(is_amortised(reader.work, argument) for argument, access in arguments if access.buffer is buffer)


def _made_by(leaf: Leaf, makers: Mapping[SSAValue, Leaf]) -> list[Leaf]:
    """The leaves that make what a leaf reads."""
    return [makers[access.buffer] for access in leaf.reads if access.buffer in makers]


def _cone(leaf: Leaf, makers: Mapping[SSAValue, Leaf], readers: Mapping[Leaf, Sequence[Leaf]]) -> set[Leaf]:
    """A leaf with those that only it is made of; nothing where one of them is dear, or is the end of a product."""
    found: dict[Leaf, list[Leaf]] = {leaf: _made_by(leaf, makers)}
    waiting = [leaf]
    while waiting:
        inner = waiting.pop()
        if inner.cost not in _CHEAP or _ends_product(inner, found[inner], readers):
            return set()
        for maker in dict.fromkeys(maker for others in found.values() for maker in others):
            reading = readers[maker]
            if maker in found or not reading or any(reader not in found for reader in reading):
                continue
            above = _made_by(maker, makers)
            if len(reading) > 1 and (maker.cost not in _CHEAP or _ends_product(maker, above, readers)):
                continue  # it is in memory
            found[maker] = above
            waiting.append(maker)
    return set(found)


def _ends_product(leaf: Leaf, makers: Sequence[Leaf], readers: Mapping[Leaf, Sequence[Leaf]]) -> bool:
    """Whether a leaf is better computed with what it is made of: it alone reads something dear."""
    return any(maker.cost not in _CHEAP and list(readers[maker]) == [leaf] for maker in makers)
