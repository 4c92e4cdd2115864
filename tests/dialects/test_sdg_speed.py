"""Deep programs verify and narrow in well under a second: equal questions are asked once."""

from __future__ import annotations

import time

from xdsl.dialects.builtin import f32
from xdsl.ir import Block, Region

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg.preconditions import settle
from tempo_ir.dialects.types import tensor
from tempo_ir.index import cond, domain, index, space


def deep_program(layers: int) -> sdg.ProgramOp:
    """A stack of residual layers with causal sums, whose last output feeds the next step."""
    now, row = index("[t]"), tensor(f32, [64])
    start = sdg.ParameterOp("start", row)
    carried = sdg.MergeOp(domain=domain("(t)"), result_type=row)
    ops: list[sdg.SdgOp] = [start, carried]
    value = carried.result
    for layer in range(layers):
        weight = sdg.ParameterOp(f"w{layer}", tensor(f32, [64, 64]))
        key = sdg.ContractOp("k,kn->n", sdg.Access(value, now), weight.result, domain=domain("(t)"))
        past = sdg.SumOp(sdg.Access(key.result, index("[0:t + 1]")), [0], domain=domain("(t)"))
        act = sdg.TanhOp(sdg.Access(past.result, now), domain=domain("(t)"))
        add = sdg.AddOp(sdg.Access(value, now), sdg.Access(act.result, now), domain=domain("(t)"))
        ops += [weight, key, past, act, add]
        value = add.result
    before = sdg.Access(value, index("[t - 1]"))
    carried.set_cases([(cond("t = 0"), sdg.Access(start.result)), (cond("t > 0"), before)])
    ops.append(sdg.OutputOp("y", sdg.Access(value, now), domain=domain("(t: 0 to T - 1)")))
    return sdg.ProgramOp("deep", space("dims(t: T)"), Region(Block(ops)))


def test_a_thousand_ops() -> None:
    program = deep_program(200)
    program.verify()
    started = time.process_time()
    program.verify()
    assert time.process_time() - started < 0.5
    started = time.process_time()
    settle(program)
    assert time.process_time() - started < 1.5
    program.verify()
    assert all(str(op.domain) == "(t: 0 to T - 1)" for op in program.body.ops if isinstance(op, sdg.TanhOp))
