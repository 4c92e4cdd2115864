"""Scheduling of one program: statements, candidate orders, the best of them as loops, proved legal."""

from __future__ import annotations

from tempo_ir.dialects.loop import ProgramOp as LoopProgramOp
from tempo_ir.dialects.sdg import ProgramOp
from tempo_ir.lowering.schedule.distances import Distances
from tempo_ir.lowering.schedule.emit import loop_program
from tempo_ir.lowering.schedule.isl_tree import loop_nest
from tempo_ir.lowering.schedule.legality import Claim, check_schedule
from tempo_ir.lowering.schedule.named_dims import Choices, schedule
from tempo_ir.lowering.schedule.statements import Statements


def schedule_program(program: ProgramOp, max_candidates: int = 4) -> LoopProgramOp:
    """The loop program of an sdg program, which is left as it is."""
    statements = Statements.of(program)
    order = schedule(statements.graph, Distances(program.space), Choices())
    emitted = loop_program(statements, loop_nest(statements.graph, order))
    check_schedule(emitted.program, Claim(program, emitted.origins, emitted.memory))
    return emitted.program
