"""Scheduling of one program: statements, an order of them, loops, and the proof that they are right."""

from __future__ import annotations

from tempo_ir.dialects.loop import ProgramOp as LoopProgramOp
from tempo_ir.dialects.sdg import ProgramOp
from tempo_ir.lowering.schedule.diagnosis import no_order
from tempo_ir.lowering.schedule.distances import Distances
from tempo_ir.lowering.schedule.emit import loop_program
from tempo_ir.lowering.schedule.isl_fallback import order_by_isl
from tempo_ir.lowering.schedule.isl_tree import loop_nest
from tempo_ir.lowering.schedule.legality import Claim, check_schedule
from tempo_ir.lowering.schedule.named_dims import Choices, UnorderedError, schedule
from tempo_ir.lowering.schedule.order import Node
from tempo_ir.lowering.schedule.statements import Statements


def schedule_program(program: ProgramOp, max_candidates: int = 4) -> LoopProgramOp:
    """
    The loop program of an sdg program, which is left as it is.

    Raises ScheduleError where the program has no order, with the shortest cycle.
    """
    statements, order = ordered(Statements.of(program), Choices())
    emitted = loop_program(statements, loop_nest(statements.graph, order))
    check_schedule(emitted.program, Claim(program, emitted.origins, emitted.memory))
    return emitted.program


def ordered(statements: Statements, choices: Choices) -> tuple[Statements, list[Node]]:
    """
    An order of the statements: over named dims; else with merges split by case; else with the help of isl.

    Returns the statements as they were split, too. Raises ScheduleError where there is no order.
    """
    distances = Distances(statements.program.space)
    while True:
        try:
            return statements, schedule(statements.graph, distances, choices)
        except UnorderedError as error:
            split = statements.split(error.statements)
        if split is None:
            break
        statements = split
    try:
        return statements, schedule(statements.graph, distances, choices, order_by_isl)
    except UnorderedError as error:
        raise no_order(statements, error) from error
