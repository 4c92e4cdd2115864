"""
Proof that a program whose rows are swapped reads what it read before: with no code in common with what places swaps.

It is given the operations of before, the program, and the claim which buffers one has become. It reads back that

- every operation runs where it ran, in the same order, on the same rows; those of the buffer it may now read in what
  comes back from the host, at the same index;
- what is new copies rows from the buffer to the host, and from there to what comes back, each to its own index.

So a row of what comes back holds what the row of the buffer held, if each row is written once and no later than it is
read. That all copies come in that order, that nothing is read before it is back or after a ring has dropped it, is what
`check` proves of these buffers as of any others, once their storage is planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from tempo_ir.dialects.loop import BufferAccess, FetchOp, FreeOp, OffloadOp, ProgramOp
from tempo_ir.index.expr import Index, Sym
from tempo_ir.lowering.instances import Instance, instances
from tempo_ir.lowering.storage.check import IllegalStorageError


@dataclass(frozen=True)
class SwappedBuffer:
    """`buffer` has become `device`, `host` and `back`, with the loops `outer` as leading dims."""

    buffer: SSAValue
    device: SSAValue
    host: SSAValue
    back: Sequence[SSAValue]
    outer: Sequence[str]

    def moved(self, index: Index) -> Index:
        """Where a row lies in each of them."""
        return (*map(Sym, self.outer), *index)


@dataclass(frozen=True)
class SwapClaim:
    """The operations of before, and what has become of which buffers."""

    before: Sequence[Instance]
    swapped: Sequence[SwappedBuffer]

    def of(self, buffer: SSAValue) -> SwappedBuffer | None:
        """What has become of a buffer; None if it is as it was."""
        return next((each for each in self.swapped if each.buffer is buffer), None)


def check_swap(program: ProgramOp, claim: SwapClaim) -> None:
    """Prove that a program differs from what it was by such copies only. Raises IllegalStorageError."""
    after = list(instances(program))
    known = {instance.op for instance in claim.before}
    new = {one.op for one in after if isinstance(one.op, OffloadOp | FetchOp) and one.op not in known}
    for instance in [instance for instance in after if instance.op in new]:
        _check_copy(instance, claim)
    left = [instance for instance in after if instance.op not in new and not _is_free(instance, claim)]
    right = [instance for instance in claim.before if not _is_free(instance, claim)]
    if [instance.op for instance in left] != [instance.op for instance in right]:
        raise IllegalStorageError("rows are swapped, and other operations run than before", program)
    for origin, instance in zip(right, left, strict=True):
        _check_same(origin, instance, claim)


def _is_free(instance: Instance, claim: SwapClaim) -> bool:
    """Frees of the buffers themselves are planned anew."""
    return isinstance(instance.op, FreeOp) and claim.of(instance.reads[0].buffer) is not None


def _check_copy(instance: Instance, claim: SwapClaim) -> None:
    (read,), (write,) = instance.reads, instance.writes
    source, target = read.buffer, write.buffer
    offloads = any(source is each.device and target is each.host for each in claim.swapped)
    fetches = any(source is each.host and any(target is back for back in each.back) for each in claim.swapped)
    if not (offloads if isinstance(instance.op, OffloadOp) else fetches):
        raise IllegalStorageError("a copy is none between a buffer and its rows with the host", instance.op)
    if read.index != write.index:
        raise IllegalStorageError("a row is copied to the place of another", instance.op)


def _check_same(origin: Instance, instance: Instance, claim: SwapClaim) -> None:
    """An operation as it was, but for the names of the buffers."""
    here = instance.loops, instance.frame, instance.results, instance.arguments
    there = origin.loops, origin.frame, origin.results, origin.arguments
    if here != there:
        raise IllegalStorageError("rows are swapped, and an operation runs at other points", instance.op)
    counts = len(origin.reads) == len(instance.reads) and len(origin.writes) == len(instance.writes)
    reads, writes = zip(origin.reads, instance.reads, strict=False), zip(origin.writes, instance.writes, strict=False)
    same = all(_may_be(before, after, claim, reads=True) for before, after in reads)
    same = same and all(_may_be(before, after, claim, reads=False) for before, after in writes)
    if not counts or not same:
        raise IllegalStorageError("rows are swapped, and an operation works on other rows", instance.op)


def _may_be(before: BufferAccess, after: BufferAccess, claim: SwapClaim, *, reads: bool) -> bool:
    """Whether rows are those of before; of a buffer that is swapped also those that have come back may be read."""
    swapped = claim.of(before.buffer)
    if swapped is None:
        return before == after
    places = (swapped.device, *swapped.back) if reads else (swapped.device,)
    return any(after == BufferAccess(place, swapped.moved(before.index), before.type) for place in places)
