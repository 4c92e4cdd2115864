"""When buffers are live, and that those which are not live together share memory."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.loop.checks import status_type
from tempo_ir.lowering.storage.intervals import buffer_intervals
from tempo_ir.runtime.memory import place, program_buffers

PROGRAM = """
loop.program @p dims(i: I, t: T) {
  %x = loop.input "x" : !loop.buffer<(i: full, t: full) 256xf32>
  %y = loop.output "y" : !loop.buffer<(i: full) 256xf32>
  %carried = loop.alloc : !loop.buffer<256xf32>
  loop.compute outs(%carried) { %0 = sdg.constant 0.0 : tensor<256xf32> loop.yield %0 : tensor<256xf32> }
  loop.for i = 0 to I {
    %sum = loop.alloc : !loop.buffer<256xf32>
    %first = loop.alloc : !loop.buffer<256xf32>
    %second = loop.alloc : !loop.buffer<256xf32>
    loop.compute ins(%a = %carried) outs(%sum) { loop.yield %a : tensor<256xf32> }
    loop.for t = 0 to T {
      %inner = loop.alloc : !loop.buffer<256xf32>
      loop.compute ins(%a = %x[i, t], %b = %sum) outs(%inner) {
        %0 = sdg.add %a, %b : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loop.yield %0 : tensor<256xf32>
      }
      loop.compute ins(%a = %inner) outs(%sum) { loop.yield %a : tensor<256xf32> }
    }
    loop.compute ins(%a = %sum) outs(%first) { loop.yield %a : tensor<256xf32> }
    loop.compute ins(%a = %first) outs(%second) { loop.yield %a : tensor<256xf32> }
    loop.compute ins(%a = %second) outs(%carried) { loop.yield %a : tensor<256xf32> }
    loop.compute ins(%a = %carried) outs(%y[i]) { loop.yield %a : tensor<256xf32> }
  }
}
"""


def parsed() -> loop.ProgramOp:
    context = Context()
    for dialect in (Builtin, sdg.Sdg, loop.Loop):
        context.load_dialect(dialect)
    (program,) = Parser(context, PROGRAM).parse_module().ops
    assert isinstance(program, loop.ProgramOp)
    program.verify()
    return program


def test_buffers_that_are_live_together() -> None:
    live = {buffer.name_hint: interval for buffer, interval in buffer_intervals(parsed()).items()}
    together = {
        (a, b) for a in live for b in live if a is not None and b is not None and a < b and live[a].meets(live[b])
    }
    temporary = {"carried", "sum", "first", "second", "inner"}
    assert {pair for pair in together if set(pair) <= temporary} == {
        ("carried", "sum"),
        ("carried", "first"),
        ("carried", "second"),
        ("carried", "inner"),
        ("inner", "sum"),
        ("first", "sum"),
        ("first", "second"),
    }


def test_they_share_memory() -> None:
    program = parsed()
    buffers = program_buffers(program)
    placement = place(buffers, {"I": 2, "T": 3})
    row = 256 * 4 + 64  # a line more than the row, which a vector may touch
    assert placement.size == 3 * row
    for one, first in zip(buffers, placement.offsets, strict=True):
        for other, second in zip(buffers, placement.offsets, strict=True):
            if one is not other and first is not None and second is not None and one.live.meets(other.live):
                assert abs(first - second) >= row


def test_a_status_is_live_from_the_start() -> None:
    """It is zeroed before the program runs, and must be zero when a kernel first looks at it."""
    program = parsed()
    status = loop.AllocOp(status_type(1))
    block = program.body.block
    last = block.last_op
    assert last is not None
    block.insert_op_before(status, last)
    block.add_op(loop.CheckOp(status.buffer, ["wrong"]))
    assert buffer_intervals(program)[status.buffer].first == 0
