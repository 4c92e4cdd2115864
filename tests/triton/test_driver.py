"""The driver against a device that records: what it launches is what the loops say, one after the other on one stream,
be it by launches or by graphs that repeat them.

The expected events come from the loop program: its loops are walked, its index expressions evaluated, with none of the
driver's text. Scalars that change from step to step are what the table of scalars holds when a kernel is launched.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

import tempo_ir as tp
from tempo_ir.dialects import loop
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.index import evaluate
from tempo_ir.lowering.triton.scalars import stepped_arguments
from tempo_ir.lowering.triton.steps import scalar_table
from tempo_ir.runtime.compiler import for_triton
from tempo_ir.tools import programs
from tests.triton.support import walk

RECORDER = Path(__file__).with_name("launch_recorder.py")
EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass
class Walk:
    """The events of a program, in order: launches with their grids and arguments, host calls."""

    module: ModuleOp
    values: dict[str, int]
    kernels: dict[str, KernelOp] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kernels = {op.sym_name.data: op for op in self.module.ops if isinstance(op, KernelOp)}

    def events(self, block: Block, place: tuple[int, ...] = ()) -> Iterator[tuple]:
        for op in block.ops:
            match op:
                case loop.ForOp():
                    low, high = evaluate(op.lower, self.values), evaluate(op.upper, self.values)
                    steps = range(low, high, op.step)
                    for step in reversed(steps) if op.down else steps:
                        self.values[op.iterator] = step
                        yield from self.events(op.body.block, (*place, step))
                case loop.IfOp():
                    region = op.then if evaluate(op.condition, self.values) else op.otherwise
                    if region is not None:
                        yield from self.events(region.block, place)
                case loop.LaunchOp():
                    yield self.launch(op, place)
                case loop.HostOp():
                    yield "host", op.method.root_reference.data, op.method.nested_references.data[0].data
                case _:
                    pass

    def launch(self, op: loop.LaunchOp, place: tuple[int, ...]) -> tuple:
        name = op.kernel.root_reference.data
        kernel = self.kernels[name]
        scalars = [evaluate(scalar, self.values) for scalar in op.scalars]
        own = len(kernel.body.block.args) - len(op.buffers)
        given = iter(scalars[own:])
        grid = [extent if extent >= 0 else next(given) for extent in kernel.grid.data]
        return "launch", name, [*grid, 1, 1, 1][:3], op, scalars[:own], place


def record(package: Path, program: str, shapes: dict, bounds: dict) -> dict:
    """What the recorder says."""
    command = [sys.executable, str(RECORDER), str(package), program, json.dumps(shapes), json.dumps(bounds)]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def follows_the_schedule(executable, package: Path, shapes: dict, bounds: dict, *, graphs: bool = False) -> dict:
    """Write the package, run it on the device that records, and compare with the loops."""
    if not package.exists():
        executable.write_triton(package)
    module = for_triton(executable.levels)
    (program,) = [op for op in module.ops if isinstance(op, loop.ProgramOp)]
    found = record(package, program.sym_name.data, shapes, {**bounds, **({"graphs": True} if graphs else {})})
    starts = {f"call.start.{name}": 0 for name in program.space.names}
    walk = Walk(module, {"call.seed": 0, **starts, **bounds})
    expected = list(walk.events(program.body.block))
    computed = {level.kernel for level in scalar_table(module).levels.values()}
    events = [event for event in found["events"] if event[1] not in computed]
    assert len(events) == len(expected)
    known: dict[tuple[object, tuple[int, ...]], int] = {}
    for buffer in (op for op in program.body.block.ops if isinstance(op, loop.NamedBufferOperation)):
        given = found["outputs" if isinstance(buffer, loop.OutputOp) else "arrays"]
        known[buffer.buffer, ()] = given[buffer.key.data]
    stepped = stepped_arguments(module)
    for event, wanted in zip(events, expected, strict=True):
        if wanted[0] == "host":
            assert tuple(event) == wanted
            continue
        _, name, grid, op, scalars, place = wanted
        assert event[:3] == ["launch", name, grid]
        assert event[4] == 7
        assert effective_scalars(event, len(op.buffers), len(scalars), stepped.get(name, ())) == scalars, name
        for address, buffer in zip(event[3], op.buffers, strict=False):
            checked = any(isinstance(use.operation, loop.CheckOp) for use in buffer.uses)  # each launch leaves its own
            key = (op, ()) if checked else (buffer, place[: len(_loops_round(buffer))])
            assert known.setdefault(key, address) == address, (name, buffer)
    return found


def effective_scalars(event: list, first: int, count: int, stepped: tuple[int, ...]) -> list[int]:
    """The scalars of a launch, after so many buffers: those that are told, and those that stand in the table."""
    told, table = iter(event[3][first:]), event[6]
    loaded = iter(table[event[3][-1] :] if stepped else [])
    return [next(loaded if number in stepped else told) for number in range(first, first + count)]


def repeats_what_launches_do(executable, package: Path, shapes: dict, bounds: dict) -> dict:
    """Both with and without graphs the loops are followed; gives what was recorded with them."""
    plain = follows_the_schedule(executable, package, shapes, bounds)
    found = follows_the_schedule(executable, package, shapes, bounds, graphs=True)
    assert plain["captured"] == 0
    assert [_seen(event) for event in plain["events"]] == [_seen(event) for event in found["events"]]
    assert found["compiled"] == plain["compiled"]
    return found


def _seen(event: list) -> list:
    """What is launched, or which method of a host object is called."""
    return event[:3]


def _loops_round(buffer: SSAValue) -> list[loop.ForOp]:
    found: list[loop.ForOp] = []
    parent = buffer.owner.parent_op()
    while parent is not None:
        if isinstance(parent, loop.ForOp):
            found.append(parent)
        parent = parent.parent_op()
    return found


class Doubler:
    """A host object."""

    def step(self, x):
        return x * 2


@tp.program
def hosted():
    t, _T = tp.dim("t")
    x = tp.input("x", tp.f32[3], over=t)
    tp.output("y", tp.host(Doubler, name="doubler").step(x + 1, returns=tp.f32[3]) * 3)


def test_loops_in_both_directions(tmp_path):
    executable = tp.compile(walk(), without=("loop-persist",))
    found = repeats_what_launches_do(executable, tmp_path / "walked", {"x": [17, 4]}, {"T": 17})
    assert set(found["compiled"].values()) == {1}  # whatever the scalars are
    assert len(found["events"]) >= 3 * 17
    assert found["dispatched"] == len(found["compiled"])  # once per kernel: then they are bound


def test_loops_that_are_one_launch(tmp_path):
    found = follows_the_schedule(tp.compile(walk()), tmp_path / "walked", {"x": [17, 4]}, {"T": 17})
    assert [name for _, name, *_ in found["events"] if "_over_" in name] == [
        "mul_add_sum_over_t",
        "mul_add_random_over_t",
    ]
    assert len(found["events"]) == 3
    assert found["dispatched"] == len(found["compiled"])  # once per kernel: then they are bound


def test_host_calls_keep_their_places(tmp_path):
    found = repeats_what_launches_do(tp.compile(hosted()), tmp_path / "hosted", {"x": [3, 3]}, {"T": 3})
    kinds = [event[0] for event in found["events"] if not event[1].startswith("next_")]
    assert kinds == ["launch", "host", "launch"] * 3 or kinds.count("host") == 3


def test_steps_of_llama(in_temporary_directory):
    program, _ = programs.load_python(EXAMPLES / "llama.py", None, {"layers": 1})
    executable = tp.compile(program.source)
    shapes = {key: list(array.shape) for key, array in executable.init(0).items()}
    found = repeats_what_launches_do(
        executable, in_temporary_directory / "llama", {**shapes, "prompt": [2, 1, "int64"]}, {"T": 9, "P": 2}
    )
    assert found["dispatched"] == len(found["compiled"])
    graphs = [event[5] for event in found["events"]]
    # the first step of a kind launches, the second is captured: steps 1 and 8 are the first of theirs, as 0 is
    assert (found["captured"], max(filter(None, graphs), default=0)) == (1, 0)
    assert graphs.count(0) == 6 * (graphs.count(0) // 6) > 6 * 8


def test_iterations_of_the_rnn(tmp_path):
    program, _ = programs.load_python(EXAMPLES / "rnn.py", None, {})
    executable = tp.compile(program.source)
    shapes = {key: list(array.shape) for key, array in executable.init(0).items()}
    data = {name: [3, 5, 16, 64] for name in "xy"}
    found = repeats_what_launches_do(executable, tmp_path / "rnn", {**shapes, **data}, {"I": 3, "T": 5})
    graphs = {event[5] for event in found["events"]}
    assert graphs == {None, *range(found["captured"])}  # each graph is repeated
    repeated = sum(event[5] is not None for event in found["events"])
    assert repeated > len(found["events"]) // 2


def test_a_counter_that_begins_elsewhere_is_seen(tmp_path):
    executable = tp.compile(walk(), without=("loop-persist",))
    executable.write_triton(tmp_path / "walked")
    driver = tmp_path / "walked" / "driver.py"
    text = driver.read_text()
    assert "scalars[0] = -1" in text
    driver.write_text(text.replace("scalars[0] = -1", "scalars[0] = 0"))
    with pytest.raises(AssertionError):
        follows_the_schedule(executable, tmp_path / "walked", {"x": [5, 4]}, {"T": 5})


@pytest.mark.slow
def test_iterations_of_reinforce(tmp_path):
    program, _ = programs.load_python(EXAMPLES / "reinforce.py", None, {})
    executable = tp.compile(program.source)
    shapes = {key: list(array.shape) for key, array in executable.init(0).items()}
    repeats_what_launches_do(executable, tmp_path / "reinforce", shapes, {"I": 3, "T": 3})
