"""Storage of one program: planned, written, and proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.loop import DEALLOC, SWAP, AllocOp, BufferType, ProgramOp
from tempo_ir.index.expr import Index
from tempo_ir.lowering.bounds import check_bounds
from tempo_ir.lowering.instances import instances
from tempo_ir.lowering.proofs import IllegalError, proving
from tempo_ir.lowering.storage.check import Claim, Memory, check_storage
from tempo_ir.lowering.storage.donation import mark_donations
from tempo_ir.lowering.storage.frees import Free, insert_frees, last_reads
from tempo_ir.lowering.storage.plan import Planned, Planner, starts_of
from tempo_ir.lowering.storage.rewrite import Rewriter
from tempo_ir.lowering.storage.swap_check import SwapClaim, SwappedBuffer, check_swap
from tempo_ir.lowering.storage.swaps import NotSwappedError, Swap, Swapped, apply_swap, find_swap
from tempo_ir.passes.remarks import remark


def plan_storage(program: ProgramOp, *, check: bool = True) -> Counter[str]:
    """
    Let the buffers of a program keep no more rows than are read, and swap those that are asked for; counts what was
    done.

    Raises IllegalStorageError, a fault of the compiler, where the result loses a value.
    """
    return _plan(program, Planner.of(program), check)[0] + swap_requested(program, check=check)


def _plan(program: ProgramOp, planner: Planner, check: bool) -> tuple[Counter[str], dict[SSAValue, SSAValue]]:
    """Plan storage and write it; what was done, and where each buffer lies now."""
    before = instances(program)
    plan = planner.plan()
    frees = last_reads(plan, planner.liveness, planner.unknown)
    _say_what_is_not_done(plan, frees)
    donated = [(parameter.buffer, output.buffer) for parameter, output in mark_donations(planner, plan)]
    rewriter = Rewriter(program, planner.liveness)
    buffers = rewriter.rewrite(plan)
    freed = insert_frees(frees, buffers, {old: new for new, (old, _) in rewriter.replaced.items()})
    memories = dict(_memories(plan, buffers))
    if check:
        with proving():
            claim = Claim(before, memories, rewriter.replaced, freed, dict(_starts(plan)), donated)
            read = instances(program)
            check_bounds(program, read)
            check_storage(program, claim, read)
    return _summary(plan, frees, donated), buffers


def swap_requested(program: ProgramOp, *, check: bool = True) -> Counter[str]:
    """
    Swap the rows of the buffers that ask for it; what is not proved right stays as it was, with a remark.

    All are swapped at once, without those that cannot be; one by one, where the proof of all fails.
    """
    counts, most = Counter[str](), None
    while asking := _asking(program)[:most]:
        kept = program.clone()
        try:
            refused = _swap(program, asking, check)
        except IllegalError as error:
            refused = {0: str(error)}
            if len(asking) > 1:
                refused, most = {}, 1
            _restore(program, kept)
        else:
            if not refused:
                counts["buffers swapped"] += len(asking)
                continue
            _restore(program, kept)
        asking = _asking(program)
        for number, reason in refused.items():
            remark(asking[number], f"its rows stay on the device: {reason}")
            del asking[number].attributes[SWAP]
    return counts


def _asking(program: ProgramOp) -> list[AllocOp]:
    """The buffers whose rows are to be swapped, in program order."""
    return [op for op in program.operations() if isinstance(op, AllocOp) and op.ahead is not None]


def _restore(program: ProgramOp, kept: ProgramOp) -> None:
    """Let a program be what it was."""
    program.detach_region(program.body)
    program.add_region(kept.detach_region(kept.body))


def _swap(program: ProgramOp, allocs: Sequence[AllocOp], check: bool) -> dict[int, str]:
    """
    Swap the rows of some buffers; why which, by number, cannot be: the program is then half rewritten.

    Raises IllegalError where the result is not proved right.
    """
    swaps: list[Swap] = []
    refused: dict[int, str] = {}
    for number, alloc in enumerate(allocs):
        assert alloc.ahead is not None
        try:
            swaps.append(find_swap(program, alloc, alloc.ahead))
        except NotSwappedError as error:
            refused[number] = str(error)
    if refused:
        return refused
    before = instances(program)
    made: list[Swapped] = []
    for number, swap in enumerate(swaps):
        try:
            made.append(apply_swap(program, swap))
        except NotSwappedError as error:
            return {number: str(error)}
    if check:
        claims = [
            SwappedBuffer(alloc.buffer, each.device, each.host, each.back, each.outer)
            for alloc, each in zip(allocs, made, strict=True)
        ]
        with proving():
            check_swap(program, SwapClaim(before, claims))
    _, buffers = _plan(program, Planner.of(program, [buffer for each in made for buffer in each.buffers]), check)
    for number, each in enumerate(made):
        types = [buffers.get(buffer, buffer).type for buffer in (each.device, *each.back)]
        if any(dim.storage != "ring" for type in types if isinstance(type, BufferType) for dim in type.dims):
            refused[number] = f"all of them are still read in other ways{swaps[number].still_read}"
    return refused


def _summary(plan: Sequence[Planned], frees: Sequence[Free], donated: Sequence[object]) -> Counter[str]:
    counts = Counter[str]()
    for planned in plan:
        classes = [dim.storage for dim in planned.stored] or ["slot"]
        counts.update(f"buffers {storage}" for storage in dict.fromkeys(classes) if planned.group.output is None)
        counts["copies removed"] += len(planned.group.copies)
    return counts + Counter({"frees": len(frees), "states in place": len(donated)})


def _say_what_is_not_done(plan: Sequence[Planned], frees: Sequence[Free]) -> None:
    """A remark for each value whose rows are asked to be given back one by one, and are not; or to be swapped, and lie
    in an array of the caller."""
    freed = {free.planned.group for free in frees}
    for planned in plan:
        if planned.group.output is not None:
            for op in [member.op for member in planned.group.members.values() if SWAP in member.op.attributes]:
                remark(op, "its rows stay on the device: they lie in the array of the caller that is an output")
            continue
        keeps_more = any(dim.storage != "ring" for dim in planned.stored)
        if keeps_more and planned.group not in freed:
            for op in [member.op for member in planned.group.members.values() if DEALLOC in member.op.attributes]:
                remark(op, "its rows are given back with the whole buffer: no iteration is known to read one last")


def _starts(plan: Sequence[Planned]) -> Iterator[tuple[Operation, tuple[Index, tuple[Operation, ...]]]]:
    """The operations that begin memories: the cells written, and what they took the place of."""
    for start in starts_of(plan):
        yield start.op, (start.use.cells, start.replaced)


def _memories(plan: Sequence[Planned], buffers: Mapping[SSAValue, SSAValue]) -> Iterator[tuple[SSAValue, Memory]]:
    """Where the plan puts each buffer."""
    for planned in plan:
        stored = tuple(position for position, dim in enumerate(planned.dims) if dim is not None)
        for buffer, member in planned.group.members.items():
            yield buffer, Memory(buffers[buffer], member.dims, member.cells, stored)
