"""
Donation: a state whose parameter is read no more when its output is written needs one array, not two.

The output of such a state says so, `loop.output "w" {donates} : ...`: a call may then let it lie in the array that the
caller gave for the parameter, which it overwrites. Copying the parameter to the output is then no change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from tempo_ir.dialects.loop import DONATES, OutputOp, ParameterOp
from tempo_ir.lowering.storage.in_place import may_be_overwritten
from tempo_ir.lowering.storage.liveness import HELD, OPERAND, RESULT, CellUse
from tempo_ir.lowering.storage.plan import Planned, Planner, starts_of
from tempo_ir.lowering.storage.starts import Start
from tempo_ir.lowering.storage.uses import Use
from tempo_ir.passes.remarks import remark


def mark_donations(planner: Planner, plan: Sequence[Planned]) -> list[tuple[ParameterOp, OutputOp]]:
    """Mark the outputs that may lie where their parameters do; returns both. None where only some buffers are planned
    anew."""
    if planner.only is not None:
        return []
    ops = list(planner.program.body.block.ops)
    parameters = {op.key: op for op in ops if isinstance(op, ParameterOp)}
    found: list[tuple[ParameterOp, OutputOp]] = []
    for output in [op for op in ops if isinstance(op, OutputOp)]:
        parameter = parameters.get(output.key)
        if parameter is None or parameter.buffer_type != output.buffer_type:
            continue
        if _may_share(planner, plan, parameter, output):
            output.attributes[DONATES] = UnitAttr()
            found.append((parameter, output))
        else:
            remark(output, "it needs an array of its own: the parameter is read after the output is written")
    return found


def _may_share(planner: Planner, plan: Sequence[Planned], parameter: ParameterOp, output: OutputOp) -> bool:
    starts = starts_of(plan)
    places: dict[Operation, int] = {start.op: number for number, start in enumerate(starts)}
    reads = [_placed(use, places) for use in _reads(planner, parameter, starts)]
    writes = [_placed(use, places) for use in _writes(planner, plan, parameter, output)]
    return not reads or not writes or planner.liveness.comes_before(reads, writes)


def _placed(use: CellUse, places: Mapping[Operation, int]) -> CellUse:
    """A use of a start, which has the number of the place where others may stand, moved behind those before it."""
    return replace(use, moment=use.moment + (HELD + 1) * places.get(use.use.op, 0))


def _reads(planner: Planner, parameter: ParameterOp, starts: Sequence[Start]) -> Iterator[CellUse]:
    """When the parameter is read; what a start took the place of reads it there."""
    moved: dict[Operation, Start] = {op: start for start in starts for op in start.replaced}
    for use in planner.cells.uses.get(parameter.buffer, ()):
        start = moved.get(use.op)
        moment = OPERAND if may_be_overwritten(use) else HELD
        if start is not None:
            use = Use(start.op, False, 0, use.buffer, use.index, start.use.use.frame, start.use.use.order)
        yield CellUse(use, (), moment)


def _writes(planner: Planner, plan: Sequence[Planned], parameter: ParameterOp, output: OutputOp) -> Iterator[CellUse]:
    """When something else than the parameter is written to the output."""
    planned = next((planned for planned in plan if output.buffer in planned.group.members), None)
    if planned is None:
        yield from (CellUse(use, (), RESULT) for use in planner.cells.uses.get(output.buffer, ()) if use.writes)
        return
    begun = {start.op for start in planned.starts if parameter.buffer in start.op.ins}
    for use in planned.uses:
        if use.use.writes and use.use.op not in begun:
            yield CellUse(use.use, (), RESULT)
