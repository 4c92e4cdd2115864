"""What several tests of storage begin with."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import loop
from tempo_ir.lowering.formation.loop_form_kernels import LoopFormKernelsPass
from tempo_ir.lowering.schedule.driver import schedule_program
from tempo_ir.lowering.storage.driver import plan_storage
from tests.schedule.schedule_support import parse


def planned(text: str, *, form: bool = True) -> loop.ProgramOp:
    """The loop program of a text with planned storage, after or without formation of kernels."""
    program = schedule_program(parse(text))
    if form:
        module = ModuleOp([program])
        LoopFormKernelsPass().apply(Context(), module)
        program.detach()
    plan_storage(program)
    program.verify()
    return program
