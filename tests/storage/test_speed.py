"""Planning a decoder takes a fraction of a second: equal layers ask the same questions."""

from __future__ import annotations

import time

from tempo_ir.lowering.schedule.driver import schedule_program
from tempo_ir.lowering.storage.driver import plan_storage
from tests.schedule.schedule_programs import layers
from tests.schedule.schedule_support import parse


def seconds(count: int) -> float:
    """CPU time of planning a network of `count` layers, with the proof."""
    program = schedule_program(parse(layers(count)))
    begin = time.process_time()
    plan_storage(program)
    return time.process_time() - begin


def test_layers_cost_little() -> None:
    seconds(2)  # isl is imported
    assert seconds(16) < 1
