"""How many kernels programs launch, and what they keep in memory: counted on the loops, before anything is compiled."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.ir import Block

from tempo_ir.dialects import loop
from tempo_ir.dialects.types import shape_of
from tempo_ir.runtime.compiler import lower, module_of
from tempo_ir.tools import programs

EXAMPLES = Path(__file__).parents[2] / "examples"
LAUNCHES_PER_LAYER = 7
OF_WINDOWS = 9
"""Where layers are needed at different steps: queries stand in other guards than their norm, and each layer has its own
cosines and sines."""


def program_of(name: str, **settings) -> loop.ProgramOp:
    """An example as loops and launches for a GPU."""
    program, _ = programs.load_python(EXAMPLES / f"{name}.py", None, settings)
    module = lower(module_of(program.source), "sm_90").lowered
    assert module is not None
    (found,) = [op for op in module.ops if isinstance(op, loop.ProgramOp)]
    return found


def launches(block: Block) -> int:
    """Of one iteration of what a block holds, all its guards true."""
    found = 0
    for op in block.ops:
        if isinstance(op, loop.LaunchOp):
            found += 1
        elif isinstance(op, loop.ForOp):
            found += launches(op.body.block)
        elif isinstance(op, loop.IfOp):
            found += launches(op.then.block)
    return found


@pytest.mark.parametrize(
    ("settings", "most"), [({}, LAUNCHES_PER_LAYER), ({"batch": 3}, LAUNCHES_PER_LAYER), ({"window": 8}, OF_WINDOWS)]
)
def test_launches_of_a_layer_of_llama(settings, most, in_temporary_directory):
    fewer, more = (launches(program_of("llama", layers=layers, **settings).body.block) for layers in (2, 3))
    assert 0 < more - fewer <= most


def test_what_llama_keeps(in_temporary_directory):
    """Nothing is as long as the steps so far but keys and values of each layer, of as many heads as the model has."""
    program = program_of("llama", layers=4)
    buffers = [op for op in program.walk() if isinstance(op, loop.AllocOp)]
    extents = [shape_of(op.buffer_type.row) for op in buffers]
    assert all(isinstance(extent, int) for shape in extents for extent in shape)
    kept = [shape for op, shape in zip(buffers, extents, strict=True) if op.buffer_type.dims]
    assert kept == [(1, 4, 32)] * 8
