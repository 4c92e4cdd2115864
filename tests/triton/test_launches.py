"""How many kernels programs launch, and what they keep in memory: counted on the loops, before anything is compiled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects import loop
from tempo_ir.dialects.tile import memory, structure
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.lowering.triton.hazards import barriers
from tempo_ir.runtime.compiler import lower, module_of
from tempo_ir.tools import programs

EXAMPLES = Path(__file__).parents[2] / "examples"
RECURRENCES = Path(__file__).with_name("recurrences.py")
LAUNCHES_PER_LAYER = 7
OF_WINDOWS = 9
"""Where layers are needed at different steps: queries stand in other guards than their norm, and each layer has its own
cosines and sines."""


def program_of(name: str, **settings) -> loop.ProgramOp:
    """An example as loops and launches for a GPU."""
    return lowered(EXAMPLES / f"{name}.py", None, **settings)


def lowered(file: Path, name: str | None, **settings) -> loop.ProgramOp:
    """A program of a file as loops and launches for a GPU."""
    program, _ = programs.load_python(file, name, settings)
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


def over(program: loop.ProgramOp, iterator: str) -> list[loop.LaunchOp]:
    """The launches that run all iterations of loops over a dim; no loop over it is left."""
    assert not any(isinstance(op, loop.ForOp) and op.iterator == iterator for op in program.walk())
    found = [op for op in program.walk() if isinstance(op, loop.LaunchOp)]
    return [op for op in found if op.kernel.root_reference.data.endswith(f"_over_{iterator}")]


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm", "back_through_time", "windows", "of_all_rows", "heads"])
def test_all_steps_of_a_recurrence_are_one_launch(name):
    assert len(over(lowered(RECURRENCES, name), "t")) == 1


def test_all_steps_of_the_rnn_are_one_launch_forwards_and_one_backwards(in_temporary_directory):
    program = program_of("rnn")
    assert len(over(program, "t")) == 2
    (loss,) = over(program, "t")[:1]
    assert "tanh" in loss.kernel.root_reference.data


def test_a_whole_rollout_is_one_launch(in_temporary_directory):
    program = program_of("rollout")
    (rollout,) = over(program, "t")
    kernels = {op.sym_name.data: op for op in program.parent_op().walk() if isinstance(op, KernelOp)}
    assert list(kernels[rollout.kernel.root_reference.data].grid.data) == [1024 // 16]


def loop_of(program: loop.ProgramOp) -> tuple[structure.ForOp, dict[SSAValue, SSAValue]]:
    """The loop over t in the kernel that runs all of its iterations, and the buffers behind the kernel's pointers."""
    (launch,) = over(program, "t")
    module = program.parent_op()
    assert module is not None
    name = launch.kernel.root_reference.data
    (kernel,) = [op for op in module.walk() if isinstance(op, KernelOp) and op.sym_name.data == name]
    (found,) = [op for op in kernel.walk() if isinstance(op, structure.ForOp)]
    return found, dict(zip(kernel.body.block.args, launch.buffers, strict=False))


@pytest.mark.parametrize("name", ["rnn", "back_through_time"])
def test_the_state_of_a_recurrence_stays_in_registers(name):
    """A step loads a row of the input and stores one of the output; weights and the first state are loaded before."""
    steps, buffers = loop_of(lowered(RECURRENCES, name))
    loads = [op for op in steps.walk() if isinstance(op, memory.LoadOp)]
    stores = [op for op in steps.walk() if isinstance(op, memory.StoreOp)]
    assert [type(buffers[op.view_op.pointer].owner) for op in loads] == [loop.InputOp]
    assert [type(buffers[op.view_op.pointer].owner) for op in stores] == [loop.OutputOp]
    assert len(steps.carried) == 1


def test_the_state_of_a_rollout_stays_in_registers(in_temporary_directory):
    """A step loads nothing, neither weights nor what the one before left; it stores what the caller sees."""
    steps, buffers = loop_of(program_of("rollout"))
    accesses = [op for op in steps.walk() if isinstance(op, memory.AccessOp)]
    assert all(isinstance(op, memory.StoreOp) for op in accesses)
    assert all(isinstance(buffers[op.view_op.pointer].owner, loop.OutputOp) for op in accesses)
    assert len(steps.carried) == 5  # four numbers of an environment, and its age
    kernel = next(op for op in _around(steps) if isinstance(op, KernelOp))
    assert len(barriers(kernel)) == 1  # in the first step, which stores where it has loaded


def _around(op: Operation) -> Iterator[Operation]:
    parent = op.parent_op()
    while parent is not None:
        yield parent
        parent = parent.parent_op()


@pytest.mark.parametrize("settings", [{"batch": 1, "width": 2048}, {"batch": 4096, "width": 512}])
def test_a_great_product_in_each_step_is_launched_in_each_step(settings):
    program = lowered(RECURRENCES, "rnn", **settings)
    assert {op.iterator for op in program.walk() if isinstance(op, loop.ForOp)} == {"t"}


def test_a_step_of_llama_is_launched_kernel_by_kernel(in_temporary_directory):
    program = program_of("llama", layers=2)
    assert any(isinstance(op, loop.ForOp) for op in program.walk())
    assert not any("_over_" in op.kernel.root_reference.data for op in program.walk() if isinstance(op, loop.LaunchOp))


def test_what_llama_keeps(in_temporary_directory):
    """Nothing is as long as the steps so far but keys and values of each layer, of as many heads as the model has."""
    program = program_of("llama", layers=4)
    buffers = [op for op in program.walk() if isinstance(op, loop.AllocOp)]
    extents = [shape_of(op.buffer_type.row) for op in buffers]
    assert all(isinstance(extent, int) for shape in extents for extent in shape)
    kept = [shape for op, shape in zip(buffers, extents, strict=True) if op.buffer_type.dims]
    assert kept == [(1, 4, 32)] * 8
