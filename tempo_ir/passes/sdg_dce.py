"""sdg-dce: erase what nothing needs, cycles included.

Before:

    %h = sdg.tanh %s[t] in (t) : (!h) -> !h
    %s = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : (!h, !h) -> !h      // %h and %s feed only each other
    %y = sdg.exp %x[t] in (t) : (!h) -> !h
    sdg.output "y" %y[t] in (t) : !h

After:

    %y = sdg.exp %x[t] in (t) : (!h) -> !h
    sdg.output "y" %y[t] in (t) : !h

Outputs, host calls and ends of dims are needed, and what they read. Inputs and parameters stay, used or not: they are
the signature of the program, from which bounds are inferred. A host object that nobody calls goes; requests
about the memory of a value go with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tempo_ir.dialects.operation import maker_of, ops_of
from tempo_ir.dialects.sdg import HostOp, OutputOp, ProgramOp, RequestOp, SourceOp, UntilOp
from tempo_ir.graphs import reachable
from tempo_ir.passes.remarks import count
from tempo_ir.passes.utilities import erase, programs


def remove_dead_ops(program: ProgramOp) -> int:
    """Erase the ops that no output, host call, end of a dim or signature needs; how many there were."""
    ops = list(ops_of(program.body.block))
    needed = reachable((op for op in ops if isinstance(op, OutputOp | HostOp | UntilOp | SourceOp)), _producers)
    dead = [op for op in ops if (op.value.owner if isinstance(op, RequestOp) else op) not in needed]
    erase(dead)
    return len(dead)


def _producers(op: Operation) -> Iterator[Operation]:
    return (maker for operand in op.operands if (maker := maker_of(operand)) is not None)


@dataclass(frozen=True)
class SdgDcePass(ModulePass):
    """Erase what no output and no host call needs."""

    name = "sdg-dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in programs(op):
            count(self, "erased", remove_dead_ops(program))
