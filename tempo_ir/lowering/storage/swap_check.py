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

from tempo_ir.dialects.loop import FetchOp, FreeOp, OffloadOp, ProgramOp
from tempo_ir.index.expr import Index, Sym
from tempo_ir.lowering.storage.check import IllegalStorageError
from tempo_ir.lowering.storage.instances import Instance, instances


@dataclass(frozen=True)
class SwapClaim:
    """`buffer` has become `device`, `host` and `back`, with the loops `outer` as leading dims."""

    before: Sequence[Instance]
    buffer: SSAValue
    device: SSAValue
    host: SSAValue
    back: Sequence[SSAValue]
    outer: Sequence[str]


def check_swap(program: ProgramOp, claim: SwapClaim) -> None:
    """Prove that a program differs from what it was by such copies only. Raises IllegalStorageError."""
    after = list(instances(program))
    copies = [instance for instance in after if isinstance(instance.op, OffloadOp | FetchOp)]
    known = {instance.op for instance in claim.before}
    new = [instance for instance in copies if instance.op not in known]
    for instance in new:
        _check_copy(instance, claim)
    added = {instance.op for instance in new}
    left = [instance for instance in after if instance.op not in added and not _is_free(instance, claim)]
    right = [instance for instance in claim.before if not _is_free(instance, claim)]
    if [instance.op for instance in left] != [instance.op for instance in right]:
        raise IllegalStorageError("rows are swapped, and other operations run than before", program)
    for origin, instance in zip(right, left, strict=True):
        _check_same(origin, instance, claim)


def _is_free(instance: Instance, claim: SwapClaim) -> bool:
    """Frees of the buffer itself are planned anew."""
    return isinstance(instance.op, FreeOp) and instance.reads[0][0] is claim.buffer


def _check_copy(instance: Instance, claim: SwapClaim) -> None:
    ((source, source_index),), ((target, target_index),) = instance.reads, instance.writes
    offloads = source is claim.device and target is claim.host
    fetches = source is claim.host and any(target is back for back in claim.back)
    if not (offloads if isinstance(instance.op, OffloadOp) else fetches):
        raise IllegalStorageError("a copy is none between a buffer and its rows with the host", instance.op)
    if source_index != target_index:
        raise IllegalStorageError("a row is copied to the place of another", instance.op)


def _check_same(origin: Instance, instance: Instance, claim: SwapClaim) -> None:
    """An operation as it was, but for the names of the buffers."""
    here = instance.loops, instance.guard, instance.results, instance.arguments
    there = origin.loops, origin.guard, origin.results, origin.arguments
    if here != there:
        raise IllegalStorageError("rows are swapped, and an operation runs at other points", instance.op)
    reads = len(origin.reads) == len(instance.reads) and all(
        _may_read(before, after, claim) for before, after in zip(origin.reads, instance.reads, strict=True)
    )
    writes = len(origin.writes) == len(instance.writes) and all(
        after == (_moved(before, claim.device, claim) if before[0] is claim.buffer else before)
        for before, after in zip(origin.writes, instance.writes, strict=True)
    )
    if not reads or not writes:
        raise IllegalStorageError("rows are swapped, and an operation works on other rows", instance.op)


def _may_read(before: tuple[SSAValue, Index], after: tuple[SSAValue, Index], claim: SwapClaim) -> bool:
    if before[0] is not claim.buffer:
        return before == after
    return any(after == _moved(before, place, claim) for place in (claim.device, *claim.back))


def _moved(access: tuple[SSAValue, Index], buffer: SSAValue, claim: SwapClaim) -> tuple[SSAValue, Index]:
    return buffer, (*map(Sym, claim.outer), *access[1])
