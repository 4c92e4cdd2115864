"""What a graph asks about the memory of values, handed to the buffers that hold them."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64
from xdsl.ir import SSAValue

from tempo_ir.dialects.loop import DEALLOC, SWAP, AllocOp
from tempo_ir.dialects.sdg import ProgramOp, SwapOp, requests_of
from tempo_ir.passes.remarks import remark


def carry_requests(program: ProgramOp, memory: Mapping[SSAValue, SSAValue]) -> None:
    """
    Mark the buffers of values that something is asked about: `sdg.swap %x ahead 4` makes it `loop.alloc {swap = 4}`.

    What a donating output asks needs no mark: loop-plan-storage donates whatever it proves.
    """
    for request in requests_of(program):
        buffer = memory.get(request.value)
        if buffer is None:
            remark(request, "nothing is to be done: the value has no memory of its own")
        elif not isinstance(buffer.owner, AllocOp):
            remark(request, "nothing is to be done: the value is made in the array of the caller that is its output")
        elif isinstance(request, SwapOp):
            buffer.owner.attributes[SWAP] = IntegerAttr(request.ahead, i64)
        else:
            buffer.owner.attributes[DEALLOC] = UnitAttr()
