"""sdg-insert-donate: ask that the last value of a state lie in the array that holds its first one.

Before:

    %w0 = sdg.parameter "w" : !w
    %wI = sdg.merge {I = 0 : %w0, I > 0 : %w1[I - 1]} : (!w, !w) -> !w
    sdg.output "w" %wI : !w

After (one array instead of two, if the call allows it by `donate=True`):

    sdg.output "w" donates %wI : !w

The request is on the donee, the output. loop-plan-storage proves that the parameter is read no more when its array is
written; where it is, the output keeps an array of its own, with a remark. Memory inside of a program (optimiser state,
a KV cache) needs no request: a value and its update are one buffer wherever that is right.

It does not apply to an output without a parameter of its key, or of another type or other points than that.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from tempo_ir.dialects.sdg import OutputOp, ParameterOp, ProgramOp
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.passes.remarks import count, remark
from tempo_ir.passes.utilities import programs


@dataclass(frozen=True)
class SdgInsertDonatePass(ModulePass):
    """Ask that states be updated in place."""

    name = "sdg-insert-donate"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in programs(op):
            count(self, "requests", insert_donations(program))


def insert_donations(program: ProgramOp) -> int:
    """Mark the outputs that may lie where the parameters of their keys do; how many."""
    ops = program_ops(program)
    parameters = {op.key: op for op in ops if isinstance(op, ParameterOp)}
    marked = 0
    for output in [op for op in ops if isinstance(op, OutputOp) and op.donates is None]:
        parameter = parameters.get(output.key)
        if parameter is None:
            continue
        if parameter.domain != output.domain or parameter.result.type != output.accesses[0].type:
            remark(output, f"it needs an array of its own: the parameter is {parameter.result.type} at other points")
            continue
        output.donates = UnitAttr()
        marked += 1
    return marked
