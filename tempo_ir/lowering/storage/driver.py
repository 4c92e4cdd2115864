"""Storage of one program: planned, written, and proved."""

from __future__ import annotations

from tempo_ir.dialects.loop import ProgramOp
from tempo_ir.lowering.storage.plan import Planner
from tempo_ir.lowering.storage.rewrite import Rewriter


def plan_storage(program: ProgramOp) -> None:
    """Let the buffers of a program keep no more rows than are read."""
    planner = Planner.of(program)
    plan = planner.plan()
    Rewriter(program, planner.liveness).rewrite(plan)
