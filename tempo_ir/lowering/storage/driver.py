"""Storage of one program: planned, written, and proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.loop import DEALLOC, ProgramOp
from tempo_ir.index.expr import Index
from tempo_ir.lowering.bounds import check_bounds
from tempo_ir.lowering.proofs import proving
from tempo_ir.lowering.storage.check import Claim, Memory, check_storage
from tempo_ir.lowering.storage.donation import mark_donations
from tempo_ir.lowering.storage.frees import Free, insert_frees, last_reads
from tempo_ir.lowering.storage.instances import instances
from tempo_ir.lowering.storage.plan import Planned, Planner
from tempo_ir.lowering.storage.rewrite import Rewriter
from tempo_ir.passes.remarks import remark


def plan_storage(program: ProgramOp, *, check: bool = True) -> Counter[str]:
    """
    Let the buffers of a program keep no more rows than are read; counts what was done.

    Raises IllegalStorageError, a fault of the compiler, where the result loses a value.
    """
    before = instances(program)
    planner = Planner.of(program)
    plan = planner.plan()
    frees = last_reads(plan, planner.liveness, planner.unknown)
    _say_what_is_not_freed(plan, frees)
    donated = [(parameter.buffer, output.buffer) for parameter, output in mark_donations(planner, plan)]
    rewriter = Rewriter(program, planner.liveness)
    buffers = rewriter.rewrite(plan)
    freed = insert_frees(frees, buffers, {old: new for new, (old, _) in rewriter.replaced.items()})
    memories = dict(_memories(plan, buffers))
    if check:
        with proving():
            check_bounds(program)
            check_storage(program, Claim(before, memories, rewriter.replaced, freed, dict(_starts(plan)), donated))
    return _summary(plan, frees, donated)


def _summary(plan: Sequence[Planned], frees: Sequence[Free], donated: Sequence[object]) -> Counter[str]:
    counts = Counter[str]()
    for planned in plan:
        classes = [dim.storage for dim in planned.stored] or ["slot"]
        counts.update(f"buffers {storage}" for storage in dict.fromkeys(classes) if planned.group.output is None)
        counts["copies removed"] += len(planned.group.copies)
    return counts + Counter({"frees": len(frees), "states in place": len(donated)})


def _say_what_is_not_freed(plan: Sequence[Planned], frees: Sequence[Free]) -> None:
    """A remark for each value whose rows are asked to be given back one by one, and are not."""
    freed = {free.planned.group for free in frees}
    for planned in plan:
        keeps_more = any(dim.storage != "ring" for dim in planned.stored)
        if keeps_more and planned.group not in freed:
            for op in [member.op for member in planned.group.members.values() if DEALLOC in member.op.attributes]:
                remark(op, "its rows are given back with the whole buffer: no iteration is known to read one last")


def _starts(plan: Sequence[Planned]) -> Iterator[tuple[Operation, tuple[Index, tuple[Operation, ...]]]]:
    """The operations that begin memories: the cells written, and what they took the place of."""
    for start in [start for planned in plan for start in planned.starts]:
        yield start.op, (start.use.cells, start.replaced)


def _memories(plan: Sequence[Planned], buffers: Mapping[SSAValue, SSAValue]) -> Iterator[tuple[SSAValue, Memory]]:
    """Where the plan puts each buffer."""
    for planned in plan:
        stored = tuple(position for position, dim in enumerate(planned.dims) if dim is not None)
        for buffer, member in planned.group.members.items():
            yield buffer, Memory(buffers[buffer], member.dims, member.cells, stored)
