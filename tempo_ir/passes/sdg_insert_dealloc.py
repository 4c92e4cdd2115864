"""sdg-insert-dealloc: ask that the memory of each value be given back, point by point, once all its readers ran.

Before:

    %y = sdg.exp %x[t] in (t) : (!h) -> !h
    %z = sdg.sum %y[max(0, t - 3):t + 1] axes [0] in (t) : (!h) -> !h
    sdg.output "z" %z[t] in (t) : !h

After:

    %y = sdg.exp %x[t] in (t) : (!h) -> !h
    %z = sdg.sum %y[max(0, t - 3):t + 1] axes [0] in (t) : (!h) -> !h
    sdg.dealloc %y : !h
    sdg.output "z" %z[t] in (t) : !h

The request shows, on the graph, whose memory the program manages. loop-plan-storage frees rows after their last readers
whether or not it is asked; where it is, and no iteration is the last to read a row, a remark says so.

It does not apply to arrays of the caller, to what an output is computed into, to formulas (constants, indices), which
their readers compute, and to values over no dim, whose memory is that of one point.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from tempo_ir.dialects.sdg import (
    ArangeOp,
    ConstantOp,
    CotangentOp,
    DeallocOp,
    IndexOp,
    OutputOp,
    ProgramOp,
    SdgOp,
    SourceOp,
    TokenType,
    requests_about,
)
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.passes.remarks import count
from tempo_ir.passes.utilities import identity, programs


@dataclass(frozen=True)
class SdgInsertDeallocPass(ModulePass):
    """Ask that memory be given back once all readers ran."""

    name = "sdg-insert-dealloc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in programs(op):
            count(self, "requests", insert_deallocs(program))


def insert_deallocs(program: ProgramOp) -> int:
    """Insert a request after the last reader, in the text, of every value with memory of its own; how many."""
    block = program.body.block
    places = {op: number for number, op in enumerate(block.ops)}
    inserted = 0
    for op in program_ops(program):
        asked = {request.value for request in requests_about(op) if isinstance(request, DeallocOp)}
        for value in [value for value in op.results if has_memory(value) and value not in asked]:
            last = max([op, *(use.operation for use in value.uses)], key=lambda each: places.get(each, -1))
            block.insert_op_after(DeallocOp(value, location=op.location), last)
            inserted += 1
    return inserted


def has_memory(value: SSAValue) -> bool:
    """Whether a value is kept, a row for each point, in memory that the program manages, and somebody reads it."""
    op = value.owner
    if not isinstance(op, SdgOp) or isinstance(op, SourceOp | ConstantOp | IndexOp | ArangeOp | CotangentOp):
        return False
    if isinstance(value.type, TokenType) or not op.domain.dims:
        return False
    readers: list[Operation] = [use.operation for use in value.uses]
    return any(isinstance(reader, SdgOp) for reader in readers) and not any(
        isinstance(reader, OutputOp) and reader.domain == op.domain and reader.accesses[0].index == identity(op)
        for reader in readers
    )
