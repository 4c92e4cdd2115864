"""Planning takes a fraction of a second for a decoder, whose equal layers ask the same questions, and some seconds for
a program whose domains are of many pieces."""

from __future__ import annotations

import time
from pathlib import Path

from tempo_ir.collection import collection_paused
from tempo_ir.index.limits import limited
from tempo_ir.lowering.schedule.driver import schedule_program
from tempo_ir.lowering.storage.driver import plan_storage
from tempo_ir.passes.pipeline import default_pipeline
from tests.fuzz.check import apply
from tests.fuzz.check import parse as parse_module
from tests.schedule.schedule_programs import layers
from tests.schedule.schedule_support import parse


def seconds(count: int) -> float:
    """CPU time of planning a network of `count` layers, with the proof; as in a compile nobody looks for garbage."""
    program = schedule_program(parse(layers(count)))
    with collection_paused():
        begin = time.process_time()
        plan_storage(program)
        return time.process_time() - begin


def test_layers_cost_little() -> None:
    seconds(2)  # isl is imported
    assert seconds(16) < 1


def test_domains_of_many_pieces_cost_some_seconds() -> None:
    module = parse_module((Path(__file__).parent / "many_pieces.mlir").read_text())
    apply(module, *default_pipeline(), "sdg-schedule", "loop-form-kernels")
    # about three seconds; the same questions about ten times as many pieces took some thirty
    with limited(30_000_000):
        apply(module, "loop-plan-storage")
