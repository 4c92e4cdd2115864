"""Why a program has no order."""

from __future__ import annotations

from tempo_ir.dialects.sdg import OpError, op_text
from tempo_ir.dialects.sdg.causality import check_causality
from tempo_ir.lowering.schedule.named_dims import UnorderedError
from tempo_ir.lowering.schedule.statements import ScheduleError, Statements


def no_order(statements: Statements, error: UnorderedError) -> ScheduleError:
    """
    The error to raise for statements that nothing orders: the shortest cycle of points that need each other, by name
    and line; or, where no value needs itself, which values would need loops that the scheduler does not find.
    """
    try:
        check_causality(statements.program, thorough=True)
    except OpError as cycle:
        return ScheduleError(str(cycle), cycle.op)
    ops = list(dict.fromkeys(statements.works[number].op for number in error.statements))
    found = ScheduleError(
        f"no loops found that order {', '.join(map(op_text, ops))}, though no value needs itself", ops[0]
    )
    found.add_note("define the value as several, each with one direction of time, so that each has a loop of its own")
    return found
